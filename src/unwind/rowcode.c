#include "base/base.h"
#include "unwind/rowcode.h"

#include "base/hash.h"

enum { OP_BREG0 = 0x70, OP_DEREF = 0x06, OP_PLUS_UCONST = 0x23 };

void row_coder_release(struct row_coder *c)
{
	vec_release(&c->specials);
	map_release(&c->special_by_hash);
}

uint32_t row_code_special(struct row_coder *c, const struct unwind_special *s)
{
	uint64_t hash = hash_bytes(s, sizeof(*s));
	bool is_new;

	/* On a hash collision the rule is stored again, which only costs memory. */
	uint32_t *idx = map_put(&c->special_by_hash, hash, &is_new);
	if (is_new || memcmp(&c->specials.p[*idx], s, sizeof(*s))) {
		*idx = (uint32_t)c->specials.n;
		vec_push(&c->specials, *s);
	}
	return ROW_SPECIAL | *idx << ROW_KIND_BITS;
}

static uint32_t code_full(struct row_coder *c, const struct cfi_rules *rules)
{
	struct unwind_special s = {.cfa_kind = SPECIAL_CFA_FULL};
	s.flags = rules->is_signal_frame ? SPECIAL_IS_SIGNAL : 0;
	return row_code_special(c, &s);
}

static bool is_s32(int64_t v)
{
	return v >= INT32_MIN && v <= INT32_MAX;
}

/* Parses breg N, or breg N deref, or breg N deref plus_uconst M. */
struct breg {
	uint8_t reg;
	bool is_deref;
	int64_t off;
	int64_t off2;
};

static bool parse_breg(const uint8_t *p, size_t n, struct breg *ret)
{
	struct rd r = rd_from(p, n);
	uint8_t op = rd_u8(&r);

	if (r.is_bad || op < OP_BREG0 || op >= OP_BREG0 + 32 || op - OP_BREG0 >= ARCH_NR_DWARF_REG)
		return false;
	*ret = (struct breg){.reg = (uint8_t)(op - OP_BREG0), .off = rd_sleb(&r)};
	ret->is_deref = rd_left(&r) > 0;
	if (ret->is_deref && rd_u8(&r) != OP_DEREF)
		return false;
	if (rd_left(&r)) {
		if (rd_u8(&r) != OP_PLUS_UCONST)
			return false;
		ret->off2 = (int64_t)rd_uleb(&r);
	}
	return !r.is_bad && !rd_left(&r) && is_s32(ret->off) && is_s32(ret->off2);
}

static bool special_reg(const struct cfi_rule *rule, uint8_t *ret_kind, uint8_t *ret_reg,
			int32_t *ret_off)
{
	struct breg at;

	switch (rule->kind) {
	case CFI_SAME:
	case CFI_UNDEFINED:
		*ret_kind = SPECIAL_SAME;
		return true;
	case CFI_OFFSET:
		if (!is_s32(rule->value))
			return false;
		*ret_kind = SPECIAL_AT_CFA;
		*ret_off = (int32_t)rule->value;
		return true;
	case CFI_REGISTER:
		if (rule->value < 0 || rule->value >= ARCH_NR_DWARF_REG)
			return false;
		*ret_kind = SPECIAL_IN_REG;
		*ret_reg = (uint8_t)rule->value;
		return true;
	case CFI_EXPR:
		if (!parse_breg(rule->expr, rule->nr_expr, &at) || at.is_deref)
			return false;
		*ret_kind = SPECIAL_AT_REG;
		*ret_reg = at.reg;
		*ret_off = (int32_t)at.off;
		return true;
	}
	return false;
}

static uint32_t code_odd(struct row_coder *c, const struct cfi_rules *rules)
{
	struct unwind_special s = {0};
	const struct cfi_rule *ra = &rules->reg[rules->ra_column];

	if (rules->is_signal_frame || rules->reg[ARCH_DWARF_SP].kind != CFI_SAME ||
	    rules->ra_column != ARCH_DWARF_RA)
		return code_full(c, rules);
	if (rules->cfa_kind == CFI_CFA_REG) {
		if (rules->cfa_reg >= ARCH_NR_DWARF_REG || !is_s32(rules->cfa_off))
			return ROW_NONE;
		s.cfa_kind = SPECIAL_CFA_REG;
		s.cfa_reg = (uint8_t)rules->cfa_reg;
		s.cfa_off = (int32_t)rules->cfa_off;
	} else {
		struct breg cfa;
		/* Without deref it would be the same as a plain def_cfa: not seen in practice. */
		if (!parse_breg(rules->cfa_expr, rules->nr_cfa_expr, &cfa) || !cfa.is_deref)
			return code_full(c, rules);
		s.cfa_kind = SPECIAL_CFA_DEREF;
		s.cfa_reg = cfa.reg;
		s.cfa_off = (int32_t)cfa.off;
		s.cfa_off2 = (int32_t)cfa.off2;
	}
	if (!special_reg(&rules->reg[ARCH_DWARF_FP], &s.fp_kind, &s.fp_reg, &s.fp_off) ||
	    !special_reg(ra, &s.ra_kind, &s.ra_reg, &s.ra_off))
		return code_full(c, rules);
	if (s.ra_kind == SPECIAL_SAME) { /* still in its register, if the architecture has one */
		if (ARCH_DWARF_RA == ARCH_DWARF_PC)
			return ROW_NONE;
		s.ra_kind = SPECIAL_IN_REG;
		s.ra_reg = ARCH_DWARF_RA;
	}
	return row_code_special(c, &s);
}

