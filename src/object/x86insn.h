/*
 * The length of an x86-64 instruction, and the few facts of it that follow the stack pointer.
 * Source: Intel SDM volume 2, appendix A (opcode maps) and chapter 2 (VEX, EVEX).
 */
#ifndef ASSAY_OBJECT_X86INSN_H
#define ASSAY_OBJECT_X86INSN_H

#include "base/base.h"

struct x86_insn {
	uint8_t nr_bytes;
	uint8_t map; /* 0: one byte, 1: 0f, 2: 0f38, 3: 0f3a; vectors have theirs | 0x10 */
	uint8_t opcode;
	uint8_t rex; /* 0 or 0x40..0x4f */
	uint8_t modrm;
	bool has_modrm;
	int32_t disp; /* of the memory operand, sign extended */
	int64_t imm;  /* sign extended; branch distance of branches */
	uint8_t base; /* of the memory operand: register with REX.B, or 0xff */
	bool has_index;
	uint8_t disp_at; /* offset of the displacement in the instruction, 0 = none */
};

/* e8, or through a register or memory. */
static inline bool x86_is_call(const struct x86_insn *i)
{
	return i->map == 0 &&
	       (i->opcode == 0xe8 || (i->opcode == 0xff && (i->modrm >> 3 & 7) == 2));
}
static inline bool x86_is_jump(const struct x86_insn *i)
{
	return i->map == 0 && (i->opcode == 0xe9 || i->opcode == 0xeb);
}
/* jmp *target: a switch's table (of this function) or a tail call (its state is the entry's). */
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

/* False if the bytes are no instruction (or not one that user space may run), or end too early. */
bool x86_decode(const uint8_t *p, size_t n, struct x86_insn *ret_insn);

#endif
