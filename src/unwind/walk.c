/*
 * The fast path. Nearly every frame is found by pc, sp and fp alone, so only those are followed;
 * rows that need another register make walkfull.c start over from frame 0.
 *
 * A frame costs a cache look-up and one or two reads of copied stack: the rule of (space, pc) is
 * cached by the generation of the space, so a change of mappings invalidates without a sweep.
 */
#include "base/base.h"
#include "unwind/walk.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"
#include "unwind/walkcore.h"

#define ADDR_BITS 48
#define ADDR_MASK (((uint64_t)1 << ADDR_BITS) - 1)
/* Past the copied bytes but this near: the rest of the stack. Further off: nonsense. */
#define STACK_REACH_BYTES ((uint64_t)256 << 20)

struct walker *walker_new(void)
{
	return xcalloc(1, sizeof(struct walker));
}

void walker_free(struct walker *w)
{
	free(w);
}

bool walk_read_slow(struct walker *w, uint64_t addr, size_t n, uint64_t *ret_v)
{
	uint64_t off = addr - w->stack_start;

	if (off + n <= w->in->nr_stack && off + n > off) {
		uint64_t v = 0;
		memcpy(&v, w->in->stack + off, n);
		*ret_v = v;
		return true;
	}
	w->wanted_bytes = off + n > off ? off + n : UINT64_MAX;
	return false;
}

int walk_read_end(const struct walker *w)
{
	return w->wanted_bytes < STACK_REACH_BYTES ? STEP_END(WALK_COPY) : STEP_END(WALK_BAD_FRAME);
}

static uint32_t own(enum own_rule why)
{
	return ROW_OWN | (uint32_t)why << ROW_KIND_BITS;
}

static uint32_t find_rule(const struct space_map *map, const struct cursor *c, uint64_t addr)
{
	const struct unwind_module *module = map->module;
	const struct unwind_table *table = module ? module->table : NULL;

	if (!table) {
		if (module && module->is_jit)
			return own(OWN_JIT);
		return own(module && module->is_missing ? OWN_NO_FILE : OWN_NO_TABLE);
	}
	uint64_t vaddr = addr - map->bias;
	const struct unwind_row *row = unwind_table_find(table, vaddr);
	if (c->is_call) {
		/* The kernel returns to a restorer's first byte, and no call stands before it. */
		const struct unwind_row *next = unwind_table_find(table, vaddr + 1);
		if (next != row && next && row_kind(next->rule) == ROW_SIGNAL)
			return next->rule;
	}
	if (row && row_kind(row->rule) != ROW_NONE)
		return row->rule;
	return table->nr_fdes ? ROW_NONE : own(OWN_NO_TABLE);
}

static uint32_t fill_rule(struct walker *w, const struct cursor *c, uint64_t addr,
			  struct walk_cache *entry, const struct space_map **ret_map)
{
	struct space *space = w->in->space;
	const struct space_map *map = space_find(space, addr);

	*ret_map = map;
	if (!map)
		return own(OWN_NO_MAP);
	uint32_t rule = find_rule(map, c, addr);
	size_t idx = (size_t)(map - space->maps.p);
	if (idx >> 16 == 0 && addr >> ADDR_BITS == 0) {
		entry->addr_map = addr | (uint64_t)idx << ADDR_BITS;
		entry->generation = space->generation;
		entry->rule = rule;
	}
	return rule;
}

uint32_t walk_rule(struct walker *w, const struct cursor *c, const struct space_map **ret_map)
{
	struct space *space = w->in->space;
	uint64_t addr = c->pc - c->is_call;
	uint64_t hash = (addr ^ (uint64_t)space->generation << 32) * 0x9e3779b97f4a7c15u;
	struct walk_cache *entry = &w->cache[hash >> (64 - WALK_CACHE_BITS)];

	/* A return address and an interrupted pc are never the same byte's: the former is that
	 * of the call before, except for a restorer's first byte, where both mean the same. */
	if (LIKELY((entry->addr_map & ADDR_MASK) == addr &&
		   entry->generation == space->generation)) {
		*ret_map = &space->maps.p[entry->addr_map >> ADDR_BITS];
		return entry->rule;
	}
	return fill_rule(w, c, addr, entry, ret_map);
}

