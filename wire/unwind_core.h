/*
 * One step of a walk: from a frame to its caller, by the row of the frame's code (unwind_row.h).
 * All walkers share this code: the BPF walker (bpf/stack_walk.bpf.h), the recorder in the target
 * (inject/heap_walk.c), and the walker in user space (src/unwind/walkcore.h). They differ in where
 * rows and stack words come from. Each defines, before it includes this header,
 *
 * struct walk, with at least
 *	pc, sp, fp		of the current frame
 *	is_call			pc is a return address; else the frame was interrupted
 *	is_chained		the frame was found by a frame pointer
 *	fp_slot			where the step read the caller's fp: offset in words from the
 *				caller's sp (the CFA); ROW_FP_SAME: the step did not read it. Only
 *				steps with a row of kind SP, FP or PLT set it, and only if
 *				ARCH_RA_BESIDE_FP is not defined
 * and the functions
 *	walk_read		reads the word at an address, a multiple of 8; false: not readable
 *	walk_leaf_reg		value of a register, by DWARF number, in the leaf; false: not known,
 *				or the walk is not at the leaf
 *	walk_is_caller		whether the address before a return address is code and, with
 *				@needs_rule, code with unwind rules
 *	walk_step_special	calls unwind_step_special with the special rule of @rule
 *	walk_step_norule	steps through code without rules: by unwind_step_chain, or by what
 *				the walker knows of that code
 *
 * Steps return STEP_OK (the walk is at the caller) or why there is no caller (enum walk_end).
 */
#ifndef ASSAY_WIRE_UNWIND_CORE_H
#define ASSAY_WIRE_UNWIND_CORE_H

#include "arch.h"
#include "unwind_row.h"
#include "walk_end.h"

#define STEP_OK     (-1)
#define STEP_INLINE static inline __attribute__((always_inline))

/*
 * Whether a CFA is possible: aligned and above sp. It may equal sp in a leaf whose return address
 * is in a register (unwind_step_special).
 */
STEP_INLINE bool unwind_is_cfa_good(const struct walk *w, wire_u64 cfa)
{
	return !(cfa & 7) && (cfa > w->sp || (cfa == w->sp && !w->is_call));
}

/* Moves the walk to the caller. */
STEP_INLINE int unwind_return(struct walk *w, wire_u64 ra, wire_u64 cfa, wire_u64 fp)
{
	w->pc = ARCH_RA_STRIP(ra);
	w->sp = cfa;
	w->fp = fp;
	w->is_call = true;
	w->is_chained = false;
	return w->pc ? STEP_OK : WALK_ROOT;
}

/* A step by a row of kind SP, FP or PLT. */
STEP_INLINE int unwind_step_row(struct walk *w, wire_u32 rule)
{
	wire_u32 offset = row_cfa_bytes(rule);
	wire_s32 slot = row_fp_slot(rule);
	wire_u64 fp = w->fp;
	wire_u64 cfa, ra;

	if (row_kind(rule) == ROW_SP)
		cfa = w->sp + offset;
	else if (row_kind(rule) == ROW_FP)
		cfa = fp + offset;
	else
		cfa = w->sp + ((w->pc & 15) >= offset / 8 ? 16 : 8);
	if (UNLIKELY(!unwind_is_cfa_good(w, cfa)))
		return WALK_BAD_FRAME;
	/* The lower word is read first, since walkers read ahead upwards. A slot below sp was
	 * popped by an epilogue: the register has the caller's value again. */
	wire_u64 fp_at = cfa + (wire_u64)((wire_s64)slot * 8);
	bool is_saved = slot != ROW_FP_SAME && fp_at >= w->sp;
	if (is_saved && UNLIKELY(!walk_read(w, fp_at, &fp)))
		return WALK_UNREADABLE;
#ifdef ARCH_RA_BESIDE_FP
	if (slot == ROW_FP_SAME) {
		/* Only a leaf function still has the return address in the register. */
		if (!walk_leaf_reg(w, ARCH_DWARF_RA, &ra))
			return w->is_call ? WALK_BAD_FRAME : WALK_NEEDS_FULL;
	} else if (UNLIKELY(!walk_read(w, fp_at + 8, &ra))) {
		return WALK_UNREADABLE;
	}
#else
	w->fp_slot = is_saved ? slot : ROW_FP_SAME;
	if (UNLIKELY(!walk_read(w, cfa + (wire_u64)(wire_s64)ARCH_RA_AT_CFA, &ra)))
		return WALK_UNREADABLE;
#endif
	return unwind_return(w, ra, cfa, fp);
}

/* A step by the kernel's signal frame. */
STEP_INLINE int unwind_step_signal(struct walk *w, wire_u32 rule)
{
	static const wire_u16 off[] = ARCH_SIGFRAME_FROM_DWARF;
	wire_u64 uc = w->sp + row_cfa_bytes(rule);
	wire_u64 pc, sp, fp;

	if (uc & 7)
		return WALK_BAD_FRAME;
	if (!walk_read(w, uc + off[ARCH_DWARF_FP], &fp) ||
	    !walk_read(w, uc + off[ARCH_DWARF_SP], &sp) ||
	    !walk_read(w, uc + off[ARCH_DWARF_PC], &pc))
		return WALK_UNREADABLE;
	w->pc = pc;
	w->sp = sp; /* not checked: the handler may have run on an alternate signal stack */
	w->fp = fp;
	w->is_call = false;
	w->is_chained = false;
	return STEP_OK;
}

