/*
 * The walk with all registers, from frame 0, for stacks in which a frame's rules need more than
 * sp and fp. Each frame's FDE program is run up to its pc; a small cache keeps what it gave.
 *
 * Registers that a call may destroy are unknown in the caller, unless its rules say otherwise.
 */
#include "base/base.h"
#include "unwind/walkcore.h"

struct full {
	struct walker *w;
	struct cursor c;
	uint64_t regs[ARCH_NR_DWARF_REG];
	uint64_t valid;
};

static const struct cfi_rules *find_rules(struct walker *w, const struct cursor *c,
					  const struct space_map *map)
{
	uint64_t addr = c->pc - c->is_call;
	uint32_t generation = w->in->space->generation;
	uint64_t hash = (addr ^ (uint64_t)generation << 32) * 0x9e3779b97f4a7c15u;
	struct walk_full *entry = &w->fulls[(hash >> 32) % WALK_NR_FULL];

	if (entry->addr != addr || entry->generation != generation) {
		struct ehframe_fde fde;
		struct ehframe_cie cie;
		const struct cfi_rules *rules = NULL;
		if (unwind_table_fde(map->module->table, addr - map->bias, &fde, &cie))
			rules = cfi_at(&w->run, &fde, addr - map->bias);
		entry->addr = addr;
		entry->generation = generation;
		entry->is_found = rules != NULL;
		if (rules)
			entry->rules = *rules;
	}
	return entry->is_found ? &entry->rules : NULL;
}

static bool read_for_expr(const void *ctx, uint64_t addr, size_t n, uint64_t *ret_v)
{
	/* Noting what was wanted is all that changes. */
	return walk_read_slow((struct walker *)(uintptr_t)ctx, addr, n, ret_v);
}

static struct expr_env make_env(const struct full *f, const struct space_map *map, uint64_t cfa)
{
	return (struct expr_env){.regs = f->regs,
				 .valid = f->valid,
				 .cfa = cfa,
				 .bias = map->bias,
				 .read = read_for_expr,
				 .ctx = f->w};
}

static int fail(const struct walker *w)
{
	return w->wanted_bytes ? walk_read_end(w) : STEP_END(WALK_NO_RULE);
}

static int find_cfa(const struct full *f, const struct cfi_rules *r, const struct space_map *map,
		    uint64_t *ret_cfa)
{
	struct expr_env env = make_env(f, map, 0);

	switch (r->cfa_kind) {
	case CFI_CFA_REG:
		if (r->cfa_reg >= ARCH_NR_DWARF_REG || !(f->valid >> r->cfa_reg & 1))
			return STEP_END(WALK_NO_RULE);
		*ret_cfa = f->regs[r->cfa_reg] + (uint64_t)r->cfa_off;
		return STEP_OK;
	case CFI_CFA_EXPR:
		return expr_eval(&env, r->cfa_expr, r->nr_cfa_expr, NULL, ret_cfa) ? STEP_OK
										   : fail(f->w);
	}
	return STEP_END(WALK_NO_RULE);
}

/* The value of @reg in the caller; false if it is unknown there. */
static bool find_reg(const struct full *f, const struct cfi_rule *rule, uint32_t reg,
		     const struct expr_env *env, uint64_t *ret_v)
{
	uint64_t addr;

	switch (rule->kind) {
	case CFI_SAME:
		*ret_v = f->regs[reg];
		return f->valid >> reg & 1;
	case CFI_OFFSET:
		addr = env->cfa + (uint64_t)rule->value;
		if (addr < f->c.sp && reg != ARCH_DWARF_RA) { /* popped already */
			*ret_v = f->regs[reg];
			return f->valid >> reg & 1;
		}
		return walk_read(f->w, addr, ret_v);
	case CFI_VAL_OFFSET:
		*ret_v = env->cfa + (uint64_t)rule->value;
		return true;
	case CFI_REGISTER:
		if (rule->value < 0 || rule->value >= ARCH_NR_DWARF_REG)
			return false;
		*ret_v = f->regs[rule->value];
		return f->valid >> rule->value & 1;
	case CFI_EXPR:
		return expr_eval(env, rule->expr, rule->nr_expr, &env->cfa, &addr) &&
		       walk_read(f->w, addr, ret_v);
	case CFI_VAL_EXPR:
		return expr_eval(env, rule->expr, rule->nr_expr, &env->cfa, ret_v);
	}
	return false;
}

