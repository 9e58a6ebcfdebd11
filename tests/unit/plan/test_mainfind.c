/* plan/mainfind: the main function of this program, and of entry code of other C libraries. */
#include "base/base.h"
#include "tap.h"

#include <elf.h>
#include <sys/auxv.h>

#include "elf_path.h"
#include "plan/mainfind.h"

#define CODE_AT    0x1000u
#define CODE_BYTES 256u

extern int main(int argc, char **argv);

#if defined(__x86_64__)

TEST(main_of_this_program_is_found)
{
	CLEANUP(elf_free_p) struct elf *e = NULL;
	CHECK(!elf_open_path(&e, "/proc/self/exe", NULL));
	uint64_t bias = getauxval(AT_ENTRY) - elf_entry(e);
	CHECK(mainfind_vaddr(e) + bias == (uint64_t)(uintptr_t)main);
}

static uint64_t found_in(const uint8_t *code, size_t n)
{
	struct {
		Elf64_Ehdr eh;
		Elf64_Phdr ph;
		uint8_t code[CODE_BYTES];
	} image = {.eh = {.e_type = ET_EXEC,
			  .e_machine = EM_X86_64,
			  .e_version = 1,
			  .e_entry = CODE_AT,
			  .e_ehsize = sizeof(Elf64_Ehdr),
			  .e_phoff = sizeof(Elf64_Ehdr),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = 1},
		   .ph = {.p_type = PT_LOAD,
			  .p_flags = PF_R | PF_X,
			  .p_offset = offsetof(__typeof__(image), code),
			  .p_vaddr = CODE_AT,
			  .p_filesz = CODE_BYTES,
			  .p_memsz = CODE_BYTES}};
	CLEANUP(elf_free_p) struct elf *e = NULL;
	memcpy(image.eh.e_ident, ELFMAG "\2\1\1", 7);
	memcpy(image.code, code, n);
	CHECK(!elf_open_bytes(&e, &image, sizeof(image), NULL));
	return mainfind_vaddr(e);
}

TEST(main_is_the_first_argument_of_the_c_library)
{
	/* mov $0x1080, %rdi; addr32 call */
	static const uint8_t fixed[] = {0x31, 0xed, 0x48, 0xc7, 0xc7, 0x80, 0x10, 0,
					0,    0x67, 0xe8, 1,    0,    0,    0,    0xf4};
	/* lea 0x7e(%rip), %rdi; call *0x10(%rip) */
	static const uint8_t pie[] = {0x31, 0xed, 0x48, 0x8d, 0x3d, 0x77, 0, 0,
				      0,    0xff, 0x15, 0x10, 0,    0,    0};
	/* mov %rsp, %rdi; call +3 */
	static const uint8_t musl[] = {0x48, 0x89, 0xe7, 0xe8, 3, 0, 0, 0, 0xf4, 0xf4, 0xf4,
				       /* lea 0x6e(%rip), %rdi; jmp */
				       0x48, 0x8d, 0x3d, 0x6e, 0, 0, 0, 0xe9, 0x10, 0, 0, 0};
	CHECK(found_in(fixed, sizeof(fixed)) == 0x1080);
	CHECK(found_in(pie, sizeof(pie)) == 0x1080);
	CHECK(found_in(musl, sizeof(musl)) == 0x1080);
}

TEST(main_is_not_guessed)
{
	/* mov 0x10(%rip), %rdi; call *0x10(%rip): a slot that the dynamic linker fills */
	static const uint8_t slot[] = {0x48, 0x8d, 0x3d, 0x77, 0,    0,    0,    0x48, 0x8b, 0x3d,
				       0x10, 0,    0,    0,    0xff, 0x15, 0x10, 0,    0,    0};
	/* mov $0x8000, %rdi; call: not code */
	static const uint8_t data[] = {0x48, 0xc7, 0xc7, 0, 0x80, 0, 0, 0xe8, 0, 0, 0x40, 0};
	CHECK(!found_in(slot, sizeof(slot)));
	CHECK(!found_in(data, sizeof(data)));
}

#endif
