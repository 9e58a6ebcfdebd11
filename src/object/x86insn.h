/*
 * Decodes the length of an x86-64 instruction and the few fields needed to track the stack pointer.
 * Source: Intel SDM volume 2, appendix A (opcode maps) and chapter 2 (VEX, EVEX).
 */
#ifndef ASSAY_OBJECT_X86INSN_H
#define ASSAY_OBJECT_X86INSN_H

#include "base/base.h"

struct x86_insn {
	uint8_t nr_bytes;
	uint8_t map; /* 0: one byte, 1: 0f, 2: 0f38, 3: 0f3a; | 0x10 with a VEX or EVEX prefix */
	uint8_t opcode;
	uint8_t rex; /* 0 or 0x40..0x4f */
	uint8_t modrm;
	bool has_modrm;
	int32_t disp; /* of the memory operand, sign extended */
	int64_t imm;  /* sign extended; the displacement of a branch */
	uint8_t base; /* register of the memory operand, with REX.B; 0xff = none */
	bool has_index;
	uint8_t disp_at; /* offset of the displacement in the instruction, 0 = none */
};

/* call rel32, or call through a register or memory. */
static inline bool x86_is_call(const struct x86_insn *i)
{
	return i->map == 0 &&
	       (i->opcode == 0xe8 || (i->opcode == 0xff && (i->modrm >> 3 & 7) == 2));
}
static inline bool x86_is_jump(const struct x86_insn *i)
{
	return i->map == 0 && (i->opcode == 0xe9 || i->opcode == 0xeb);
}
/* jmp *target: a jump table (stays in the function) or a tail call (stack as at function entry). */
static inline bool x86_is_indirect_jump(const struct x86_insn *i)
{
	return i->map == 0 && i->opcode == 0xff && (i->modrm >> 3 & 7) == 4;
}
/* nop and int3 */
static inline bool x86_is_padding(const struct x86_insn *i)
{
	return (i->map == 0 && (i->opcode == 0x90 || i->opcode == 0xcc)) ||
	       (i->map == 1 && i->opcode == 0x1f);
}

/* False: the bytes are not a complete instruction, or the instruction is privileged. */
bool x86_decode(const uint8_t *p, size_t n, struct x86_insn *ret_insn);

#endif
