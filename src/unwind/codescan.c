/*
 * Two values are tracked: the distance of the CFA above sp, and where the caller's rbp was saved.
 *
 * Each pass over the code in address order propagates the state from instruction to instruction and
 * to the targets of branches. Passes are repeated until nothing changes, because loops are entered
 * by jumps to code at higher addresses. Then code that was not reached is taken as a function start
 * (it is called from other binaries or by pointer), and the passes run again.
 */
#include "base/base.h"
#include "unwind/codescan.h"

#include "base/mem.h"
#include "base/vec.h"
#include "object/x86insn.h"
#include "unwind_row.h"

#define PASSES_MAX 6 /* real code needs two to four */

enum { REG_SP = 4, REG_BP = 5 };

struct state {
	int32_t depth;   /* CFA - sp, in bytes; 0: not known */
	int32_t fp_slot; /* where rbp was saved, from the CFA in slots, or ROW_FP_SAME */
	bool is_framed;  /* rbp is a frame pointer: CFA - 16 */
	bool is_known;
};

static const struct state ENTRY = {.depth = 8, .fp_slot = ROW_FP_SAME, .is_known = true};

enum { IS_START = 1, IS_TARGET = 2 };

/* Instructions are decoded once, for all passes. */
struct scan_insn {
	uint32_t at;
	bool is_bad;
	struct x86_insn i;
};

struct scan {
	size_t n; /* bytes of code */
	VEC(struct scan_insn) insns;
	struct state *at; /* by offset: the state before the instruction */
	uint8_t *marks;   /* by offset: the enum above */
	bool has_changed;
};

static uint32_t state_to_rule(const struct state *s)
{
	bool is_near = s->fp_slot == ROW_FP_SAME || s->fp_slot > ROW_FP_SAME;

	if (s->depth >= 8 && s->depth % 8 == 0 && s->depth < (int32_t)ROW_CFA_REACH && is_near)
		return row_make(ROW_SP, (uint32_t)s->depth, s->fp_slot);
	if (s->is_framed)
		return row_make(ROW_FP, 16, -2);
	return ROW_NONE;
}

static void push(struct state *s, bool is_fp)
{
	if (!s->depth)
		return;
	s->depth += 8;
	if (is_fp && s->fp_slot == ROW_FP_SAME)
		s->fp_slot = -s->depth / 8;
}

static void pop(struct state *s, bool is_fp)
{
	if (is_fp && s->is_framed && !s->depth) /* sp was set from rbp in another way */
		s->depth = 16;
	if (is_fp && s->fp_slot == -s->depth / 8) {
		s->fp_slot = ROW_FP_SAME;
		s->is_framed = false;
	}
	if (s->depth)
		s->depth -= 8;
	if (s->depth < 8)
		s->depth = 0;
}

static void move_sp(struct state *s, int64_t by)
{
	int64_t depth = s->depth - by;

	if (s->depth)
		s->depth = depth >= 8 && depth < (int64_t)ROW_CFA_REACH ? (int32_t)depth : 0;
}

static void set_sp_from_fp(struct state *s, int64_t disp)
{
	int64_t depth = 16 - disp;
	s->depth =
		s->is_framed && depth >= 8 && depth < (int64_t)ROW_CFA_REACH ? (int32_t)depth : 0;
}

static void set_fp_from_sp(struct state *s)
{
	s->is_framed = s->depth == 16 && s->fp_slot == -2;
}

static unsigned reg_field(const struct x86_insn *i)
{
	return (i->modrm >> 3 & 7) | (i->rex & 4) << 1;
}

static unsigned rm_field(const struct x86_insn *i)
{
	return (i->modrm & 7) | (i->rex & 1) << 3;
}

/* Returns the register that an ordinary instruction writes, 0xff: none that is tracked. */
static unsigned written_reg(const struct x86_insn *i)
{
	uint8_t op = i->opcode;
	bool is_reg = i->has_modrm && i->modrm >> 6 == 3;

	if (i->map == 1 && i->has_modrm &&
	    ((op & 0xf0) == 0x40 || op == 0xaf || op == 0xb6 || op == 0xb7 || op == 0xbe ||
	     op == 0xbf))
		return reg_field(i);
	if (i->map)
		return 0xff;
	if (op < 0x40 && (op & 0x38) != 0x38)
		return (op & 7) == 3 ? reg_field(i) : (op & 7) == 1 && is_reg ? rm_field(i) : 0xff;
	if (op == 0x8b || op == 0x8d || op == 0x63 || op == 0x69 || op == 0x6b)
		return reg_field(i);
	if ((op == 0x89 || op == 0xc7 || op == 0xc1 || op == 0xd1 || op == 0xd3 || op == 0x87) &&
	    is_reg)
		return rm_field(i);
	if ((op == 0x81 || op == 0x83) && is_reg && (i->modrm >> 3 & 7) != 7)
		return rm_field(i);
	if (op == 0xf7 && is_reg && (i->modrm >> 3 & 6) == 2)
		return rm_field(i);
	if (op == 0xff && is_reg && (i->modrm >> 3 & 7) < 2)
		return rm_field(i);
	if (op >= 0xb8 && op <= 0xbf)
		return (op & 7u) | (i->rex & 1u) << 3;
	return 0xff;
}

