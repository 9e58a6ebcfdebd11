/*
 * The interpreter of call frame programs. It keeps the rules of all registers. A remember_state or
 * the start of an FDE copies about 300 bytes, which costs less than tracking which rules are
 * needed.
 */
#include "base/base.h"
#include "unwind/cfi.h"

enum {
	CFA_NOP = 0x00,
	CFA_SET_LOC = 0x01,
	CFA_ADVANCE_LOC1 = 0x02,
	CFA_ADVANCE_LOC2 = 0x03,
	CFA_ADVANCE_LOC4 = 0x04,
	CFA_OFFSET_EXTENDED = 0x05,
	CFA_RESTORE_EXTENDED = 0x06,
	CFA_UNDEFINED = 0x07,
	CFA_SAME_VALUE = 0x08,
	CFA_REGISTER = 0x09,
	CFA_REMEMBER_STATE = 0x0a,
	CFA_RESTORE_STATE = 0x0b,
	CFA_DEF_CFA = 0x0c,
	CFA_DEF_CFA_REGISTER = 0x0d,
	CFA_DEF_CFA_OFFSET = 0x0e,
	CFA_DEF_CFA_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	CFA_OFFSET_EXTENDED_SF = 0x11,
	CFA_DEF_CFA_SF = 0x12,
	CFA_DEF_CFA_OFFSET_SF = 0x13,
	CFA_VAL_OFFSET = 0x14,
	CFA_VAL_OFFSET_SF = 0x15,
	CFA_VAL_EXPRESSION = 0x16,
	CFA_MIPS_ADVANCE_LOC8 = 0x1d,
	CFA_AARCH64_NEGATE_RA_STATE_WITH_PC = 0x2c,
	CFA_GNU_WINDOW_SAVE = 0x2d, /* arm64: negate_ra_state */
	CFA_GNU_ARGS_SIZE = 0x2e,
	CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
	CFA_ADVANCE_LOC = 0x40,
	CFA_OFFSET = 0x80,
	CFA_RESTORE = 0xc0,
};

static void set_rule(struct cfi_run *run, uint64_t reg, enum cfi_kind kind, int64_t value)
{
	if (reg >= ARCH_NR_DWARF_REG)
		return;
	run->rules.reg[reg].kind = (uint8_t)kind;
	run->rules.reg[reg].value = value;
}

/* Multiplies with wraparound: hostile factors give wrong offsets, not undefined behaviour. */
static int64_t factored(const struct cfi_run *run, uint64_t v)
{
	return (int64_t)(v * (uint64_t)run->data_align);
}

static void set_expr(struct cfi_run *run, uint64_t reg, enum cfi_kind kind)
{
	struct rd expr = rd_sub(&run->program, rd_uleb(&run->program));
	if (reg >= ARCH_NR_DWARF_REG)
		return;
	run->rules.reg[reg] = (struct cfi_rule){
		.kind = (uint8_t)kind, .nr_expr = (uint32_t)rd_left(&expr), .expr = expr.p};
}

static void set_cfa(struct cfi_run *run, uint64_t reg, int64_t off)
{
	run->rules.cfa_kind = CFI_CFA_REG;
	run->rules.cfa_reg = (uint32_t)MIN(reg, UINT32_MAX);
	run->rules.cfa_off = off;
}

static void restore_rule(struct cfi_run *run, uint64_t reg)
{
	if (reg >= ARCH_NR_DWARF_REG)
		return;
	if (run->init)
		run->rules.reg[reg] = run->init->reg[reg];
	else
		run->is_bad = true;
}

static void remember(struct cfi_run *run)
{
	if (run->nr_remembered == CFI_REMEMBER_MAX) {
		run->is_bad = true;
		return;
	}
	run->remembered[run->nr_remembered++] = run->rules;
}

static void stackcache(struct cfi_run *run)
{
	if (!run->nr_remembered) {
		run->is_bad = true;
		return;
	}
	run->rules = run->remembered[--run->nr_remembered];
}

static void advance(struct cfi_run *run, uint64_t delta)
{
	uint64_t nr_bytes = delta * run->code_align;
	if (delta && (nr_bytes / delta != run->code_align || run->pc + nr_bytes < run->pc)) {
		run->is_bad = true;
		return;
	}
	run->pc += nr_bytes;
}

