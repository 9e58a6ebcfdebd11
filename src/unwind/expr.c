/*
 * The stack machine of DWARF expressions (DWARF 5 section 2.5). Expressions read the registers of a
 * frame and the copied stack bytes. Limits: EXPR_STEPS_MAX operations, EXPR_DEPTH values.
 */
#include "base/base.h"
#include "unwind/cfi.h"

enum {
	OP_ADDR = 0x03,
	OP_DEREF = 0x06,
	OP_CONST1U = 0x08,
	OP_CONST1S,
	OP_CONST2U,
	OP_CONST2S,
	OP_CONST4U,
	OP_CONST4S,
	OP_CONST8U,
	OP_CONST8S,
	OP_CONSTU,
	OP_CONSTS,
	OP_DUP = 0x12,
	OP_DROP,
	OP_OVER,
	OP_PICK,
	OP_SWAP,
	OP_ROT,
	OP_ABS = 0x19,
	OP_AND,
	OP_DIV,
	OP_MINUS,
	OP_MOD,
	OP_MUL,
	OP_NEG,
	OP_NOT,
	OP_OR,
	OP_PLUS,
	OP_PLUS_UCONST,
	OP_SHL,
	OP_SHR,
	OP_SHRA,
	OP_XOR,
	OP_BRA,
	OP_EQ,
	OP_GE,
	OP_GT,
	OP_LE,
	OP_LT,
	OP_NE,
	OP_SKIP,
	OP_LIT0 = 0x30,
	OP_LIT31 = 0x4f,
	OP_BREG0 = 0x70,
	OP_BREG31 = 0x8f,
	OP_BREGX = 0x92,
	OP_DEREF_SIZE = 0x94,
	OP_NOP = 0x96,
	OP_CALL_FRAME_CFA = 0x9c,
	OP_STACK_VALUE = 0x9f,
};

#define EXPR_DEPTH     32
#define EXPR_STEPS_MAX 512

struct machine {
	const struct expr_env *env;
	const uint8_t *start;
	struct rd r;
	uint32_t nr;
	bool is_bad;
	uint64_t stack[EXPR_DEPTH];
};

static void push(struct machine *m, uint64_t v)
{
	if (m->nr == EXPR_DEPTH) {
		m->is_bad = true;
		return;
	}
	m->stack[m->nr++] = v;
}

static uint64_t pop(struct machine *m)
{
	if (!m->nr) {
		m->is_bad = true;
		return 0;
	}
	return m->stack[--m->nr];
}

/* Returns the value @idx below the top. */
static uint64_t peek(struct machine *m, uint32_t idx)
{
	if (idx >= m->nr) {
		m->is_bad = true;
		return 0;
	}
	return m->stack[m->nr - 1 - idx];
}

static void push_reg(struct machine *m, uint64_t reg, int64_t off)
{
	if (reg >= ARCH_NR_DWARF_REG || !(m->env->valid >> reg & 1)) {
		m->is_bad = true;
		return;
	}
	push(m, m->env->regs[reg] + (uint64_t)off);
}

static void load(struct machine *m, size_t nr_bytes)
{
	uint64_t v = 0;
	uint64_t addr = pop(m);

	if (m->is_bad || !nr_bytes || nr_bytes > 8 ||
	    !m->env->read(m->env->ctx, addr, nr_bytes, &v)) {
		m->is_bad = true;
		return;
	}
	push(m, v);
}

static void jump(struct machine *m, int16_t by)
{
	ptrdiff_t at = m->r.p - m->start;
	if (at + by < 0 || at + by > m->r.end - m->start) {
		m->is_bad = true;
		return;
	}
	m->r.p += by;
}

static uint64_t arithmetic(struct machine *m, uint8_t op, uint64_t a, uint64_t b)
{
	int64_t sa = (int64_t)a;
	int64_t sb = (int64_t)b;

	switch (op) {
	case OP_AND:
		return a & b;
	case OP_DIV:
		if (!sb || (sa == INT64_MIN && sb == -1)) {
			m->is_bad = true;
			return 0;
		}
		return (uint64_t)(sa / sb);
	case OP_MINUS:
		return a - b;
	case OP_MOD:
		if (!b) {
			m->is_bad = true;
			return 0;
		}
		return a % b;
	case OP_MUL:
		return a * b;
	case OP_OR:
		return a | b;
	case OP_PLUS:
		return a + b;
	case OP_SHL:
		return b < 64 ? a << b : 0;
	case OP_SHR:
		return b < 64 ? a >> b : 0;
	case OP_SHRA:
		return (uint64_t)(sa >> (b < 64 ? b : 63));
	case OP_XOR:
		return a ^ b;
	case OP_EQ:
		return sa == sb;
	case OP_GE:
		return sa >= sb;
	case OP_GT:
		return sa > sb;
	case OP_LE:
		return sa <= sb;
	case OP_LT:
		return sa < sb;
	case OP_NE:
		return sa != sb;
	}
	m->is_bad = true;
	return 0;
}