STEP_INLINE bool unwind_reg(struct walk *w, wire_u32 reg, wire_u64 *ret_v)
{
	if (reg == ARCH_DWARF_SP)
		*ret_v = w->sp;
	else if (reg == ARCH_DWARF_FP)
		*ret_v = w->fp;
	else
		return walk_leaf_reg(w, reg, ret_v);
	return true;
}

STEP_INLINE int unwind_read(struct walk *w, wire_u64 addr, wire_u64 *ret_v)
{
	if (addr & 7)
		return WALK_BAD_FRAME;
	return walk_read(w, addr, ret_v) ? STEP_OK : WALK_UNREADABLE;
}

/* A register's value in the caller; *ret_v is not written if the value is the same. */
STEP_INLINE int unwind_saved(struct walk *w, wire_u64 cfa, wire_u32 kind, wire_u32 reg,
			     wire_s32 off, wire_u64 *ret_v)
{
	wire_u64 v = 0;

	if (kind == SPECIAL_SAME)
		return STEP_OK;
	if (kind == SPECIAL_AT_CFA) {
		wire_u64 at = cfa + (wire_u64)(wire_s64)off;
		if (at < w->sp) /* popped by an epilogue: the register has the caller's value */
			return STEP_OK;
		return unwind_read(w, at, ret_v);
	}
	if (!unwind_reg(w, reg, &v))
		return WALK_NEEDS_FULL;
	if (kind == SPECIAL_AT_REG)
		return unwind_read(w, v + (wire_u64)(wire_s64)off, ret_v);
	*ret_v = v;
	return STEP_OK;
}

STEP_INLINE int unwind_step_special(struct walk *w, const struct unwind_special *s)
{
	wire_u64 cfa = 0, ra = 0;
	wire_u64 fp = w->fp;

	if (s->cfa_kind == SPECIAL_CFA_FULL || !unwind_reg(w, s->cfa_reg, &cfa))
		return WALK_NEEDS_FULL;
	cfa += (wire_u64)(wire_s64)s->cfa_off;
	if (s->cfa_kind == SPECIAL_CFA_DEREF) {
		int end = unwind_read(w, cfa, &cfa);
		if (end != STEP_OK)
			return end;
		cfa += (wire_u64)(wire_s64)s->cfa_off2;
	}
	/* A leaf in a system call has is_call set, as vfork of the C library, which keeps its return
	 * address in a register because the child overwrites the stack. */
	bool is_popped = s->ra_kind == SPECIAL_IN_REG && cfa == w->sp && !(cfa & 7);
	if (s->flags & SPECIAL_OTHER_STACK ? cfa & 7 : !is_popped && !unwind_is_cfa_good(w, cfa))
		return WALK_BAD_FRAME;
	int end = unwind_saved(w, cfa, s->ra_kind, s->ra_reg, s->ra_off, &ra);
	if (end == STEP_OK)
		end = unwind_saved(w, cfa, s->fp_kind, s->fp_reg, s->fp_off, &fp);
	return end == STEP_OK ? unwind_return(w, ra, cfa, fp) : end;
}

/* A step by the frame pointer, if it points upwards and the return address is code. */
STEP_INLINE int unwind_step_chain(struct walk *w)
{
	wire_u64 at = w->fp;
	wire_u64 fp = 0, ra = 0;

	if (at == 0 && w->is_chained)
		return WALK_ROOT;
	if (at & 7 || at < w->sp || !walk_read(w, at, &fp) || !walk_read(w, at + 8, &ra))
		return WALK_NO_RULE;
	ra = ARCH_RA_STRIP(ra);
	if (ra == 0) /* end of the chain: a new thread starts with zeros */
		return fp == 0 ? WALK_ROOT : WALK_NO_RULE;
	/* A frame pointer chain points upwards. If it does not, the caller may be code that uses
	 * the register for something else; such code must have rules. */
	if (!walk_is_caller(w, ra, fp <= at && fp != 0))
		return WALK_NO_RULE;
	w->pc = ra;
	w->sp = at + 16;
	w->fp = fp;
	w->is_call = true;
	w->is_chained = true;
	return STEP_OK;
}

STEP_INLINE int unwind_step(struct walk *w, wire_u32 rule)
{
	switch (row_kind(rule)) {
	case ROW_SP:
	case ROW_FP:
	case ROW_PLT:
		return unwind_step_row(w, rule);
	case ROW_STOP:
		return WALK_ROOT;
	case ROW_SIGNAL:
		return unwind_step_signal(w, rule);
	case ROW_SPECIAL:
		return walk_step_special(w, rule);
	default:
		return walk_step_norule(w);
	}
}

#endif
