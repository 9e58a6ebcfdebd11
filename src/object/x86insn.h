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

/* False if the bytes are no instruction (or not one that user space may run), or end too early. */
bool x86_decode(const uint8_t *p, size_t n, struct x86_insn *ret_insn);

#endif