/* Reads the caller's pc and fp of a frame whose CFA is known. */
static int step_cfa(struct walker *w, struct cursor *c, uint64_t cfa, int32_t slot)
{
	uint64_t ra;
	uint64_t fp = c->fp;

	if (UNLIKELY(!walk_is_cfa_good(c, cfa)))
		return STEP_END(WALK_BAD_FRAME);
#ifdef ARCH_RA_BESIDE_FP
	if (slot == ROW_FP_SAME) {
		/* Only a function that called nobody has it still in the register. */
		if (c->is_call || !(w->valid >> ARCH_DWARF_RA & 1))
			return STEP_END(WALK_BAD_FRAME);
		ra = w->regs[ARCH_DWARF_RA];
	} else if (UNLIKELY(!walk_read(w, cfa + (uint64_t)((int64_t)slot * 8 + 8), &ra))) {
		return walk_read_end(w);
	}
#else
	if (UNLIKELY(!walk_read(w, cfa + (uint64_t)(int64_t)ARCH_RA_AT_CFA, &ra)))
		return walk_read_end(w);
#endif
	/* A slot below sp: an epilogue has popped it, and the register has its value again. */
	uint64_t fp_at = cfa + (uint64_t)((int64_t)slot * 8);
	if (slot != ROW_FP_SAME && fp_at >= c->sp && UNLIKELY(!walk_read(w, fp_at, &fp)))
		return walk_read_end(w);
	c->pc = ARCH_RA_STRIP(ra);
	c->sp = cfa;
	c->fp = fp;
	c->is_call = true;
	c->is_chained = false;
	return STEP_OK;
}

int walk_step_plain(struct walker *w, struct cursor *c, uint32_t rule)
{
	uint32_t offset = row_cfa_bytes(rule);
	int32_t slot = row_fp_slot(rule);

	switch (row_kind(rule)) {
	case ROW_SP:
		return step_cfa(w, c, c->sp + offset, slot);
	case ROW_FP:
		return step_cfa(w, c, c->fp + offset, slot);
	default: /* ROW_PLT */
		return step_cfa(w, c, c->sp + ((c->pc & 15) >= offset / 8 ? 16 : 8), slot);
	}
}

int walk_step_signal(struct walker *w, struct cursor *c, uint32_t rule)
{
	static const uint16_t off[] = ARCH_SIGFRAME_FROM_DWARF;
	uint64_t uc = c->sp + row_cfa_bytes(rule);
	uint64_t pc, sp, fp;

	if (!walk_read(w, uc + off[ARCH_DWARF_PC], &pc) ||
	    !walk_read(w, uc + off[ARCH_DWARF_SP], &sp) ||
	    !walk_read(w, uc + off[ARCH_DWARF_FP], &fp))
		return walk_read_end(w);
	c->pc = pc;
	c->sp = sp; /* may be anywhere: the handler may have had a stack of its own */
	c->fp = fp;
	c->is_call = false;
	c->is_chained = false;
	return STEP_OK;
}

/* The value of a register that the fast path knows: sp and fp, and all of them in frame 0. */
static bool fast_reg(const struct walker *w, const struct cursor *c, uint32_t reg, uint64_t *ret_v)
{
	if (reg == ARCH_DWARF_SP)
		*ret_v = c->sp;
	else if (reg == ARCH_DWARF_FP)
		*ret_v = c->fp;
	else if (w->nr_frames == 1 && reg < ARCH_NR_DWARF_REG && w->valid >> reg & 1)
		*ret_v = w->regs[reg];
	else
		return false;
	return true;
}

enum { NEEDS_FULL = 1 }; /* beside STEP_OK and STEP_END */

/* A register's value in the caller. */
static int special_value(struct walker *w, const struct cursor *c, uint64_t cfa, uint32_t kind,
			 uint32_t reg, int32_t off, uint64_t *ret_v)
{
	uint64_t v = 0;

	if (kind == SPECIAL_SAME)
		return STEP_OK;
	if (kind == SPECIAL_AT_CFA) {
		uint64_t at = cfa + (uint64_t)(int64_t)off;
		if (at < c->sp) /* popped already: the register has its value again */
			return STEP_OK;
		return walk_read(w, at, ret_v) ? STEP_OK : walk_read_end(w);
	}
	if (!fast_reg(w, c, reg, &v))
		return NEEDS_FULL;
	if (kind == SPECIAL_IN_REG) {
		*ret_v = v;
		return STEP_OK;
	}
	return walk_read(w, v + (uint64_t)(int64_t)off, ret_v) ? STEP_OK : walk_read_end(w);
}