static uint64_t constant(struct machine *m, uint8_t op)
{
	struct rd *r = &m->r;

	switch (op) {
	case OP_ADDR:
		return rd_u64(r) + m->env->bias;
	case OP_CONST1U:
		return rd_u8(r);
	case OP_CONST1S:
		return (uint64_t)(int64_t)rd_i8(r);
	case OP_CONST2U:
		return rd_u16(r);
	case OP_CONST2S:
		return (uint64_t)(int64_t)rd_i16(r);
	case OP_CONST4U:
		return rd_u32(r);
	case OP_CONST4S:
		return (uint64_t)(int64_t)rd_i32(r);
	case OP_CONST8U:
	case OP_CONST8S:
		return rd_u64(r);
	case OP_CONSTU:
		return rd_uleb(r);
	case OP_CONSTS:
		return (uint64_t)rd_sleb(r);
	}
	m->is_bad = true;
	return 0;
}

static void step_stack(struct machine *m, uint8_t op)
{
	uint64_t a, b, c;

	switch (op) {
	case OP_DUP:
		push(m, peek(m, 0));
		break;
	case OP_DROP:
		(void)pop(m);
		break;
	case OP_OVER:
		push(m, peek(m, 1));
		break;
	case OP_PICK:
		push(m, peek(m, rd_u8(&m->r)));
		break;
	case OP_SWAP:
		a = pop(m);
		b = pop(m);
		push(m, a);
		push(m, b);
		break;
	case OP_ROT: /* moves the top below the next two values */
		a = pop(m);
		b = pop(m);
		c = pop(m);
		push(m, a);
		push(m, c);
		push(m, b);
		break;
	default:
		push(m, constant(m, op));
	}
}

static void step_value(struct machine *m, uint8_t op)
{
	uint64_t a, b;

	switch (op) {
	case OP_ABS:
		a = pop(m);
		push(m, (int64_t)a < 0 ? 0 - a : a);
		break;
	case OP_NEG:
		push(m, 0 - pop(m));
		break;
	case OP_NOT:
		push(m, ~pop(m));
		break;
	case OP_PLUS_UCONST:
		a = pop(m);
		push(m, a + rd_uleb(&m->r));
		break;
	case OP_BRA: {
		int16_t by = rd_i16(&m->r);
		if (pop(m))
			jump(m, by);
		break;
	}
	case OP_SKIP:
		jump(m, rd_i16(&m->r));
		break;
	default:
		b = pop(m);
		a = pop(m);
		push(m, arithmetic(m, op, a, b));
	}
}

static void step(struct machine *m)
{
	uint8_t op = rd_u8(&m->r);
	uint64_t reg;

	if (op >= OP_LIT0 && op <= OP_LIT31) {
		push(m, op - OP_LIT0);
		return;
	}
	if (op >= OP_BREG0 && op <= OP_BREG31) {
		push_reg(m, op - OP_BREG0, rd_sleb(&m->r));
		return;
	}
	switch (op) {
	case OP_DEREF:
		load(m, 8);
		break;
	case OP_DEREF_SIZE:
		load(m, rd_u8(&m->r));
		break;
	case OP_BREGX:
		reg = rd_uleb(&m->r);
		push_reg(m, reg, rd_sleb(&m->r));
		break;
	case OP_CALL_FRAME_CFA:
		push(m, m->env->cfa);
		break;
	case OP_NOP:
	case OP_STACK_VALUE:
		break;
	default:
		if (op >= OP_ABS && op <= OP_SKIP)
			step_value(m, op);
		else
			step_stack(m, op);
	}
}

bool expr_eval(const struct expr_env *env, const uint8_t *expr, size_t n, const uint64_t *first,
	       uint64_t *ret_v)
{
	struct machine m;

	m.env = env;
	m.start = expr;
	m.r = rd_from(expr, n);
	m.nr = 0;
	m.is_bad = false;
	if (first)
		push(&m, *first);
	for (uint32_t nr_steps = 0; rd_left(&m.r); nr_steps++) {
		if (nr_steps == EXPR_STEPS_MAX)
			return false;
		step(&m);
		if (m.is_bad || m.r.is_bad)
			return false;
	}
	if (!m.nr)
		return false;
	*ret_v = m.stack[m.nr - 1];
	return true;
}
