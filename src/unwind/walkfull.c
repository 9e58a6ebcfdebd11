/*
 * The full walk: from frame 0 with all registers, for stacks in which the rules of a frame need
 * more than sp and fp. Runs each frame's FDE program up to its pc; a small cache holds the
 * resulting rules.
 *
 * Caller-saved registers are unknown in the caller, unless its rules define them.
 */
#include "base/base.h"
#include "unwind/walkcore.h"

struct full {
	struct walk w;
	uint64_t regs[ARCH_NR_DWARF_REG];
	uint64_t valid;
};

static const struct cfi_rules *find_rules(const struct walk *w)
{
	struct walker *k = w->walker;
	uint64_t addr = w->pc - w->is_call;
	uint64_t vaddr = addr - w->map->bias;
	uint32_t generation = k->in->space->generation;
	uint64_t hash = (addr ^ (uint64_t)generation << 32) * 0x9e3779b97f4a7c15u;
	struct walk_full *entry = &k->full_cache[(hash >> 32) % WALK_NR_FULL];

	if (entry->addr != addr || entry->generation != generation) {
		struct ehframe_fde fde;
		struct ehframe_cie cie;
		const struct cfi_rules *rules = NULL;
		if (unwind_table_fde(w->map->module->table, vaddr, &fde, &cie))
			rules = cfi_at(&k->run, &fde, vaddr);
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
	/* The cast is safe: only wanted_bytes is modified. */
	return walk_read_slow((struct walker *)(uintptr_t)ctx, addr, n, ret_v);
}

static struct expr_env make_env(const struct full *f, uint64_t cfa)
{
	return (struct expr_env){.regs = f->regs,
				 .valid = f->valid,
				 .cfa = cfa,
				 .bias = f->w.map->bias,
				 .read = read_for_expr,
				 .ctx = f->w.walker};
}

static int fail(const struct walk *w)
{
	return w->walker->wanted_bytes ? WALK_UNREADABLE : WALK_NO_RULE;
}

static int find_cfa(const struct full *f, const struct cfi_rules *r, uint64_t *ret_cfa)
{
	struct expr_env env = make_env(f, 0);

	switch (r->cfa_kind) {
	case CFI_CFA_REG:
		if (r->cfa_reg >= ARCH_NR_DWARF_REG || !(f->valid >> r->cfa_reg & 1))
			return WALK_NO_RULE;
		*ret_cfa = f->regs[r->cfa_reg] + (uint64_t)r->cfa_off;
		return STEP_OK;
	case CFI_CFA_EXPR:
		return expr_eval(&env, r->cfa_expr, r->nr_cfa_expr, NULL, ret_cfa) ? STEP_OK
										   : fail(&f->w);
	}
	return WALK_NO_RULE;
}

/* Gets the value of @reg in the caller; false if it is unknown. */
static bool find_reg(struct full *f, const struct cfi_rule *rule, uint32_t reg,
		     const struct expr_env *env, uint64_t *ret_v)
{
	uint64_t addr;

	switch (rule->kind) {
	case CFI_SAME:
		*ret_v = f->regs[reg];
		return f->valid >> reg & 1;
	case CFI_OFFSET:
		addr = env->cfa + (uint64_t)rule->value;
		if (addr < f->w.sp && reg != ARCH_DWARF_RA) { /* already popped */
			*ret_v = f->regs[reg];
			return f->valid >> reg & 1;
		}
		return walk_read(&f->w, addr, ret_v);
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
		       walk_read(&f->w, addr, ret_v);
	case CFI_VAL_EXPR:
		return expr_eval(env, rule->expr, rule->nr_expr, &env->cfa, ret_v);
	}
	return false;
}

static int step_rules(struct full *f, const struct cfi_rules *r)
{
	uint64_t cfa;
	uint64_t regs[ARCH_NR_DWARF_REG] = {0};
	uint64_t valid = 0;
	bool is_signal = r->is_signal_frame;

	f->w.walker->wanted_bytes = 0;
	int end = find_cfa(f, r, &cfa);
	if (end != STEP_OK)
		return end;
	/* A signal handler may have run on an alternate stack. */
	if (!is_signal && !unwind_is_cfa_good(&f->w, cfa))
		return WALK_BAD_FRAME;
	struct expr_env env = make_env(f, cfa);
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
		return fail(&f->w);
	/* The return address column of a signal frame holds the interrupted pc. */
	end = unwind_return(&f->w, regs[r->ra_column], regs[ARCH_DWARF_SP], regs[ARCH_DWARF_FP]);
	f->w.is_call = !is_signal;
	memcpy(f->regs, regs, sizeof(regs));
	f->valid = valid;
	return is_signal ? STEP_OK : end;
}

static int step_signal(struct full *f)
{
	static const uint16_t off[] = ARCH_SIGFRAME_FROM_DWARF;
	uint64_t uc = f->w.sp + row_cfa_bytes(f->w.rule);

	int end = unwind_step_signal(&f->w, f->w.rule);
	if (end != STEP_OK)
		return end;
	f->valid = 0;
	for (uint32_t reg = 0; reg < ARCH_NR_DWARF_REG; reg++)
		if (walk_read(&f->w, uc + off[reg], &f->regs[reg]))
			f->valid |= (uint64_t)1 << reg;
	return STEP_OK;
}

/*
 * After a step that used only pc, sp and fp: sets them, and drops registers that may have changed.
 */
static void keep_known(struct full *f, bool are_others_kept)
{
	if (!are_others_kept)
		f->valid = 0;
	f->valid &= ARCH_DWARF_CALLEE_SAVED;
	f->valid |= (uint64_t)1 << ARCH_DWARF_SP | (uint64_t)1 << ARCH_DWARF_FP;
	f->regs[ARCH_DWARF_SP] = f->w.sp;
	f->regs[ARCH_DWARF_FP] = f->w.fp;
}

static int step(struct full *f)
{
	int end;

	switch (row_kind(f->w.rule)) {
	case ROW_STOP:
		return WALK_ROOT;
	case ROW_SIGNAL:
		return step_signal(f);
	case ROW_NONE:
	case ROW_PSEUDO:
		end = walk_step_norule(&f->w);
		keep_known(f, false);
		return end;
	default:
		break;
	}
	const struct cfi_rules *rules = find_rules(&f->w);
	if (rules)
		return step_rules(f, rules);
	if (row_kind(f->w.rule) == ROW_SPECIAL)
		return WALK_NO_RULE;
	/* A stub that has a row but no FDE: it saves no registers. */
	end = unwind_step_row(&f->w, f->w.rule);
	keep_known(f, true);
	return end;
}

enum walk_end walk_full_regs(struct walker *k)
{
	struct full f = {.w = walk_begin(k), .valid = k->valid};

	memcpy(f.regs, k->regs, sizeof(f.regs));
	for (;;) {
		int end = walk_add_frame(&f.w);
		if (end == STEP_OK)
			end = step(&f);
		if (end != STEP_OK)
			return (enum walk_end)end;
		/* Expressions may read the frame's own pc. */
		f.regs[ARCH_DWARF_PC] = f.w.pc;
		f.valid |= (uint64_t)1 << ARCH_DWARF_PC;
	}
}
