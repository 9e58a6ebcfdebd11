/* object/disasm: text of instructions, targets of calls, bytes that are none. */
#include "base/base.h"
#include "object/disasm.h"
#include "tap.h"

#include <errno.h>
#include <string.h>

#ifndef ASSAY_NO_CAPSTONE
TEST(disasm_decodes_x86_in_att_syntax_with_targets)
{
	CLEANUP(disasm_free_p) struct disasm *d = NULL;
	struct disasm_insn i;
	static const uint8_t code[] = {0x48, 0x89, 0xe5, 0xe8, 0x10, 0x00,
				       0x00, 0x00, 0x75, 0xf6, 0x06, 0xc3};
	CHECK(!disasm_new(&d, ELF_MACHINE_X86_64, NULL));
	CHECK(disasm_next(d, code, sizeof(code), 0x1000, &i));
	CHECK_STR(i.mnemonic, "movq");
	CHECK_STR(i.operands, "%rsp, %rbp");
	CHECK_U64(i.nr_bytes, 3);
	CHECK_U64(i.target, 0);
	CHECK(disasm_next(d, code + 3, sizeof(code) - 3, 0x1003, &i));
	CHECK_U64(i.target, 0x1018); /* callq */
	CHECK(disasm_next(d, code + 8, sizeof(code) - 8, 0x1008, &i));
	CHECK_U64(i.target, 0x1000); /* jne */
	CHECK(disasm_next(d, code + 10, sizeof(code) - 10, 0x100a, &i));
	CHECK_STR(i.mnemonic, "(bad)"); /* push %es is none in 64-bit code */
	CHECK_U64(i.nr_bytes, 1);
	CHECK(!disasm_next(d, code, 0, 0x1000, &i));
}

TEST(disasm_decodes_arm64)
{
	CLEANUP(disasm_free_p) struct disasm *d = NULL;
	struct disasm_insn i;
	static const uint8_t code[] = {0x04, 0x00, 0x00, 0x94, 0xff, 0xff, 0xff, 0xff};
	CHECK(!disasm_new(&d, ELF_MACHINE_ARM64, NULL));
	CHECK(disasm_next(d, code, sizeof(code), 0x4000, &i));
	CHECK_STR(i.mnemonic, "bl");
	CHECK_U64(i.target, 0x4010);
	CHECK(disasm_next(d, code + 4, 4, 0x4004, &i));
	CHECK_STR(i.mnemonic, "(bad)");
	CHECK_U64(i.nr_bytes, 4);
}
#endif

TEST(disasm_refuses_other_machines)
{
	struct disasm *d = NULL;
	CHECK(disasm_new(&d, (enum elf_machine)8, NULL) == -ENOTSUP);
	CHECK(!d);
}