/* DW_CFA_set_loc: compilers do not emit it. Only absolute addresses are supported. */
static void set_loc(struct cfi_run *run)
{
	uint64_t to = run->address_bytes == 4 ? rd_u32(&run->program) : rd_u64(&run->program);
	if (run->pointer_encoding || to < run->pc) {
		run->is_bad = true;
		return;
	}
	run->pc = to;
}

static void step_cfa(struct cfi_run *run, uint8_t op)
{
	struct rd *r = &run->program;
	uint64_t reg;

	switch (op) {
	case CFA_DEF_CFA:
		reg = rd_uleb(r);
		set_cfa(run, reg, (int64_t)rd_uleb(r));
		break;
	case CFA_DEF_CFA_SF:
		reg = rd_uleb(r);
		set_cfa(run, reg, factored(run, (uint64_t)rd_sleb(r)));
		break;
	case CFA_DEF_CFA_REGISTER:
		run->is_bad |= run->rules.cfa_kind != CFI_CFA_REG;
		set_cfa(run, rd_uleb(r), run->rules.cfa_off);
		break;
	case CFA_DEF_CFA_OFFSET:
		run->is_bad |= run->rules.cfa_kind != CFI_CFA_REG;
		run->rules.cfa_off = (int64_t)rd_uleb(r);
		break;
	case CFA_DEF_CFA_OFFSET_SF:
		run->is_bad |= run->rules.cfa_kind != CFI_CFA_REG;
		run->rules.cfa_off = factored(run, (uint64_t)rd_sleb(r));
		break;
	case CFA_DEF_CFA_EXPRESSION: {
		struct rd expr = rd_sub(r, rd_uleb(r));
		run->rules.cfa_kind = CFI_CFA_EXPR;
		run->rules.cfa_expr = expr.p;
		run->rules.nr_cfa_expr = (uint32_t)rd_left(&expr);
		break;
	}
	default:
		run->is_bad = true;
	}
}

/* Instructions whose first operand is a register number. */
static void step_register(struct cfi_run *run, uint8_t op)
{
	struct rd *r = &run->program;
	uint64_t reg = rd_uleb(r);
	int64_t value;

	switch (op) {
	case CFA_OFFSET_EXTENDED:
	case CFA_VAL_OFFSET:
		value = factored(run, rd_uleb(r));
		break;
	case CFA_OFFSET_EXTENDED_SF:
	case CFA_VAL_OFFSET_SF:
		value = factored(run, (uint64_t)rd_sleb(r));
		break;
	case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
		value = factored(run, 0 - rd_uleb(r));
		break;
	case CFA_REGISTER:
		set_rule(run, reg, CFI_REGISTER, (int64_t)rd_uleb(r));
		return;
	case CFA_RESTORE_EXTENDED:
		restore_rule(run, reg);
		return;
	case CFA_UNDEFINED:
	case CFA_SAME_VALUE:
		set_rule(run, reg, op == CFA_UNDEFINED ? CFI_UNDEFINED : CFI_SAME, 0);
		return;
	case CFA_EXPRESSION:
	case CFA_VAL_EXPRESSION:
		set_expr(run, reg, op == CFA_EXPRESSION ? CFI_EXPR : CFI_VAL_EXPR);
		return;
	default:
		run->is_bad = true;
		return;
	}
	bool is_value = op == CFA_VAL_OFFSET || op == CFA_VAL_OFFSET_SF;
	set_rule(run, reg, is_value ? CFI_VAL_OFFSET : CFI_OFFSET, value);
}

