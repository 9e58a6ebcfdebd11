/*
 * The fast walk, by the steps of wire/unwind_core.h. Nearly every frame needs only pc, sp and fp,
 * so only these are tracked. If a row needs another register, walkfull.c starts over from frame 0.
 *
 * A frame costs a cache lookup and one or two reads of copied stack. The cache is keyed by address
 * and generation of the space, so a change of mappings invalidates entries without a sweep.
 */
#include "base/base.h"
#include "unwind/walk.h"

#include <stdlib.h>

#include "base/mem.h"
#include "unwind/walkcore.h"

#define ADDR_BITS 48
#define ADDR_MASK (((uint64_t)1 << ADDR_BITS) - 1)

struct walker *walker_new(void)
{
	return xcalloc(1, sizeof(struct walker));
}

void walker_free(struct walker *w)
{
	free(w);
}

bool walk_read_slow(struct walker *k, uint64_t addr, size_t n, uint64_t *ret_v)
{
	uint64_t off = addr - k->stack_start;

	if (off + n <= k->in->nr_stack && off + n > off) {
		uint64_t v = 0;
		memcpy(&v, k->in->stack + off, n);
		*ret_v = v;
		return true;
	}
	k->wanted_bytes = off + n > off ? off + n : UINT64_MAX;
	return false;
}

static uint32_t make_pseudo(enum pseudo_rule why)
{
	return ROW_PSEUDO | (uint32_t)why << ROW_KIND_BITS;
}

static uint32_t find_rule(const struct space_map *map, uint64_t addr, bool is_call)
{
	const struct unwind_module *module = map->module;
	const struct unwind_table *table = module ? module->table : NULL;

	if (!table) {
		if (module && module->is_jit)
			return make_pseudo(PSEUDO_JIT);
		return make_pseudo(module && module->is_missing ? PSEUDO_NO_FILE : PSEUDO_NO_TABLE);
	}
	uint64_t vaddr = addr - map->bias;
	const struct unwind_row *row = unwind_table_find(table, vaddr);
	if (is_call) {
		/*
		 * A signal handler returns to the first byte of the restorer: no call precedes it.
		 */
		const struct unwind_row *next = unwind_table_find(table, vaddr + 1);
		if (next != row && next && row_kind(next->rule) == ROW_SIGNAL)
			return next->rule;
	}
	if (row && row_kind(row->rule) != ROW_NONE)
		return row->rule;
	return table->nr_fdes ? ROW_NONE : make_pseudo(PSEUDO_NO_TABLE);
}

static void fill_rule(struct walk *w, uint64_t addr, struct walk_cache *entry)
{
	struct space *space = w->walker->in->space;
	const struct space_map *map = space_find(space, addr);

	w->map = map;
	w->rule = map ? find_rule(map, addr, w->is_call) : make_pseudo(PSEUDO_NO_MAP);
	if (!map)
		return;
	size_t idx = (size_t)(map - space->maps.p);
	if (idx >> 16 == 0 && addr >> ADDR_BITS == 0) {
		entry->addr_map = addr | (uint64_t)idx << ADDR_BITS;
		entry->generation = space->generation;
		entry->rule = w->rule;
	}
}

void walk_rule(struct walk *w)
{
	struct space *space = w->walker->in->space;
	uint64_t addr = w->pc - w->is_call;
	uint64_t hash = (addr ^ (uint64_t)space->generation << 32) * 0x9e3779b97f4a7c15u;
	struct walk_cache *entry = &w->walker->cache[hash >> (64 - WALK_CACHE_BITS)];

	/* The cache need not distinguish return addresses from interrupted pcs: the former are
	 * looked up at a byte of the call. At a restorer's first byte both have the same rule. */
	if (LIKELY((entry->addr_map & ADDR_MASK) == addr &&
		   entry->generation == space->generation)) {
		w->map = &space->maps.p[entry->addr_map >> ADDR_BITS];
		w->rule = entry->rule;
		return;
	}
	fill_rule(w, addr, entry);
}

int walk_step_special(struct walk *w, uint32_t rule)
{
	return unwind_step_special(w, &w->map->module->table->specials[row_special_idx(rule)]);
}

/* Computes the index of each register in the sampled values; repeated only for a new mask. */
static void index_regs(struct walker *k, uint64_t mask)
{
	static const uint8_t perf[] = ARCH_PERF_FROM_DWARF;

	k->regs_mask = mask;
	k->valid = 0;
	for (uint32_t reg = 0; reg < ARCH_NR_DWARF_REG; reg++) {
		uint64_t bit = (uint64_t)1 << perf[reg];
		if (!(mask & bit))
			continue;
		k->reg_idx[reg] = (uint8_t)__builtin_popcountll(mask & (bit - 1));
		k->valid |= (uint64_t)1 << reg;
	}
}

static bool load_regs(struct walker *k, const struct walk_input *in)
{
	if (UNLIKELY(in->regs_mask != k->regs_mask))
		index_regs(k, in->regs_mask);
	for (uint32_t reg = 0; reg < ARCH_NR_DWARF_REG; reg++)
		if (LIKELY(k->valid >> reg & 1))
			k->regs[reg] = in->regs[k->reg_idx[reg]];
	return k->valid >> ARCH_DWARF_PC & 1 && k->valid >> ARCH_DWARF_SP & 1;
}

struct walk walk_begin(struct walker *k)
{
	k->nr_frames = 0;
	return (struct walk){.pc = k->regs[ARCH_DWARF_PC],
			     .sp = k->regs[ARCH_DWARF_SP],
			     .fp = k->valid >> ARCH_DWARF_FP & 1 ? k->regs[ARCH_DWARF_FP] : 0,
			     .walker = k};
}

int walk_add_frame(struct walk *w)
{
	struct walker *k = w->walker;

	walk_rule(w);
	/* A return address in no mapping is not a frame; a sampled pc always is. */
	if (UNLIKELY(!w->map && w->is_call))
		return WALK_NO_MAP;
	if (UNLIKELY(k->nr_frames == WALK_DEPTH_MAX))
		return WALK_DEPTH;
	k->frames[k->nr_frames++] = (struct walk_frame){w->pc, w->map, w->is_call};
	return STEP_OK;
}

static enum walk_end walk(struct walker *k)
{
	struct walk w = walk_begin(k);
	int end;

	do {
		end = walk_add_frame(&w);
		if (LIKELY(end == STEP_OK))
			end = unwind_step(&w, w.rule);
	} while (LIKELY(end == STEP_OK));
	return end == WALK_NEEDS_FULL ? walk_full_regs(k) : (enum walk_end)end;
}

enum walk_end walker_walk(struct walker *k, const struct walk_input *in,
			  const struct walk_frame **ret_frames, uint32_t *ret_nr)
{
	k->in = in;
	k->wanted_bytes = 0;
	*ret_frames = k->frames;
	*ret_nr = 0;
	if (!load_regs(k, in))
		return WALK_NO_MAP;
	k->stack_start = k->regs[ARCH_DWARF_SP];
	enum walk_end end = walk(k);
	*ret_nr = k->nr_frames;
	if (end == WALK_UNREADABLE && k->wanted_bytes >= STACK_REACH_BYTES)
		return WALK_BAD_FRAME;
	return end;
}
