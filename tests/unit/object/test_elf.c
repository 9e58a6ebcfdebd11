/* object/elf: reads images, refuses hostile ones. */
#include "base/base.h"
#include "tap.h"

#include <elf.h>
#include <errno.h>

#include "base/buf.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "base/file/zio.h"
#include "object/elf.h"
#include "elf_path.h"

#include <zlib.h>

/*
 * A small image: header, two PT_LOADs with vaddr != offset (as lld lays them out), a PT_NOTE with
 * a build-id, then sections: null, .text, .debug_abbrev (compressed by @compress), .shstrtab.
 */
enum compress { PLAIN, ZLIB, ZSTD, ZDEBUG };

static const char plain_text[] = "the quick brown fox jumps over the lazy dog, twice and again";

static size_t pack(enum compress how, uint8_t *to, size_t cap)
{
	uint8_t tmp[512];
	size_t n = sizeof(plain_text);
	size_t head = how == ZDEBUG ? 12 : sizeof(Elf64_Chdr);
	if (how == PLAIN) {
		memcpy(to, plain_text, n);
		return n;
	}
	Elf64_Chdr ch = {
		.ch_type = how == ZSTD ? 2 : ELFCOMPRESS_ZLIB, .ch_size = n, .ch_addralign = 1};
	if (how == ZDEBUG) {
		uint64_t be = __builtin_bswap64(n);
		memcpy(tmp, "ZLIB", 4);
		memcpy(tmp + 4, &be, 8);
	} else {
		memcpy(tmp, &ch, sizeof(ch));
	}
	size_t nr_packed;
	if (how == ZSTD) {
		CLEANUP(buf_release) struct buf b = {0};
		CHECK(!zio_compress_zstd(&b, plain_text, n, 3, NULL));
		memcpy(tmp + head, b.p, b.n);
		nr_packed = b.n;
	} else {
		uLongf got = sizeof(tmp) - head;
		CHECK(compress2(tmp + head, &got, (const Bytef *)plain_text, n, 6) == Z_OK);
		nr_packed = got;
	}
	ASSERT(head + nr_packed <= cap);
	memcpy(to, tmp, head + nr_packed);
	return head + nr_packed;
}

static size_t make_image(uint8_t img[4096], enum compress how)
{
	memset(img, 0, 4096);
	static const char names[] = "\0.text\0.debug_abbrev\0.zdebug_abbrev\0.shstrtab";
	Elf64_Ehdr eh = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			 .e_type = ET_DYN,
			 .e_machine = EM_X86_64,
			 .e_phoff = 64,
			 .e_shoff = 2048,
			 .e_ehsize = 64,
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = 3,
			 .e_shentsize = sizeof(Elf64_Shdr),
			 .e_shnum = 4,
			 .e_shstrndx = 3};
	Elf64_Phdr ph[3] = {
		{.p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = 0x640, .p_memsz = 0x640},
		{.p_type = PT_LOAD,
		 .p_flags = PF_R | PF_X,
		 .p_offset = 0x640,
		 .p_vaddr = 0x1640,
		 .p_filesz = 0x100,
		 .p_memsz = 0x100},
		{.p_type = PT_NOTE, .p_offset = 512, .p_vaddr = 512, .p_filesz = 24, .p_align = 4},
	};
	uint8_t note[24] = {4,   0,   0,   0, 8, 0, 0, 0, 3, 0, 0, 0,
			    'G', 'N', 'U', 0, 1, 2, 3, 4, 5, 6, 7, 8};
	uint8_t packed[512];
	size_t nr_packed = pack(how, packed, sizeof(packed));
	Elf64_Shdr sh[4] = {
		{0},
		{.sh_name = 1,
		 .sh_type = SHT_PROGBITS,
		 .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
		 .sh_addr = 0x1640,
		 .sh_offset = 0x640,
		 .sh_size = 0x100},
		{.sh_name = how == ZDEBUG ? 21 : 7,
		 .sh_type = SHT_PROGBITS,
		 .sh_flags = how == ZLIB || how == ZSTD ? SHF_COMPRESSED : 0,
		 .sh_offset = 1024,
		 .sh_size = nr_packed},
		{.sh_name = 36, .sh_type = SHT_STRTAB, .sh_offset = 1800, .sh_size = sizeof(names)},
	};
	memcpy(img, &eh, sizeof(eh));
	memcpy(img + 64, ph, sizeof(ph));
	memcpy(img + 512, note, sizeof(note));
	memcpy(img + 1024, packed, nr_packed);
	memcpy(img + 1800, names, sizeof(names));
	memcpy(img + 2048, sh, sizeof(sh));
	return 2048 + sizeof(sh);
}

TEST(elf_sections_are_found_and_decompressed)
{
	static const enum compress all[] = {PLAIN, ZLIB, ZSTD, ZDEBUG};
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		uint8_t img[4096];
		size_t n = make_image(img, all[i]);
		CLEANUP(elf_free_p) struct elf *e = NULL;
		CHECK(!elf_open_bytes(&e, img, n, NULL));
		struct sv bytes = {0};
		CLEANUP(err_release) struct err err = {0};
		CHECK(!elf_named_bytes(e, ".debug_abbrev", &bytes, &err));
		CHECK_STR(err.msg ? err.msg : "", "");
		CHECK_U64(bytes.n, sizeof(plain_text));
		CHECK(bytes.n == sizeof(plain_text) && !memcmp(bytes.p, plain_text, bytes.n));
		struct sv again;
		CHECK(!elf_named_bytes(e, ".debug_abbrev", &again, NULL));
		CHECK(again.p == bytes.p); /* cached */
		CHECK(!elf_named_bytes(e, ".absent", &again, NULL));
		CHECK_U64(again.n, 0);
	}
}

