/*
 * Internals of the walker, shared by walk.c (the fast walk: pc, sp, fp), walknorule.c (code without
 * rules) and walkfull.c (the full walk: all registers). Private to unwind/.
 */
#ifndef ASSAY_UNWIND_WALKCORE_H
#define ASSAY_UNWIND_WALKCORE_H

#include "arch.h"
#include "base/base.h"
#include "unwind/cfi.h"
#include "unwind/walk.h"
#include "unwind_row.h"

/* Why an address has no row: the bits of a ROW_PSEUDO rule above the kind. */
enum pseudo_rule { PSEUDO_NO_MAP = 0, PSEUDO_NO_FILE, PSEUDO_NO_TABLE, PSEUDO_JIT };

#define WALK_CACHE_BITS 14 /* 16 Ki entries of 16 bytes */
#define WALK_NR_CACHE   (1u << WALK_CACHE_BITS)
#define WALK_NR_FULL    64 /* entries of walker.full_cache */
/*
 * A read at most this far above the copied bytes is a read of stack that was not copied. Further away
 * the address is invalid.
 */
#define STACK_REACH_BYTES ((uint64_t)256 << 20)

/* addr_map: address (48 bits) and index of the mapping (16 bits). generation 0: empty. */
struct walk_cache {
	uint64_t addr_map;
	uint32_t generation;
	uint32_t rule;
};

struct walk_full {
	uint64_t addr;
	uint32_t generation;
	bool is_found;
	struct cfi_rules rules;
};

struct walker {
	const struct walk_input *in;
	uint64_t stack_start;  /* address of in->stack[0] */
	uint64_t wanted_bytes; /* end of the last failed read, from stack_start; 0: none */
	uint64_t regs[ARCH_NR_DWARF_REG]; /* of frame 0, by DWARF number */
	uint64_t valid;                   /* one bit per register: it was sampled */
	uint64_t regs_mask; /* walk_input.regs_mask of which valid and reg_idx are made */
	uint8_t reg_idx[ARCH_NR_DWARF_REG];
	uint32_t nr_frames;
	struct walk_frame frames[WALK_DEPTH_MAX];
	struct walk_cache cache[WALK_NR_CACHE];
	struct walk_full full_cache[WALK_NR_FULL];
	struct cfi_run run;
};

/* The current frame of a walk. */
struct walk {
	uint64_t pc;
	uint64_t sp;
	uint64_t fp;
	/* Mapping and rule of pc, set by walk_rule. */
	const struct space_map *map; /* NULL: in no mapping */
	uint32_t rule;               /* ROW_PSEUDO: there is no row, with the reason */
	int32_t fp_slot;             /* see unwind_core.h */
	bool is_call;                /* pc is a return address */
	bool is_chained;             /* the frame was found by a frame pointer */
	struct walker *walker;
};

/* Reads a word of the stack; false if it was not copied, and wanted_bytes is set. */
bool walk_read_slow(struct walker *k, uint64_t addr, size_t n, uint64_t *ret_v);
static inline bool walk_read(struct walk *w, uint64_t addr, uint64_t *ret_v)
{
	const struct walker *k = w->walker;
	uint64_t off = addr - k->stack_start;

	if (LIKELY(off + 8 <= k->in->nr_stack && off + 8 > off)) {
		memcpy(ret_v, k->in->stack + off, 8);
		return true;
	}
	return walk_read_slow(w->walker, addr, 8, ret_v);
}

static inline bool walk_leaf_reg(const struct walk *w, uint32_t reg, uint64_t *ret_v)
{
	const struct walker *k = w->walker;

	if (k->nr_frames != 1 || reg >= ARCH_NR_DWARF_REG || !(k->valid >> reg & 1))
		return false;
	*ret_v = k->regs[reg];
	return true;
}

bool walk_is_caller(const struct walk *w, uint64_t ra, bool needs_rule);
int walk_step_special(struct walk *w, uint32_t rule);
int walk_step_norule(struct walk *w);

#include "unwind_core.h"

/* Returns a walk at frame 0. */
struct walk walk_begin(struct walker *k);
/* Appends the current frame to the result. Returns STEP_OK, or why it is not a frame. */
int walk_add_frame(struct walk *w);
/* Finds the rule and mapping of pc. */
void walk_rule(struct walk *w);
/* Walks from frame 0 with all registers. */
enum walk_end walk_full_regs(struct walker *k);

#endif
