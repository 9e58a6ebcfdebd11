/* plan/libcmatch: functions of a made archive are found in code that has their bytes, and only there. */
#include "base/base.h"
#include "tap.h"

#include <elf.h>
#include <stdio.h>

#include "base/buf.h"
#include "plan/allocfind.h"
#include "plan/libcmatch.h"

#define CODE_AT    0x1000u
#define CODE_BYTES 1024u
#define TEXT_AT    256u /* where the library's code is in the program's */
#define TEXT_BYTES 128u
#define FIELD_AT   40u /* of a relocation */

struct library {
	Elf64_Ehdr eh;
	uint8_t text[TEXT_BYTES];
	Elf64_Rela relocation;
	Elf64_Sym symbols[5];
	char names[64];
	Elf64_Shdr sh[5];
};

static const char names[] = "\0malloc\0free\0__libc_start_main\0other";

static uint8_t byte_at(size_t i)
{
	return (uint8_t)(i * 37 + (i >> 3));
}

/* An object with four functions, 32 bytes each, and a call of an unknown one in the second. */
static void make_library(struct library *l)
{
	static const uint32_t at[] = {0, 1, 8, 13, 31};
	*l = (struct library){.eh = {.e_type = ET_REL,
				     .e_machine = EM_X86_64,
				     .e_version = 1,
				     .e_ehsize = sizeof(Elf64_Ehdr),
				     .e_shoff = offsetof(struct library, sh),
				     .e_shentsize = sizeof(Elf64_Shdr),
				     .e_shnum = ARRAY_LEN(l->sh)}};
	memcpy(l->eh.e_ident, ELFMAG "\2\1\1", 7);
	for (size_t i = 0; i < TEXT_BYTES; i++)
		l->text[i] = byte_at(i);
	memset(l->text + FIELD_AT, 0, 4);
	l->relocation = (Elf64_Rela){FIELD_AT, ELF64_R_INFO(4, R_X86_64_PLT32), -4};
	for (size_t i = 1; i < ARRAY_LEN(l->symbols); i++)
		l->symbols[i] = (Elf64_Sym){.st_name = at[i],
					    .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
					    .st_shndx = i == 4 ? SHN_UNDEF : 1,
					    .st_value = (i - 1) * 32,
					    .st_size = 32};
	memcpy(l->names, names, sizeof(names));
	l->sh[1] = (Elf64_Shdr){.sh_type = SHT_PROGBITS,
				.sh_flags = SHF_ALLOC | SHF_EXECINSTR,
				.sh_offset = offsetof(struct library, text),
				.sh_size = TEXT_BYTES,
				.sh_addralign = 16};
	l->sh[2] = (Elf64_Shdr){.sh_type = SHT_RELA,
				.sh_offset = offsetof(struct library, relocation),
				.sh_size = sizeof(l->relocation),
				.sh_link = 3,
				.sh_info = 1,
				.sh_entsize = sizeof(Elf64_Rela)};
	l->sh[3] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
				.sh_offset = offsetof(struct library, symbols),
				.sh_size = sizeof(l->symbols),
				.sh_link = 4,
				.sh_entsize = sizeof(Elf64_Sym)};
	l->sh[4] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
				.sh_offset = offsetof(struct library, names),
				.sh_size = sizeof(l->names)};
}

static void add_member(struct buf *to, const char *name, const void *p, size_t n)
{
	char head[61];
	CHECK(snprintf(head, sizeof(head), "%-16s%-12d%-6d%-6d%-8d%-10zu`\n", name, 0, 0, 0, 0,
		       n) == 60);
	buf_add(to, head, 60);
	buf_add(to, p, n);
}

static void make_archive(struct buf *to)
{
	static const char index[] = "malloc\0free\0__libc_start_main"; /* with its NUL */
	struct library l;
	uint8_t table[4 + 3 * 4 + sizeof(index)] = {0, 0, 0, 3};
	size_t at = 8 + 60 + sizeof(table);
	make_library(&l);
	for (size_t i = 0; i < 3; i++)
		table[4 + i * 4 + 3] = (uint8_t)at;
	CHECK(at < 256);
	memcpy(table + 16, index, sizeof(index));
	buf_add(to, "!<arch>\n", 8);
	add_member(to, "/", table, sizeof(table));
	add_member(to, "x.o/", &l, sizeof(l));
}

struct program {
	Elf64_Ehdr eh;
	Elf64_Phdr ph;
	uint8_t code[CODE_BYTES];
};

static struct elf *make_program(size_t nr_copies, size_t changed)
{
	struct program p = {.eh = {.e_type = ET_EXEC,
				   .e_machine = EM_X86_64,
				   .e_version = 1,
				   .e_ehsize = sizeof(Elf64_Ehdr),
				   .e_phoff = sizeof(Elf64_Ehdr),
				   .e_phentsize = sizeof(Elf64_Phdr),
				   .e_phnum = 1},
			    .ph = {.p_type = PT_LOAD,
				   .p_flags = PF_R | PF_X,
				   .p_offset = offsetof(struct program, code),
				   .p_vaddr = CODE_AT,
				   .p_filesz = CODE_BYTES,
				   .p_memsz = CODE_BYTES}};
	struct elf *e = NULL;
	memcpy(p.eh.e_ident, ELFMAG "\2\1\1", 7);
	for (size_t c = 0; c < nr_copies; c++)
		for (size_t i = 0; i < TEXT_BYTES; i++)
			p.code[TEXT_AT * (c + 1) + i] = byte_at(i);
	p.code[TEXT_AT + changed] ^= 1;
	CHECK(!elf_open_bytes(&e, &p, sizeof(p), NULL));
	return e;
}

static bool is_found(size_t nr_copies, size_t changed, size_t nr_bytes)
{
	CLEANUP(buf_release) struct buf archive = {0};
	CLEANUP(allocfind_release) struct allocfind f = {0};
	CLEANUP(elf_free_p) struct elf *e = make_program(nr_copies, changed);
	make_archive(&archive);
	CLEANUP(elf_free_p)
	struct elf *symbols = libcmatch_with(e, archive.p, MIN(archive.n, nr_bytes));
	if (!symbols)
		return false;
	CHECK(!allocfind_image(&f, e, symbols, NULL, NULL));
	CHECK(f.is_libc);
	CHECK_U64(f.functions.n, 2);
	CHECK_STR(f.functions.p[0].name, "malloc");
	CHECK_U64(f.functions.p[0].vaddr, CODE_AT + TEXT_AT);
	CHECK_U64(f.functions.p[1].vaddr, CODE_AT + TEXT_AT + 32);
	return true;
}

TEST(libcmatch_finds_the_library_s_code_but_for_relocations)
{
	CHECK(is_found(1, FIELD_AT, SIZE_MAX));
}

TEST(libcmatch_takes_no_code_that_is_not_the_library_s)
{
	CHECK(!is_found(0, 0, SIZE_MAX));
	CHECK(!is_found(1, TEXT_BYTES - 1, SIZE_MAX)); /* one byte is another */
	CHECK(!is_found(2, FIELD_AT, SIZE_MAX));       /* it is there twice */
}

TEST(libcmatch_reads_no_byte_behind_an_archive_that_was_cut)
{
	for (size_t n = 0; n < sizeof(struct library) + 100; n++)
		(void)is_found(1, FIELD_AT, n);
	CHECK(!is_found(1, FIELD_AT, 100));
}