TEST(elf_offsets_translate_where_vaddr_differs_from_offset)
{
	uint8_t img[4096];
	size_t n = make_image(img, PLAIN);
	CLEANUP(elf_free_p) struct elf *e = NULL;
	CHECK(!elf_open_bytes(&e, img, n, NULL));
	uint64_t v = 0;
	CHECK(elf_vaddr_from_offset(e, 0x650, &v));
	CHECK_U64(v, 0x1650);
	CHECK(elf_vaddr_from_offset(e, 0x10, &v)); /* the page is mapped executable too */
	CHECK_U64(v, 0x1010);
	CHECK(!elf_vaddr_from_offset(e, 0x5000, &v));
	CHECK(elf_offset_from_vaddr(e, 0x1741 - 2, &v));
	CHECK_U64(v, 0x73f);
	CHECK(!elf_offset_from_vaddr(e, 0x1740, &v));
}

TEST(elf_build_id_comes_from_the_note_segment)
{
	uint8_t img[4096];
	size_t n = make_image(img, PLAIN);
	CLEANUP(elf_free_p) struct elf *e = NULL;
	CHECK(!elf_open_bytes(&e, img, n, NULL));
	uint8_t id[ELF_BUILD_ID_MAX];
	CHECK_U64(elf_build_id(e, id), 8);
	CHECK(!memcmp(id, "\1\2\3\4\5\6\7\10", 8));
}

TEST(elf_without_section_headers_still_opens)
{
	uint8_t img[4096];
	(void)make_image(img, PLAIN);
	CLEANUP(elf_free_p) struct elf *e = NULL;
	CHECK(!elf_open_bytes(&e, img, 2000, NULL)); /* cut before the section table */
	size_t nr;
	(void)elf_sections(e, &nr);
	CHECK_U64(nr, 0);
	(void)elf_segments(e, &nr);
	CHECK_U64(nr, 3);
	uint8_t id[ELF_BUILD_ID_MAX];
	CHECK_U64(elf_build_id(e, id), 8);
}

TEST(elf_truncated_or_corrupted_anywhere_does_not_crash)
{
	static const enum compress all[] = {PLAIN, ZLIB, ZSTD, ZDEBUG};
	for (size_t k = 0; k < ARRAY_LEN(all); k++) {
		uint8_t img[4096];
		size_t n = make_image(img, all[k]);
		for (size_t i = 0; i < 2 * n; i++) {
			uint8_t copy[4096];
			memcpy(copy, img, n);
			if (i >= n)
				copy[i - n] ^= 0xff;
			CLEANUP(elf_free_p) struct elf *e = NULL;
			struct sv bytes;
			uint64_t v;
			if (elf_open_bytes(&e, copy, i < n ? i : n, NULL))
				continue;
			(void)elf_named_bytes(e, ".debug_abbrev", &bytes, NULL);
			(void)elf_vaddr_from_offset(e, 0x650, &v);
			(void)elf_offset_from_vaddr(e, 0x1650, &v);
		}
	}
}

TEST(elf_compressed_section_size_is_limited)
{
	uint8_t img[4096];
	size_t n = make_image(img, ZLIB);
	uint64_t claim = (uint64_t)1 << 40;
	memcpy(img + 1024 + 8, &claim, sizeof(claim)); /* ch_size */
	CLEANUP(elf_free_p) struct elf *e = NULL;
	CHECK(!elf_open_bytes(&e, img, n, NULL));
	struct sv bytes;
	CHECK(elf_named_bytes(e, ".debug_abbrev", &bytes, NULL) == -EFBIG);
}

TEST(elf_other_machines_and_files_give_distinct_errors)
{
	uint8_t img[4096];
	size_t n = make_image(img, PLAIN);
	struct elf *e = NULL;
	img[18] = 3; /* EM_386 */
	CHECK(elf_open_bytes(&e, img, n, NULL) == -ENOTSUP);
	img[0] = 'x';
	CHECK(elf_open_bytes(&e, img, n, NULL) == -ENOEXEC);
	CHECK(elf_open_path(&e, "/dev/null", NULL) == -EINVAL);
}

TEST(elf_reads_the_running_program)
{
	CLEANUP(elf_free_p) struct elf *e = NULL;
	CHECK(!elf_open_path(&e, "/proc/self/exe", NULL));
	CHECK(elf_section(e, ".text") != NULL);
	CHECK(!elf_is_relocatable(e));
	uint8_t magic[4];
	CHECK(!elf_read(e, magic, sizeof(magic), 0, NULL));
	CHECK(!memcmp(magic, "\177ELF", 4));
	CHECK(elf_read(e, magic, sizeof(magic), UINT64_MAX - 1, NULL) == -ENODATA);
}
