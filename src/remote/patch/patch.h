/*
 * How a function is made to jump to its stub while threads run through it; see inject.h for
 * the idea. Plans only: bytes in, bytes out, nothing is written here.
 *
 *	PATCH_DIRECT   the first instruction has five bytes or more and they lie in one aligned
 *	               word: a jump over it
 *	PATCH_GAP      it has two or more: a two-byte jump to padding between functions, which
 *	               holds the jump to the stub
 *	PATCH_WIDE     several instructions are replaced by a five-byte jump: only where nobody can
 *	               be in them, that is with all threads stopped
 *
 * In the first two one aligned store of a word changes the function, and every thread finds either
 * the old instruction or the new one. Where the first instruction does not suit, a later one may,
 * as long as those before it only push, move and compare: they are left in place, the stub takes
 * them back (arguments are in their registers still), the trampoline does them again.
 *
 * Padding is what lies between the end of one function and the start of the next by .eh_frame_hdr
 * and consists of instructions that do nothing; without it what lies directly before the function
 * itself, behind an instruction that does not fall through.
 */
#ifndef ASSAY_REMOTE_PATCH_PATCH_H
#define ASSAY_REMOTE_PATCH_PATCH_H

#include "base/base.h"
#include "base/vec.h"
#include "remote/patch/stubcode.h"
#include "plan/heapplan.h"

enum patch_kind { PATCH_NONE = 0, PATCH_DIRECT, PATCH_GAP, PATCH_WIDE };

struct heap_patch {
	enum patch_kind kind;
	uint32_t site;
	uint64_t function;
	uint64_t at;         /* of the jump in it */
	size_t nr_displaced; /* what is left in place and what is replaced, from function on */
	uint8_t displaced[HEAPCODE_DISPLACED_MAX];
	uint8_t undo[HEAPCODE_UNDO_MAX];
	size_t nr_undo;
	uint64_t gap; /* PATCH_GAP: address of five bytes of padding */
	uint8_t gap_old[5];
	uint64_t stub;   /* set by who places stubs */
	const char *why; /* PATCH_NONE */
};

/* Reads code of the target; -errno. */
typedef int (*heappatch_read_fn)(void *ctx, uint64_t addr, void *to, size_t n);

/* Bounds of the functions of one binary: sorted starts and ends, from its .eh_frame_hdr. */
struct heap_bounds {
	VEC(struct heap_range) v;
};
/*
 * Of the functions that touch [lo, hi), out of the binary whose first page is mapped at @base.
 * Leaves *b empty where there is no table.
 */
void heap_bounds_load(struct heap_bounds *b, uint64_t base, uint64_t lo, uint64_t hi,
		      heappatch_read_fn read, void *ctx);

/* Gaps that are taken already. */
struct heap_gaps {
	VEC(uint64_t) taken;
};

/* @may_be_wide: nobody can be in the function's first bytes. PATCH_NONE: why says so. */
void heappatch_plan(struct heap_patch *ret_p, const struct heap_site *site, uint32_t number,
		    bool may_be_wide, const struct heap_bounds *bounds, struct heap_gaps *gaps,
		    heappatch_read_fn read, void *ctx);
/* Bytes of the jump that goes to p->at: to the stub (5) or to the gap (2). */
size_t heappatch_jump(const struct heap_patch *p, uint8_t to[5]);

#endif
