/*
 * Finds the instruction of a function to probe; see probes.h. The kernel emulates pushes, nops,
 * calls and relative jumps (arch/x86/kernel/uprobes.c), and single-steps other instructions out of
 * line, which takes a debug exception.
 */
#include "base/base.h"
#include "capture/heap/probes.h"

#include "object/x86insn.h"

#define INSNS_MAX 24

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

#define BIT(reg) (1u << (reg))

/* Registers that the probe's BPF program reads, and the one that identifies the call. */
static unsigned needed_by(enum heap_shape shape)
{
	static const unsigned args[HEAP_SHAPE_NR] = {
		[HEAP_FREE_0] = BIT(X86_DI),
		[HEAP_ALLOC_0] = BIT(X86_DI),
		[HEAP_ALLOC_1] = BIT(X86_SI),
		[HEAP_ALLOC_01] = BIT(X86_DI) | BIT(X86_SI),
		[HEAP_REALLOC_1] = BIT(X86_DI) | BIT(X86_SI),
		[HEAP_RESIZE] = BIT(X86_DI) | BIT(X86_SI),
		[HEAP_ALLOC_12] = BIT(X86_SI) | BIT(X86_DX),
		[HEAP_REALLOC_2] = BIT(X86_SI) | BIT(X86_DX),
		[HEAP_ALLOC_OUT] = BIT(X86_DI) | BIT(X86_DX),
	};
	if (shape == HEAP_FREE_0)
		return args[shape];
	unsigned all = BIT(X86_DI) | BIT(X86_SI) | BIT(X86_DX);
	return BIT(X86_SP) | (args[shape] ? args[shape] : all);
}

static unsigned reg_of(const struct x86_insn *i)
{
	return (i->modrm >> 3 & 7) | (i->rex & 4) << 1;
}

/* The other operand's register; 0xff: memory. */
static unsigned rm_of(const struct x86_insn *i)
{
	return i->modrm >> 6 == 3 ? (i->modrm & 7u) | (i->rex & 1u) << 3 : 0xff;
}

static bool is_kept(unsigned reg, unsigned needed)
{
	return reg > 15 || !(needed & BIT(reg));
}

/* Two-byte opcodes that change the register in the ModRM reg field. */
static bool is_harmless_0f(const struct x86_insn *i, unsigned needed)
{
	uint8_t op = i->opcode;
	bool is_vector = op == 0x10 || op == 0x11 || op == 0x28 || op == 0x29 || op == 0x57 ||
			 op == 0x6f || op == 0x7f || op == 0xef;
	bool is_general = op == 0xb6 || op == 0xb7 || op == 0xbe || op == 0xbf || op == 0xaf ||
			  (op >= 0x40 && op <= 0x4f);
	return op == 0x1e || is_vector || (is_general && is_kept(reg_of(i), needed));
}

/* One byte of opcode and no ModRM: constants to registers, arithmetic of eax with constants. */
static bool is_harmless_short(const struct x86_insn *i, unsigned needed)
{
	uint8_t op = i->opcode;
	if (op >= 0xb8 && op <= 0xbf)
		return is_kept((op & 7u) | (i->rex & 1u) << 3, needed);
	return op < 0x40 && (op & 7) == 5;
}

/* Whether an instruction falls through and does not change the needed registers. */
static bool is_harmless(const struct x86_insn *i, unsigned needed)
{
	uint8_t op = i->opcode;
	if (i->map == 1)
		return is_harmless_0f(i, needed);
	if (i->map)
		return false;
	if (!i->has_modrm)
		return is_harmless_short(i, needed);
	if (op == 0x84 || op == 0x85 || (op >= 0x38 && op <= 0x3b))
		return true; /* test, cmp */
	if (op < 0x40)       /* arithmetic of two operands: bit 1 of the opcode is the direction */
		return is_kept(op & 2 ? reg_of(i) : rm_of(i), needed);
	if (op == 0x80 || op == 0x81 || op == 0x83) /* with a constant; /7: cmp */
		return (i->modrm >> 3 & 7) == 7 || is_kept(rm_of(i), needed);
	if (op == 0xf6 || op == 0xf7) /* /0: test */
		return (i->modrm >> 3 & 7) == 0;
	bool is_shift = op == 0xc0 || op == 0xc1 || op == 0xd0 || op == 0xd1;
	if (is_shift || op == 0x88 || op == 0x89 || op == 0xc6 || op == 0xc7)
		return is_kept(rm_of(i), needed);
	return (op == 0x8a || op == 0x8b || op == 0x8d || op == 0x63) && is_kept(reg_of(i), needed);
}

size_t heapprobes_point(const uint8_t *code, size_t n, enum heap_shape shape, bool *ret_is_emulated)
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
		if (!is_harmless(&i, needed_by(shape)))
			break;
		at += i.nr_bytes;
	}
	*ret_is_emulated = false;
	return 0;
}
