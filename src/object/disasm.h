/*
 * Disassembles machine code by libcapstone: x86-64 in AT&T syntax, and arm64. The bytes are not
 * trusted; bytes that are no instruction give "(bad)" and the next address.
 */
#ifndef ASSAY_OBJECT_DISASM_H
#define ASSAY_OBJECT_DISASM_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "object/elf.h"

struct disasm; /* opaque */

/* -ENOTSUP: another machine, or a build without libcapstone (CAPSTONE=0). */
int disasm_new(struct disasm **ret_d, enum elf_machine machine, struct err *err);
void disasm_free(struct disasm *d);
DEFINE_FREE_P(disasm, struct disasm)

struct disasm_insn {
	uint64_t vaddr;
	uint32_t nr_bytes;
	const char *mnemonic; /* borrowed until the next call */
	const char *operands;
	uint64_t target; /* of a direct call or jump; 0: none */
};

/* Decodes the instruction at the start of @code, which is at @vaddr. False: @n is 0. */
bool disasm_next(struct disasm *d, const uint8_t *code, size_t n, uint64_t vaddr,
		 struct disasm_insn *ret_insn);

#endif