static void step_sp_write(struct state *s, const struct x86_insn *i)
{
	uint8_t op = i->opcode;
	unsigned sub = i->modrm >> 3 & 7;

	if ((op == 0x81 || op == 0x83) && sub == 5)
		move_sp(s, -i->imm);
	else if ((op == 0x81 || op == 0x83) && sub == 0)
		move_sp(s, i->imm);
	else if (op == 0x8d && i->base == REG_SP && !i->has_index)
		move_sp(s, i->disp);
	else if (op == 0x8d && i->base == REG_BP && !i->has_index)
		set_sp_from_fp(s, i->disp);
	else if ((op == 0x89 && reg_field(i) == REG_BP) ||
		 (op == 0x8b && rm_field(i) == REG_BP && i->modrm >> 6 == 3))
		set_sp_from_fp(s, 0);
	else
		s->depth = 0;
}

static void step_fp_write(struct state *s, const struct x86_insn *i)
{
	uint8_t op = i->opcode;

	if ((op == 0x89 && reg_field(i) == REG_SP) ||
	    (op == 0x8b && i->modrm >> 6 == 3 && rm_field(i) == REG_SP))
		set_fp_from_sp(s);
	else if (op == 0x8d && i->base == REG_SP && !i->has_index && i->disp == 0)
		set_fp_from_sp(s);
	else
		s->is_framed = false;
}

/* Applies the effect of a non-branching instruction to the state. */
static void step(struct state *s, const struct x86_insn *i)
{
	uint8_t op = i->opcode;
	unsigned sub = i->modrm >> 3 & 7;

	if (i->map == 0) {
		if (op >= 0x50 && op <= 0x57) {
			push(s, op == 0x55 && !(i->rex & 1));
			return;
		}
		if (op >= 0x58 && op <= 0x5f) {
			pop(s, op == 0x5d && !(i->rex & 1));
			if (op == 0x5c && !(i->rex & 1))
				s->depth = 0;
			return;
		}
		if (op == 0x68 || op == 0x6a || op == 0x9c || (op == 0xff && sub == 6)) {
			push(s, false);
			return;
		}
		if (op == 0x9d || op == 0x8f) {
			pop(s, false);
			return;
		}
		if (op == 0xc9) {
			s->depth = s->is_framed ? 16 : 0;
			pop(s, true);
			return;
		}
	}
	unsigned reg = written_reg(i);
	if (reg == REG_SP)
		step_sp_write(s, i);
	else if (reg == REG_BP)
		step_fp_write(s, i);
}

static bool is_branch(const struct x86_insn *i)
{
	return (i->map == 0 && ((i->opcode & 0xf0) == 0x70 || (i->opcode & 0xfc) == 0xe0)) ||
	       (i->map == 1 && (i->opcode & 0xf0) == 0x80);
}

static bool is_end(const struct x86_insn *i)
{
	return (i->map == 0 && (i->opcode == 0xc3 || i->opcode == 0xc2 || i->opcode == 0xf4 ||
				i->opcode == 0xcc)) ||
	       (i->map == 1 && i->opcode == 0x0b) || x86_is_jump(i) || x86_is_indirect_jump(i);
}

static void set_target_state(struct scan *s, size_t from, const struct x86_insn *i,
			     const struct state *state)
{
	uint64_t to = from + i->nr_bytes + (uint64_t)i->imm;

	if (to >= s->n)
		return;
	s->marks[to] |= IS_TARGET;
	if (state->is_known && !s->at[to].is_known) {
		s->at[to] = *state;
		s->has_changed = true;
	}
}

/*
 * Checks a state against the code from instruction @idx up to its end: at a ret the return address
 * must be at sp, and at a jump the state must equal that of its target. 1 it agrees, -1 it does
 * not, 0 cannot be decided.
 */
static int compare_with_code(const struct scan *s, size_t idx, const struct state *from)
{
	struct state state = *from;

	for (; idx < s->insns.n; idx++) {
		const struct scan_insn *k = &s->insns.p[idx];
		const struct x86_insn *i = &k->i;
		uint64_t to = k->at + i->nr_bytes + (uint64_t)i->imm;
		if (k->is_bad)
			return -1;
		if (i->map == 0 && (i->opcode == 0xc3 || i->opcode == 0xc2))
			return state.depth == 8 ? 1 : -1;
		if ((x86_is_jump(i) || is_branch(i)) && to < s->n && s->at[to].is_known)
			return s->at[to].depth == state.depth ? 1 : -1;
		if (is_end(i))
			return 0;
		step(&state, i);
	}
	return 0;
}