/* Instructions without an operand in the opcode byte. */
static void step_extended(struct cfi_run *run, uint8_t op)
{
	struct rd *r = &run->program;

	switch (op) {
	case CFA_NOP:
	case CFA_GNU_WINDOW_SAVE: /* toggles return address signing, which is stripped anyway */
	case CFA_AARCH64_NEGATE_RA_STATE_WITH_PC:
		break;
	case CFA_SET_LOC:
		set_loc(run);
		break;
	case CFA_ADVANCE_LOC1:
		advance(run, rd_u8(r));
		break;
	case CFA_ADVANCE_LOC2:
		advance(run, rd_u16(r));
		break;
	case CFA_ADVANCE_LOC4:
		advance(run, rd_u32(r));
		break;
	case CFA_MIPS_ADVANCE_LOC8:
		advance(run, rd_u64(r));
		break;
	case CFA_REMEMBER_STATE:
		remember(run);
		break;
	case CFA_RESTORE_STATE:
		stackcache(run);
		break;
	case CFA_GNU_ARGS_SIZE:
		(void)rd_uleb(r); /* size of pushed arguments: needed only for landing pads */
		break;
	case CFA_DEF_CFA:
	case CFA_DEF_CFA_SF:
	case CFA_DEF_CFA_REGISTER:
	case CFA_DEF_CFA_OFFSET:
	case CFA_DEF_CFA_OFFSET_SF:
	case CFA_DEF_CFA_EXPRESSION:
		step_cfa(run, op);
		break;
	default:
		step_register(run, op);
	}
}

static void step(struct cfi_run *run)
{
	uint8_t op = rd_u8(&run->program);
	uint8_t low = op & 0x3f;

	switch (op & 0xc0) {
	case CFA_ADVANCE_LOC:
		advance(run, low);
		break;
	case CFA_OFFSET:
		set_rule(run, low, CFI_OFFSET, factored(run, rd_uleb(&run->program)));
		break;
	case CFA_RESTORE:
		restore_rule(run, low);
		break;
	default:
		/* These two make up most of a program without frame pointers. */
		if (LIKELY(op == CFA_DEF_CFA_OFFSET && run->rules.cfa_kind == CFI_CFA_REG))
			run->rules.cfa_off = (int64_t)rd_uleb(&run->program);
		else
			step_extended(run, op);
	}
}

static void run_setup(struct cfi_run *run, const struct ehframe_cie *cie)
{
	run->code_align = cie->code_align;
	run->data_align = cie->data_align;
	run->address_bytes = cie->address_bytes;
	run->pointer_encoding = cie->pointer_encoding;
	run->nr_remembered = 0;
	run->is_bad = false;
}

bool cfi_init_rules(const struct ehframe_cie *cie, struct cfi_rules *ret_rules)
{
	struct cfi_run run;

	if (cie->ra_column >= ARCH_NR_DWARF_REG)
		return false;
	memset(&run.rules, 0, sizeof(run.rules));
	run.rules.ra_column = (uint32_t)cie->ra_column;
	run.rules.is_signal_frame = cie->is_signal_frame;
	run.init = NULL;
	run.program = cie->program;
	run.pc = 0;
	run_setup(&run, cie);
	while (rd_left(&run.program) && !run.is_bad && !run.program.is_bad)
		step(&run);
	if (run.is_bad || run.program.is_bad || run.pc)
		return false;
	*ret_rules = run.rules;
	return true;
}

void cfi_start(struct cfi_run *run, const struct ehframe_fde *fde, const struct cfi_rules *init)
{
	run_setup(run, fde->cie);
	run->rules = *init;
	run->init = init;
	run->program = fde->program;
	run->start = run->end = run->pc = fde->start;
	run->fde_end = fde->end;
}

bool cfi_next(struct cfi_run *run)
{
	/* The last range ended at an advance of the pc; the rules change from here. */
	run->start = run->pc;
	if (run->start >= run->fde_end)
		return false;
	while (rd_left(&run->program)) {
		step(run);
		if (UNLIKELY(run->is_bad || run->program.is_bad)) {
			run->is_bad = true;
			return false;
		}
		if (run->pc > run->start) {
			run->end = MIN(run->pc, run->fde_end);
			return true;
		}
	}
	run->end = run->pc = run->fde_end;
	return true;
}

const struct cfi_rules *cfi_at(struct cfi_run *run, const struct ehframe_fde *fde, uint64_t pc)
{
	struct cfi_rules init;

	if (!cfi_init_rules(fde->cie, &init))
		return NULL;
	cfi_start(run, fde, &init);
	while (cfi_next(run))
		if (pc < run->end) {
			run->init = NULL;
			return pc >= run->start ? &run->rules : NULL;
		}
	run->init = NULL;
	return NULL;
}
