/*
 * Chooses how a function is changed to jump to its stub while threads may execute it; see inject.h.
 * Only plans: reads code, writes nothing.
 *
 *	PATCH_DIRECT   an instruction of at least five bytes, of which the first five are in one
 *	               aligned word, is replaced by a five-byte jump to the stub
 *	PATCH_GAP      an instruction of at least two bytes is replaced by a two-byte jump to
 *	               padding between functions, which gets the five-byte jump to the stub
 *	PATCH_MULTI    several instructions are replaced by a five-byte jump: only with all threads
 *	               stopped outside of these instructions, and within one page
 *
 * With the first two, one aligned store of a word changes the function, so each thread executes
 * either the old instruction or the new one. If the first instruction does not qualify, a later one
 * is replaced, provided that the instructions before it only push, move and compare and leave the
 * argument registers unchanged. They stay in place and are executed before the jump; the stub
 * undoes their effect, and the trampoline (stubcode.h) executes them again.
 *
 * Padding: no-op instructions between the end of one function and the start of the next. Ends and
 * starts are from .eh_frame_hdr; without that table, only no-op instructions directly before the
 * function are used, if they follow an instruction that does not fall through.
 */
#ifndef ASSAY_REMOTE_PATCH_PATCH_H
#define ASSAY_REMOTE_PATCH_PATCH_H

#include "base/base.h"
#include "base/vec.h"
#include "remote/patch/stubcode.h"
#include "plan/heapplan.h"

enum patch_kind { PATCH_NONE = 0, PATCH_DIRECT, PATCH_GAP, PATCH_MULTI };

struct heap_patch {
	enum patch_kind kind;
	uint32_t site;       /* index into heap_plan.functions */
	uint64_t function;   /* address of its first instruction */
	uint64_t at;         /* address of the jump */
	size_t nr_displaced; /* bytes from function to the end of the replaced instruction */
	uint8_t displaced[HEAPCODE_DISPLACED_MAX]; /* these bytes, before the patch */
	uint8_t undo[HEAPCODE_UNDO_MAX]; /* code that undoes the instructions before the jump */
	size_t nr_undo;
	uint64_t gap;       /* PATCH_GAP: address of the padding */
	uint8_t gap_old[5]; /* its bytes before the patch */
	uint64_t stub;      /* set by heapstubs_place */
	const char *why;    /* PATCH_NONE: the reason */
};

/* Reads memory of the target; returns 0 or a negative errno. */
typedef int (*heappatch_read_fn)(void *ctx, uint64_t addr, void *to, size_t n);

/* Starts and ends of functions of one binary, sorted, from its .eh_frame_hdr. */
struct heap_bounds {
	VEC(struct heap_range) v;
};
/*
 * Loads the functions that overlap [lo, hi), of the binary whose first page is mapped at @base.
 * Without a table *b stays empty.
 */
void heap_bounds_load(struct heap_bounds *b, uint64_t base, uint64_t lo, uint64_t hi,
		      heappatch_read_fn read, void *ctx);

/* Padding that other patches use. */
struct heap_gaps {
	VEC(uint64_t) taken;
};

/*
 * Plans the patch of one function. @number: its index in the plan. @allow_multi: PATCH_MULTI is
 * acceptable. If no patch is possible, kind is PATCH_NONE and `why` is the reason. Padding that is
 * used is added to @gaps.
 */
void heappatch_plan(struct heap_patch *ret_p, const struct heap_function *site, uint32_t number,
		    bool allow_multi, const struct heap_bounds *bounds, struct heap_gaps *gaps,
		    heappatch_read_fn read, void *ctx);
/*
 * Makes the jump at p->at: 5 bytes to the stub, or 2 bytes to the padding. Returns its size;
 * 0: the destination is out of range.
 */
size_t heappatch_jump(const struct heap_patch *p, uint8_t to[5]);

#endif
