/*
 * Steps through code without rules; what is accepted as evidence stands in walk.h.
 */
#include "base/base.h"
#include "unwind/walkcore.h"

static bool is_rule(uint32_t rule)
{
	return row_kind(rule) != ROW_NONE && row_kind(rule) != ROW_OWN;
}

static bool is_own(uint32_t rule, enum own_rule why)
{
	return rule == (ROW_OWN | (uint32_t)why << ROW_KIND_BITS);
}

/* Whether a caller at @c is followed by rules, and these lead on. */
static bool is_likely_caller(struct walker *w, struct cursor c)
{
	const struct space_map *map;
	uint32_t rule = walk_rule(w, &c, &map);

	switch (row_kind(rule)) {
	case ROW_STOP:
	case ROW_SPECIAL:
		return true;
	case ROW_SP:
	case ROW_FP:
		break;
	default: /* a PLT stub or a restorer does not call */
		return false;
	}
	if (walk_step_plain(w, &c, rule) != STEP_OK)
		return false;
	(void)walk_rule(w, &c, &map);
	return map || c.pc == 0;
}

/* A leaf that has not touched the stack. */
static bool step_bare_leaf(struct walker *w, struct cursor *c)
{
	struct cursor caller = {.fp = c->fp, .is_call = true};

#ifdef ARCH_RA_BESIDE_FP
	if (w->nr_frames != 1 || !(w->valid >> ARCH_DWARF_RA & 1))
		return false;
	caller.pc = ARCH_RA_STRIP(w->regs[ARCH_DWARF_RA]);
	caller.sp = c->sp;
#else
	if (!walk_read(w, c->sp, &caller.pc))
		return false;
	caller.sp = c->sp + 8;
#endif
	if (!is_likely_caller(w, caller))
		return false;
	*c = caller;
	return true;
}

static bool step_frame_pointer(struct walker *w, struct cursor *c)
{
	struct cursor caller = {.sp = c->fp + 16, .is_call = true, .is_chained = true};
	const struct space_map *map;
	uint64_t ra;

	if (c->fp % 8 || c->fp < c->sp || !walk_read(w, c->fp, &caller.fp) ||
	    !walk_read(w, c->fp + 8, &ra))
		return false;
	caller.pc = ARCH_RA_STRIP(ra);
	if (caller.pc == 0 && caller.fp == 0) { /* the chain's end, as clone starts it */
		*c = caller;
		return true;
	}
	uint32_t rule = walk_rule(w, &caller, &map);
	if (!map)
		return false;
	/* A chain leads upwards. One that does not may still end in code that has rules and uses
	 * the register for something else. */
	if (caller.fp <= c->fp && caller.fp != 0 && !is_rule(rule))
		return false;
	*c = caller;
	return true;
}

int walk_step_gap(struct walker *w, struct cursor *c, uint32_t rule)
{
	bool is_jit = is_own(rule, OWN_JIT);

	w->wanted_bytes = 0;
	if (!c->is_call && !is_jit && step_bare_leaf(w, c))
		return STEP_OK;
	w->wanted_bytes = 0;
	if (step_frame_pointer(w, c))
		return STEP_OK;
	if (c->fp == 0 && c->is_chained)
		return STEP_END(WALK_ROOT);
	if (w->wanted_bytes && walk_read_end(w) == STEP_END(WALK_COPY) && c->fp % 8 == 0 &&
	    !is_own(rule, OWN_NO_MAP))
		return STEP_END(WALK_COPY);
	if (is_own(rule, OWN_NO_MAP))
		return STEP_END(WALK_NO_MAP);
	if (is_own(rule, OWN_NO_FILE))
		return STEP_END(WALK_NO_FILE);
	return STEP_END(is_jit ? WALK_JIT : WALK_NO_RULE);
}
