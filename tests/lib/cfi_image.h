/*
 * Builds an ELF image for tests of the unwinder: one executable segment at CFI_IMAGE_CODE, .eh_frame,
 * and one more section. In a header, because fuzzers do not link the test library.
 */
#ifndef ASSAY_TESTS_LIB_CFI_IMAGE_H
#define ASSAY_TESTS_LIB_CFI_IMAGE_H

#include <elf.h>

#include "arch.h"
#include "base/base.h"
#include "base/buf.h"

#define CFI_IMAGE_CODE     0x10000u /* link-time */
#define CFI_IMAGE_EH_FRAME 0x400000u

enum cfi_image_other { CFI_IMAGE_DEBUG_FRAME = 0, CFI_IMAGE_GOPCLNTAB };

static inline void cfi_image(struct buf *to, struct sv eh_frame, enum cfi_image_other which,
			     struct sv other, struct sv code)
{
	static const char names[] = "\0.eh_frame\0.debug_frame\0.gopclntab\0.shstrtab";
	static const uint32_t name_of_other[] = {11, 24};
	Elf64_Ehdr eh = {.e_type = ET_DYN,
			 .e_machine = ARCH_ELF_MACHINE,
			 .e_version = 1,
			 .e_ehsize = sizeof(eh),
			 .e_phoff = sizeof(eh),
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = 1,
			 .e_shentsize = sizeof(Elf64_Shdr),
			 .e_shnum = 4,
			 .e_shstrndx = 3};
	memcpy(eh.e_ident, ELFMAG "\2\1\1", 7);
	uint64_t at = sizeof(eh) + sizeof(Elf64_Phdr);
	Elf64_Phdr ph = {.p_type = PT_LOAD,
			 .p_flags = PF_R | PF_X,
			 .p_offset = at,
			 .p_vaddr = CFI_IMAGE_CODE,
			 .p_filesz = code.n,
			 .p_memsz = code.n};
	Elf64_Shdr sh[4] = {{0}};
	at += code.n;
	sh[1] = (Elf64_Shdr){.sh_name = 1,
			     .sh_type = SHT_PROGBITS,
			     .sh_addr = CFI_IMAGE_EH_FRAME,
			     .sh_offset = at,
			     .sh_size = eh_frame.n};
	at += eh_frame.n;
	sh[2] = (Elf64_Shdr){.sh_name = name_of_other[which],
			     .sh_type = SHT_PROGBITS,
			     .sh_offset = at,
			     .sh_size = other.n};
	at += other.n;
	sh[3] = (Elf64_Shdr){
		.sh_name = 35, .sh_type = SHT_STRTAB, .sh_offset = at, .sh_size = sizeof(names)};
	eh.e_shoff = at + sizeof(names);
	buf_add(to, &eh, sizeof(eh));
	buf_add(to, &ph, sizeof(ph));
	if (code.n)
		buf_add(to, code.p, code.n);
	if (eh_frame.n)
		buf_add(to, eh_frame.p, eh_frame.n);
	if (other.n)
		buf_add(to, other.p, other.n);
	buf_add(to, names, sizeof(names));
	buf_add(to, sh, sizeof(sh));
}

#endif
