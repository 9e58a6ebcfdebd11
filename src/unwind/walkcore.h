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

/* The part of a ROW_OWN rule above the kind: why there is no row. */
enum own_rule { OWN_NO_MAP = 0, OWN_NO_FILE, OWN_NO_TABLE, OWN_JIT };

#define WALK_CACHE_BITS 14 /* 16 Ki entries of 16 bytes */
#define WALK_NR_CACHE   (1u << WALK_CACHE_BITS)
#define WALK_NR_FULL    64

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

/* What must be known of a frame to find the next one. */
struct cursor {
	uint64_t pc;
	uint64_t sp;
	uint64_t fp;
	bool is_call;
	bool is_chained; /* found by a frame pointer */
};

/* What step functions give; the negative of a walk_end minus one says that the walk ends. */
enum { STEP_OK = 0 };
#define STEP_END(end)     (-1 - (int)(end))
#define STEP_TO_END(step) ((enum walk_end)(-1 - (step)))

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

/* False if not copied, and wanted_bytes says what was asked for. */
bool walk_read_slow(struct walker *w, uint64_t addr, size_t n, uint64_t *ret_v);
static inline bool walk_read(struct walker *w, uint64_t addr, uint64_t *ret_v)
{
	uint64_t off = addr - w->stack_start;
	if (LIKELY(off + 8 <= w->in->nr_stack && off + 8 > off)) {
		memcpy(ret_v, w->in->stack + off, 8);
		return true;
	}
	return walk_read_slow(w, addr, 8, ret_v);
}
/* After a read that failed. */
int walk_read_end(const struct walker *w);

/* The rule for a frame (ROW_OWN if none can be) and its mapping. */
uint32_t walk_rule(struct walker *w, const struct cursor *c, const struct space_map **ret_map);
/* One step by a row of kind SP, FP, PLT; STEP_OK or STEP_END. */
int walk_step_plain(struct walker *w, struct cursor *c, uint32_t rule);
int walk_step_signal(struct walker *w, struct cursor *c, uint32_t rule);
/* One step through code without rules. @rule: ROW_NONE or ROW_OWN. */
int walk_step_gap(struct walker *w, struct cursor *c, uint32_t rule);
/* From frame 0 with all registers. */
enum walk_end walk_fully(struct walker *w);

static inline bool walk_is_cfa_good(const struct cursor *c, uint64_t cfa)
{
	/* A caller's frame lies above; a leaf that keeps its return address in a register may
	 * have none. */
	return cfa % 8 == 0 && (cfa > c->sp || (cfa == c->sp && !c->is_call));
}

#endif
