/* Steps through code without rules; walk.h lists the conditions under which a frame is accepted. */
#include "base/base.h"
#include "unwind/walkcore.h"

static bool is_pseudo(uint32_t rule, enum pseudo_rule why)
{
	return rule == (ROW_PSEUDO | (uint32_t)why << ROW_KIND_BITS);
}

bool walk_is_caller(const struct walk *w, uint64_t ra, bool needs_rule)
{
	struct walk caller = {.pc = ra, .is_call = true, .walker = w->walker};

	walk_rule(&caller);
	uint32_t kind = row_kind(caller.rule);
	return caller.map && (!needs_rule || (kind != ROW_NONE && kind != ROW_PSEUDO));
}

/* Returns whether the code at @w, a caller, has rules, and these lead to another frame. */
static bool is_likely_caller(struct walk w)
{
	walk_rule(&w);
	switch (row_kind(w.rule)) {
	case ROW_STOP:
	case ROW_SPECIAL:
		return true;
	case ROW_SP:
	case ROW_FP:
		break;
	default: /* a PLT stub or a restorer does not call */
		return false;
	}
	int end = unwind_step_row(&w, w.rule);
	return end == WALK_ROOT || (end == STEP_OK && walk_is_caller(&w, w.pc, false));
}

/* Steps from a leaf function that has not touched the stack. */
static bool step_bare_leaf(struct walk *w)
{
	struct walk caller = {.fp = w->fp, .is_call = true, .walker = w->walker};

#ifdef ARCH_RA_BESIDE_FP
	if (!walk_leaf_reg(w, ARCH_DWARF_RA, &caller.pc))
		return false;
	caller.pc = ARCH_RA_STRIP(caller.pc);
	caller.sp = w->sp;
#else
	if (!walk_read(w, w->sp, &caller.pc))
		return false;
	caller.sp = w->sp + 8;
#endif
	if (!is_likely_caller(caller))
		return false;
	*w = caller;
	return true;
}

int walk_step_norule(struct walk *w)
{
	struct walker *k = w->walker;
	uint32_t rule = w->rule;
	bool is_jit = is_pseudo(rule, PSEUDO_JIT);
	bool is_nowhere = is_pseudo(rule, PSEUDO_NO_MAP);

	if (!w->is_call && !is_jit && step_bare_leaf(w))
		return STEP_OK;
	k->wanted_bytes = 0;
	int end = unwind_step_chain(w);
	if (end != WALK_NO_RULE)
		return end;
	if (is_nowhere)
		return WALK_NO_MAP;
	if (k->wanted_bytes && k->wanted_bytes < STACK_REACH_BYTES && w->fp % 8 == 0)
		return WALK_UNREADABLE;
	if (is_pseudo(rule, PSEUDO_NO_FILE))
		return WALK_NO_FILE;
	return is_jit ? WALK_JIT : WALK_NO_RULE;
}