#ifndef ARCH_RA_BESIDE_FP
/* The CFA expression that linkers write for .plt: breg7 8, breg16 0, lit15, and, lit N, ge, lit3,
 * shl, plus. */
static bool code_plt(const struct cfi_rules *rules, uint32_t *ret_rule)
{
	static const uint8_t head[] = {0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a};
	static const uint8_t tail[] = {0x2a, 0x33, 0x24, 0x22};
	const uint8_t *p = rules->cfa_expr;

	if (rules->nr_cfa_expr != sizeof(head) + 1 + sizeof(tail) ||
	    memcmp(p, head, sizeof(head)) || memcmp(p + sizeof(head) + 1, tail, sizeof(tail)))
		return false;
	uint32_t threshold = p[sizeof(head)] - 0x30u;
	if (threshold > 15)
		return false;
	*ret_rule = row_make(ROW_PLT, threshold * 8, ROW_FP_SAME);
	return true;
}

/* The C library's signal restorer: CFA = the saved stack pointer, in the ucontext at sp + off. */
static bool code_signal(const struct cfi_rules *rules, uint32_t *ret_rule)
{
	static const uint8_t reg_off[] = ARCH_SIGFRAME_FROM_DWARF;
	struct breg cfa;

	if (rules->cfa_kind != CFI_CFA_EXPR ||
	    !parse_breg(rules->cfa_expr, rules->nr_cfa_expr, &cfa) || !cfa.is_deref || cfa.off2 ||
	    cfa.reg != ARCH_DWARF_SP)
		return false;
	int64_t uc = cfa.off - reg_off[ARCH_DWARF_SP];
	if (uc < 0 || uc % 8 || uc >= (int64_t)ROW_CFA_REACH)
		return false;
	*ret_rule = row_make(ROW_SIGNAL, (uint32_t)uc, ROW_FP_SAME);
	return true;
}
#else
static bool code_plt(const struct cfi_rules *rules, uint32_t *ret_rule)
{
	(void)rules;
	(void)ret_rule;
	return false;
}
/* The vDSO's sigreturn trampoline is the only one. */
static bool code_signal(const struct cfi_rules *rules, uint32_t *ret_rule)
{
	(void)rules;
	*ret_rule = row_make(ROW_SIGNAL, ARCH_SIGFRAME_UC, ROW_FP_SAME);
	return true;
}
#endif

/* Gets where the caller's fp is saved, in slots; false if a row cannot encode it. */
static bool fp_slot(const struct cfi_rules *rules, int32_t *ret_slot)
{
	const struct cfi_rule *fp = &rules->reg[ARCH_DWARF_FP];

	if (fp->kind == CFI_SAME || fp->kind == CFI_UNDEFINED) {
		*ret_slot = ROW_FP_SAME;
		return true;
	}
	if (fp->kind != CFI_OFFSET || fp->value % 8 || fp->value / 8 <= ROW_FP_SAME ||
	    fp->value / 8 > -ROW_FP_SAME - 1)
		return false;
	*ret_slot = (int32_t)(fp->value / 8);
	return true;
}

static bool is_ra_usual(const struct cfi_rules *rules, int32_t slot)
{
	const struct cfi_rule *ra = &rules->reg[ARCH_DWARF_RA];
#ifdef ARCH_RA_BESIDE_FP
	if (slot == ROW_FP_SAME)
		return ra->kind == CFI_SAME;
	return ra->kind == CFI_OFFSET && ra->value == (int64_t)slot * 8 + 8;
#else
	(void)slot;
	return ra->kind == CFI_OFFSET && ra->value == ARCH_RA_AT_CFA;
#endif
}

uint32_t row_code(struct row_coder *c, const struct cfi_rules *rules)
{
	uint32_t rule;
	int32_t slot;

	if (rules->reg[rules->ra_column].kind == CFI_UNDEFINED)
		return ROW_STOP;
	if (UNLIKELY(rules->is_signal_frame && code_signal(rules, &rule)))
		return rule;
	bool is_usual = rules->ra_column == ARCH_DWARF_RA &&
			rules->reg[ARCH_DWARF_SP].kind == CFI_SAME && !rules->is_signal_frame &&
			fp_slot(rules, &slot) && is_ra_usual(rules, slot);
	if (rules->cfa_kind == CFI_CFA_NONE)
		return ROW_NONE;
	if (LIKELY(is_usual && rules->cfa_kind == CFI_CFA_REG &&
		   (rules->cfa_reg == ARCH_DWARF_SP || rules->cfa_reg == ARCH_DWARF_FP) &&
		   rules->cfa_off >= 0 && rules->cfa_off < (int64_t)ROW_CFA_REACH &&
		   rules->cfa_off % 8 == 0))
		return row_make(rules->cfa_reg == ARCH_DWARF_SP ? ROW_SP : ROW_FP,
				(uint32_t)rules->cfa_off, slot);
	if (is_usual && slot == ROW_FP_SAME && rules->cfa_kind == CFI_CFA_EXPR &&
	    code_plt(rules, &rule))
		return rule;
	return code_odd(c, rules);
}
