/*
 * Finds main; see mainfind.h. Follows what is loaded into rdi, the register of the first argument:
 *
 *	mov $main, %rdi; lea main(%rip), %rdi    known
 *	any other instruction that sets it       not known
 *	call, jmp                                main, if it is known and is code; else that function
 *	                                         is followed, as musl's _start_c
 */
#include "base/base.h"
#include "plan/mainfind.h"

#include <elf.h>

#include "object/x86insn.h"

#define CODE_BYTES 96 /* of a function that is followed */
#define CALLS_MAX  2
#define RDI        7

struct follower {
	const struct elf *e;
	uint64_t vaddr; /* of the next instruction */
	uint64_t rdi;   /* 0 = not known */
};

static bool is_code(const struct elf *e, uint64_t vaddr)
{
	size_t nr;
	const struct elf_segment *s = elf_segments(e, &nr);
	for (size_t i = 0; i < nr; i++)
		if (s[i].type == PT_LOAD && s[i].flags & PF_X && vaddr >= s[i].vaddr &&
		    vaddr - s[i].vaddr < s[i].nr_file_bytes)
			return true;
	return false;
}

static unsigned register_of_modrm(const struct x86_insn *i)
{
	return (i->modrm >> 3 & 7) | (i->rex & 4) << 1;
}

static unsigned rm_of_modrm(const struct x86_insn *i)
{
	return (i->modrm & 7) | (i->rex & 1) << 3;
}

static bool is_rip_relative(const struct x86_insn *i)
{
	return (i->modrm & 0xc7) == 0x05;
}

/* Applies an instruction that is neither a call nor a jump to rdi. */
static void apply(struct follower *f, const struct x86_insn *i)
{
	bool is_register = i->modrm >> 6 == 3;
	if (i->map)
		return;
	if (i->opcode == 0x8d && register_of_modrm(i) == RDI)
		f->rdi = is_rip_relative(i) ? f->vaddr + (uint64_t)(int64_t)i->disp : 0;
	else if (i->opcode == 0xc7 && is_register && rm_of_modrm(i) == RDI)
		f->rdi = (uint64_t)i->imm;
	else if (i->opcode == 0xbf && !(i->rex & 1))
		f->rdi = i->rex & 8 ? (uint64_t)i->imm : (uint32_t)i->imm;
	else if ((i->opcode == 0x8b && register_of_modrm(i) == RDI) ||
		 (i->opcode == 0x89 && is_register && rm_of_modrm(i) == RDI) ||
		 (i->opcode == 0x5f && !(i->rex & 1)))
		f->rdi = 0;
}

/* Follows a function up to its first call or jump; *ret_to is its target, 0 = not known. */
static bool follow(struct follower *f, uint64_t *ret_to)
{
	uint8_t code[CODE_BYTES];
	struct x86_insn insn;
	uint64_t offset;
	if (!elf_offset_from_vaddr(f->e, f->vaddr, &offset) ||
	    elf_read(f->e, code, sizeof(code), offset, NULL))
		return false;
	for (size_t at = 0; x86_decode(code + at, sizeof(code) - at, &insn); at += insn.nr_bytes) {
		bool is_direct = !insn.map && (insn.opcode == 0xe8 || x86_is_jump(&insn));
		f->vaddr += insn.nr_bytes;
		*ret_to = is_direct ? f->vaddr + (uint64_t)insn.imm : 0;
		if (is_direct || x86_is_call(&insn) || x86_is_indirect_jump(&insn))
			return true;
		apply(f, &insn);
	}
	return false;
}

uint64_t mainfind_vaddr(const struct elf *e)
{
	struct follower f = {.e = e, .vaddr = elf_entry(e)};
	if (elf_machine(e) != ELF_MACHINE_X86_64)
		return 0;
	for (int i = 0; i < CALLS_MAX; i++) {
		uint64_t to;
		if (!follow(&f, &to))
			return 0;
		if (f.rdi && is_code(e, f.rdi))
			return f.rdi;
		f.rdi = 0;
		f.vaddr = to;
		if (!to)
			return 0;
	}
	return 0;
}
