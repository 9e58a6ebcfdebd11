/*
 * What the parts of the walker share: walk.c (the fast path: pc, sp, fp), walkgap.c (code
 * without rules) and walkfull.c (all registers). Private to unwind/.
 */
#ifndef ASSAY_UNWIND_WALKCORE_H
#define ASSAY_UNWIND_WALKCORE_H

#include "arch.h"
#include "base/base.h"
#include "unwind/cfi.h"
#include "unwind/walk.h"
#include "unwind_row.h"

/* The part of a ROW_PSEUDO rule above the kind: why there is no row. */
enum pseudo_rule { PSEUDO_NO_MAP = 0, PSEUDO_NO_FILE, PSEUDO_NO_TABLE, PSEUDO_JIT };

#define WALK_CACHE_BITS 14 /* 16 Ki entries of 16 bytes */
#define WALK_NR_CACHE   (1u << WALK_CACHE_BITS)
#define WALK_NR_FULL    64
/* Past the copied bytes but this near: the rest of the stack. Further off: nonsense. */
#define STACK_REACH_BYTES ((uint64_t)256 << 20)

/* addr (48 bits) and the mapping's index (16 bits) in one word. generation 0: empty. */
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
	uint64_t stack_start; /* address of in->stack[0] */
	uint64_t wanted_bytes;
	uint64_t regs[ARCH_NR_DWARF_REG]; /* of frame 0, by DWARF number */
	uint64_t valid;                   /* bit a register */
	uint64_t regs_mask;               /* that reg_idx and valid are for */
	uint8_t reg_idx[ARCH_NR_DWARF_REG];
	uint32_t nr_frames;
	struct walk_frame frames[WALK_DEPTH_MAX];
	struct walk_cache cache[WALK_NR_CACHE];
	struct walk_full fulls[WALK_NR_FULL];
	struct cfi_run run;
};

/* A walk and the frame that it is at. */
struct walk {
	uint64_t pc;
	uint64_t sp;
	uint64_t fp;
	/* Of pc, once walk_rule has been there. */
	const struct space_map *map; /* NULL: in none */
	uint32_t rule;               /* ROW_PSEUDO: there can be none */
	int32_t fp_slot;             /* unwind_core.h */
	bool is_call;
	bool is_chained;
	struct walker *walker;
};

/* False if not copied, and wanted_bytes says what was asked for. */
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
int walk_step_gap(struct walk *w);

#include "unwind_core.h"

/* At frame 0. */
struct walk walk_begin(struct walker *k);
/* The walk's next frame is noted. STEP_OK, or why it is none. */
int walk_add_frame(struct walk *w);
/* Finds the rule and mapping of pc. */
void walk_rule(struct walk *w);
/* From frame 0 with all registers. */
enum walk_end walk_fully(struct walker *k);

#endif
