/* Disassembles machine code; see disasm.h. */
#include "base/base.h"
#include "object/disasm.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"

#ifdef ASSAY_NO_CAPSTONE
int disasm_new(struct disasm **ret_d, enum elf_machine machine, struct err *err)
{
	(void)ret_d;
	(void)machine;
	return err_set(err, -ENOTSUP, "assay was built without a disassembler (CAPSTONE=0)");
}

void disasm_free(struct disasm *d)
{
	(void)d;
}

bool disasm_next(struct disasm *d, const uint8_t *code, size_t n, uint64_t vaddr,
		 struct disasm_insn *ret_insn)
{
	(void)d;
	(void)code;
	(void)n;
	(void)vaddr;
	(void)ret_insn;
	return false;
}
#else
#include <capstone/capstone.h>

struct disasm {
	csh handle;
	cs_insn *insn;
	size_t step; /* after bytes that are no instruction */
};

int disasm_new(struct disasm **ret_d, enum elf_machine machine, struct err *err)
{
	csh handle;
	bool is_arm = machine == ELF_MACHINE_ARM64;
	if (!is_arm && machine != ELF_MACHINE_X86_64)
		return err_set(err, -ENOTSUP, "machine %d cannot be disassembled", (int)machine);
	cs_err rc = cs_open(is_arm ? CS_ARCH_ARM64 : CS_ARCH_X86,
			    is_arm ? CS_MODE_LITTLE_ENDIAN : CS_MODE_64, &handle);
	if (rc)
		return err_set(err, -ENOTSUP, "libcapstone: %s", cs_strerror(rc));
	if (!is_arm)
		(void)cs_option(handle, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
	struct disasm *d = xcalloc(1, sizeof(*d));
	d->handle = handle;
	d->insn = cs_malloc(handle);
	d->step = is_arm ? 4 : 1;
	if (!d->insn) {
		disasm_free(d);
		return err_set(err, -ENOMEM, "libcapstone has no memory");
	}
	*ret_d = d;
	return 0;
}

void disasm_free(struct disasm *d)
{
	if (!d)
		return;
	if (d->insn)
		cs_free(d->insn, 1);
	(void)cs_close(&d->handle);
	free(d);
}

/* Direct targets are the last operand: "callq 0x1234", "b.ne #0x1234", "tbz w0, #3, #0x1234". */
static uint64_t target_of(const char *mnemonic, const char *operands)
{
	static const char *const branches[] = {"call", "j", "loop", "b.", "bl", "cb", "tb"};
	bool is_branch = !strcmp(mnemonic, "b");
	for (size_t i = 0; i < ARRAY_LEN(branches); i++)
		is_branch |= !strncmp(mnemonic, branches[i], strlen(branches[i]));
	const char *last = strrchr(operands, ' ');
	last = last ? last + 1 : operands;
	last += *last == '#';
	return is_branch && !strncmp(last, "0x", 2) ? strtoull(last, NULL, 16) : 0;
}

bool disasm_next(struct disasm *d, const uint8_t *code, size_t n, uint64_t vaddr,
		 struct disasm_insn *ret_insn)
{
	const uint8_t *at = code;
	size_t left = n;
	uint64_t address = vaddr;
	if (!n)
		return false;
	if (!cs_disasm_iter(d->handle, &at, &left, &address, d->insn)) {
		*ret_insn = (struct disasm_insn){.vaddr = vaddr,
						 .nr_bytes = (uint32_t)MIN(n, d->step),
						 .mnemonic = "(bad)",
						 .operands = ""};
		return true;
	}
	*ret_insn = (struct disasm_insn){.vaddr = vaddr,
					 .nr_bytes = d->insn->size,
					 .mnemonic = d->insn->mnemonic,
					 .operands = d->insn->op_str,
					 .target = target_of(d->insn->mnemonic, d->insn->op_str)};
	return true;
}
#endif