static int step_special(struct walker *w, struct cursor *c, const struct unwind_special *s)
{
	uint64_t cfa, ra = 0;
	uint64_t fp = c->fp;
	int step;

	if (s->cfa_kind == SPECIAL_CFA_FULL || !fast_reg(w, c, s->cfa_reg, &cfa))
		return NEEDS_FULL;
	cfa += (uint64_t)(int64_t)s->cfa_off;
	if (s->cfa_kind == SPECIAL_CFA_DEREF) {
		if (!walk_read(w, cfa, &cfa))
			return walk_read_end(w);
		cfa += (uint64_t)(int64_t)s->cfa_off2;
	}
	if (!walk_is_cfa_good(c, cfa))
		return STEP_END(WALK_BAD_FRAME);
	step = special_value(w, c, cfa, s->ra_kind, s->ra_reg, s->ra_off, &ra);
	if (step)
		return step;
	step = special_value(w, c, cfa, s->fp_kind, s->fp_reg, s->fp_off, &fp);
	if (step)
		return step;
	c->pc = ARCH_RA_STRIP(ra);
	c->sp = cfa;
	c->fp = fp;
	c->is_call = true;
	c->is_chained = false;
	return STEP_OK;
}

static int step(struct walker *w, struct cursor *c, uint32_t rule, const struct space_map *map)
{
	switch (row_kind(rule)) {
	case ROW_SP:
	case ROW_FP:
	case ROW_PLT:
		return walk_step_plain(w, c, rule);
	case ROW_STOP:
		return STEP_END(WALK_ROOT);
	case ROW_SIGNAL:
		return walk_step_signal(w, c, rule);
	case ROW_SPECIAL:
		return step_special(w, c, &map->module->table->specials[row_special_idx(rule)]);
	default:
		return walk_step_gap(w, c, rule);
	}
}

/* Which of the sampled values is which register: once for each mask. */
static void index_regs(struct walker *w, uint64_t mask)
{
	static const uint8_t perf[] = ARCH_PERF_FROM_DWARF;

	w->regs_mask = mask;
	w->valid = 0;
	for (uint32_t reg = 0; reg < ARCH_NR_DWARF_REG; reg++) {
		uint64_t bit = (uint64_t)1 << perf[reg];
		if (!(mask & bit))
			continue;
		w->reg_idx[reg] = (uint8_t)__builtin_popcountll(mask & (bit - 1));
		w->valid |= (uint64_t)1 << reg;
	}
}

static bool load_regs(struct walker *w, const struct walk_input *in)
{
	if (UNLIKELY(in->regs_mask != w->regs_mask))
		index_regs(w, in->regs_mask);
	for (uint32_t reg = 0; reg < ARCH_NR_DWARF_REG; reg++)
		if (LIKELY(w->valid >> reg & 1))
			w->regs[reg] = in->regs[w->reg_idx[reg]];
	return w->valid >> ARCH_DWARF_PC & 1 && w->valid >> ARCH_DWARF_SP & 1;
}

static enum walk_end walk(struct walker *w)
{
	struct cursor c = {.pc = w->regs[ARCH_DWARF_PC],
			   .sp = w->regs[ARCH_DWARF_SP],
			   .fp = w->valid >> ARCH_DWARF_FP & 1 ? w->regs[ARCH_DWARF_FP] : 0};

	for (;;) {
		const struct space_map *map;
		uint32_t rule = walk_rule(w, &c, &map);
		/* A return address that is nowhere is not a frame; a sampled pc is one. */
		if (UNLIKELY(!map && c.is_call))
			return WALK_NO_MAP;
		if (UNLIKELY(w->nr_frames == WALK_DEPTH_MAX))
			return WALK_DEPTH;
		w->frames[w->nr_frames++] = (struct walk_frame){c.pc, map, c.is_call};

		int next = step(w, &c, rule, map);
		if (UNLIKELY(next == NEEDS_FULL))
			return walk_fully(w);
		if (UNLIKELY(next < 0))
			return STEP_TO_END(next);
		if (UNLIKELY(c.pc == 0 && c.is_call))
			return WALK_ROOT;
	}
}

enum walk_end walker_walk(struct walker *w, const struct walk_input *in,
			  const struct walk_frame **ret_frames, uint32_t *ret_nr)
{
	w->in = in;
	w->nr_frames = 0;
	w->wanted_bytes = 0;
	*ret_frames = w->frames;
	*ret_nr = 0;
	if (!load_regs(w, in))
		return WALK_NO_MAP;
	w->stack_start = w->regs[ARCH_DWARF_SP];
	enum walk_end end = walk(w);
	*ret_nr = w->nr_frames;
	return end;
}