/*
 * Guesses the state of code that was not reached: a function start, or a case of the last jump
 * table. False if it is the target of a jump from code whose state is unknown.
 */
static bool guess_state(const struct scan *s, size_t idx, const struct state *table,
			struct state *ret_state)
{
	if (s->marks[s->insns.p[idx].at] & IS_TARGET)
		return false;
	bool is_entry = !table->is_known ||
			compare_with_code(s, idx, &ENTRY) > compare_with_code(s, idx, table);
	*ret_state = is_entry ? ENTRY : *table;
	return true;
}

/* Runs one pass. @promotes: guess the state of code that was not reached. */
static void run_pass(struct scan *s, bool promotes)
{
	struct state state = {0};
	struct state table = {0}; /* at the last jump through a table of this function */
	bool is_after_call = false;

	for (size_t idx = 0; idx < s->insns.n; idx++) {
		const struct x86_insn *i = &s->insns.p[idx].i;
		size_t at = s->insns.p[idx].at;
		if (s->insns.p[idx].is_bad) {
			state.is_known = false;
			continue;
		}
		if (s->marks[at] & IS_START)
			table.is_known = false;
		/* A call followed by padding, and then by code that is no jump target, does not
		 * return. */
		bool is_pad = x86_is_padding(i);
		if (is_pad && is_after_call && !(s->marks[at + i->nr_bytes] & IS_TARGET))
			state.is_known = false;
		is_after_call = x86_is_call(i) || (is_after_call && is_pad);
		if (s->at[at].is_known)
			state = s->at[at];
		else if (!state.is_known && !is_pad && promotes)
			s->has_changed |= guess_state(s, idx, &table, &state);
		if (state.is_known && !s->at[at].is_known)
			s->at[at] = state;
		if (x86_is_jump(i) || is_branch(i))
			set_target_state(s, at, i, &state);
		if (x86_is_indirect_jump(i) && state.is_known && state.depth != 8)
			table = state;
		if (state.is_known)
			step(&state, i);
		if (is_end(i))
			state.is_known = false;
	}
}

static void run_passes(struct scan *s, bool promotes)
{
	s->has_changed = true;
	for (int i = 0; i < PASSES_MAX && s->has_changed; i++) {
		s->has_changed = false;
		run_pass(s, promotes);
	}
}

static void mark_start(struct scan *s, uint64_t at)
{
	if (at >= s->n)
		return;
	s->marks[at] |= IS_START;
	s->at[at] = ENTRY;
}

static void decode_all(struct scan *s, const uint8_t *code)
{
	vec_reserve(&s->insns, s->n / 4 + 16);
	for (size_t at = 0; at < s->n;) {
		struct scan_insn *k = vec_add(&s->insns);
		k->at = (uint32_t)at;
		k->is_bad = !x86_decode(code + at, s->n - at, &k->i);
		at += k->is_bad ? 1 : k->i.nr_bytes;
	}
}

static void find_starts(struct scan *s)
{
	vec_foreach(k, &s->insns) {
		uint64_t to = k->at + k->i.nr_bytes + (uint64_t)k->i.imm;
		if (k->is_bad)
			continue;
		if (k->i.map == 0 && k->i.opcode == 0xe8 && k->i.imm)
			mark_start(s, to);
		else if ((x86_is_jump(&k->i) || is_branch(&k->i)) && to < s->n)
			s->marks[to] |= IS_TARGET;
	}
}

static void write_rules(const struct scan *s, uint32_t *rules)
{
	vec_foreach(k, &s->insns) {
		if (k->is_bad || !s->at[k->at].is_known)
			continue;
		uint32_t rule = state_to_rule(&s->at[k->at]);
		for (size_t at = k->at; at < k->at + k->i.nr_bytes; at++)
			if (rules[at] == ROW_NONE)
				rules[at] = rule;
	}
}

void code_scan(const uint8_t *code, size_t n, const uint64_t *starts, size_t nr_starts,
	       uint32_t *rules)
{
	struct scan s = {.n = n};
	CLEANUP(free_p) struct state *at = xcalloc(n, sizeof(*at));
	CLEANUP(free_p) uint8_t *marks = xcalloc(n + 16, 1); /* an instruction may end at n */

	s.at = at;
	s.marks = marks;
	decode_all(&s, code);
	find_starts(&s);
	for (size_t i = 0; i < nr_starts; i++)
		mark_start(&s, starts[i]);
	run_passes(&s, false);
	run_passes(&s, true);
	write_rules(&s, rules);
	vec_release(&s.insns);
}