static int step_rules(struct full *f, const struct cfi_rules *r, const struct space_map *map)
{
	uint64_t cfa;
	uint64_t regs[ARCH_NR_DWARF_REG] = {0};
	uint64_t valid = 0;
	bool is_signal = r->is_signal_frame;

	f->w->wanted_bytes = 0;
	int step = find_cfa(f, r, map, &cfa);
	if (step)
		return step;
	/* A signal handler may have run on a stack of its own. */
	if (!is_signal && !walk_is_cfa_good(&f->c, cfa))
		return STEP_END(WALK_BAD_FRAME);
	struct expr_env env = make_env(f, map, cfa);
	for (uint32_t reg = 0; reg < ARCH_NR_DWARF_REG; reg++) {
		const struct cfi_rule *rule = &r->reg[reg];
		if (reg == ARCH_DWARF_SP && rule->kind == CFI_SAME) {
			regs[reg] = cfa;
			valid |= (uint64_t)1 << reg;
			continue;
		}
		bool is_kept =
			is_signal || ARCH_DWARF_CALLEE_SAVED >> reg & 1 || reg == r->ra_column;
		if (rule->kind == CFI_SAME && !is_kept)
			continue;
		if (find_reg(f, rule, reg, &env, &regs[reg]))
			valid |= (uint64_t)1 << reg;
	}
	if (!(valid >> r->ra_column & 1) || !(valid >> ARCH_DWARF_SP & 1))
		return fail(f->w);
	/* Where pc has a column of its own, a signal frame says it there, or by its return column.
	 */
	f->c.pc = ARCH_RA_STRIP(regs[r->ra_column]);
	f->c.sp = regs[ARCH_DWARF_SP];
	f->c.fp = regs[ARCH_DWARF_FP];
	f->c.is_call = !is_signal;
	f->c.is_chained = false;
	memcpy(f->regs, regs, sizeof(regs));
	f->valid = valid;
	return STEP_OK;
}

static int step_signal(struct full *f, uint32_t rule)
{
	static const uint16_t off[] = ARCH_SIGFRAME_FROM_DWARF;
	uint64_t uc = f->c.sp + row_cfa_bytes(rule);

	int step = walk_step_signal(f->w, &f->c, rule);
	if (step)
		return step;
	f->valid = 0;
	for (uint32_t reg = 0; reg < ARCH_NR_DWARF_REG; reg++)
		if (walk_read(f->w, uc + off[reg], &f->regs[reg]))
			f->valid |= (uint64_t)1 << reg;
	return STEP_OK;
}

/* After a step that knew only pc, sp and fp: the others were kept by nobody that we know of. */
static void keep_known(struct full *f, bool are_others_kept)
{
	if (!are_others_kept)
		f->valid = 0;
	f->valid &= ARCH_DWARF_CALLEE_SAVED;
	f->valid |= (uint64_t)1 << ARCH_DWARF_SP | (uint64_t)1 << ARCH_DWARF_FP;
	f->regs[ARCH_DWARF_SP] = f->c.sp;
	f->regs[ARCH_DWARF_FP] = f->c.fp;
}

static int step(struct full *f, uint32_t rule, const struct space_map *map)
{
	int next;

	switch (row_kind(rule)) {
	case ROW_STOP:
		return STEP_END(WALK_ROOT);
	case ROW_SIGNAL:
		return step_signal(f, rule);
	case ROW_NONE:
	case ROW_OWN:
		next = walk_step_gap(f->w, &f->c, rule);
		keep_known(f, false);
		return next;
	default:
		break;
	}
	const struct cfi_rules *rules = find_rules(f->w, &f->c, map);
	if (rules)
		return step_rules(f, rules, map);
	if (row_kind(rule) == ROW_SPECIAL)
		return STEP_END(WALK_NO_RULE);
	/* A stub that the table knows without an FDE: it saves nothing. */
	next = walk_step_plain(f->w, &f->c, rule);
	keep_known(f, true);
	return next;
}

enum walk_end walk_fully(struct walker *w)
{
	struct full f = {.w = w, .valid = w->valid};

	memcpy(f.regs, w->regs, sizeof(f.regs));
	f.c.pc = w->regs[ARCH_DWARF_PC];
	f.c.sp = w->regs[ARCH_DWARF_SP];
	f.c.fp = w->valid >> ARCH_DWARF_FP & 1 ? w->regs[ARCH_DWARF_FP] : 0;
	w->nr_frames = 0;
	for (;;) {
		const struct space_map *map;
		uint32_t rule = walk_rule(w, &f.c, &map);
		if (!map && f.c.is_call)
			return WALK_NO_MAP;
		if (w->nr_frames == WALK_DEPTH_MAX)
			return WALK_DEPTH;
		w->frames[w->nr_frames++] = (struct walk_frame){f.c.pc, map, f.c.is_call};

		int next = step(&f, rule, map);
		if (next < 0)
			return STEP_TO_END(next);
		if (f.c.pc == 0 && f.c.is_call)
			return WALK_ROOT;
		/* Expressions may look at the frame's own pc. */
		f.regs[ARCH_DWARF_PC] = f.c.pc;
		f.valid |= (uint64_t)1 << ARCH_DWARF_PC;
	}
}
