/*
 * Where in a function a probe goes; see heapprobes.h. The kernel emulates pushes, nops, calls and
 * relative jumps (arch/x86/kernel/uprobes.c) and steps over all else in a page of its own, which
 * takes a debug exception.
 */
#include "base/base.h"
#include "capture/heapprobes.h"

#include "unwind/x86insn.h"

#define INSNS_MAX 12

enum x86_reg { X86_DX = 2, X86_SP = 4, X86_SI = 6, X86_DI = 7 };

static bool is_emulated(const uint8_t *p, const struct x86_insn *i)
{
	if (i->map == 0 && p[0] >= 0x50 && p[0] <= 0x57)
		return true;
	if (i->map == 0 && p[0] == 0x41 && i->opcode >= 0x50 && i->opcode <= 0x57)
		return true;
	if (i->map == 0 && p[0] == i->opcode)
		return i->opcode == 0x90 || i->opcode == 0xe8 || i->opcode == 0xe9 ||
		       i->opcode == 0xeb || (i->opcode >= 0x70 && i->opcode <= 0x7f);
	bool is_plain = i->map == 1 && p[0] == 0x0f;
	return is_plain && (i->opcode == 0x1f || (i->opcode >= 0x80 && i->opcode <= 0x8f));
}

/* A register that the probe's program reads, or that it knows the call by. */
static bool is_needed(unsigned reg, bool is_free)
{
	return reg == X86_DI || reg == X86_SI || reg == X86_DX || (reg == X86_SP && !is_free);
}

static unsigned reg_of(const struct x86_insn *i)
{
	return (i->modrm >> 3 & 7) | (i->rex & 4) << 1;
}

/* The other operand, where it is a register; else 0xff: memory. */
static unsigned rm_of(const struct x86_insn *i)
{
	return i->modrm >> 6 == 3 ? (i->modrm & 7u) | (i->rex & 1u) << 3 : 0xff;
}

/* Whether an instruction leaves what is needed alone and goes on to the next one. */
static bool is_harmless(const struct x86_insn *i, bool is_free)
{
	uint8_t op = i->opcode;
	if (i->map == 1) {
		bool is_endbr = op == 0x1e;
		bool is_widening = op == 0xb6 || op == 0xb7 || op == 0xbe || op == 0xbf;
		return is_endbr || (is_widening && !is_needed(reg_of(i), is_free));
	}
	if (i->map || !i->has_modrm)
		return i->map == 0 && op >= 0xb8 && op <= 0xbf &&
		       !is_needed((op & 7u) | (i->rex & 1u) << 3, is_free);
	if (op == 0x84 || op == 0x85 || (op >= 0x38 && op <= 0x3b))
		return true;                        /* test, cmp */
	if (op == 0x80 || op == 0x81 || op == 0x83) /* arithmetic with a constant; /7: cmp */
		return (i->modrm >> 3 & 7) == 7 || !is_needed(rm_of(i), is_free);
	if (op == 0xf6 || op == 0xf7) /* /0: test */
		return (i->modrm >> 3 & 7) == 0;
	if (op == 0x88 || op == 0x89 || op == 0xc7 || op == 0x01 || op == 0x29 || op == 0x31)
		return !is_needed(rm_of(i), is_free);
	bool is_load = op == 0x8a || op == 0x8b || op == 0x8d || op == 0x03 || op == 0x2b ||
		       op == 0x33 || op == 0x23 || op == 0x0b;
	return is_load && !is_needed(reg_of(i), is_free);
}

size_t heapprobes_point(const uint8_t *code, size_t n, bool is_free, bool *ret_is_emulated)
{
	size_t at = 0;
	for (int k = 0; k < INSNS_MAX; k++) {
		struct x86_insn i;
		if (!x86_decode(code + at, n - at, &i))
			break;
		if (is_emulated(code + at, &i)) {
			*ret_is_emulated = true;
			return at;
		}
		if (!is_harmless(&i, is_free))
			break;
		at += i.nr_bytes;
	}
	*ret_is_emulated = false;
	return 0;
}
