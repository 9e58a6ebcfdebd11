/* Unwind tables compared with a plain run of each program, from hand-made sections, and cached. */
#include "base/base.h"
#include "tap.h"
#include "unwind/table.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/mem.h"
#include "cfi_image.h"
#include "unwind/cfi.h"
#include "unwind/rowcode.h"
#include "elf_path.h"

static struct unwind_table *build(const char *path, const char *cache_dir)
{
	struct unwind_table *t = NULL;
	CLEANUP(elf_free_p) struct elf *elf = NULL;

	if (elf_open_path(&elf, path, NULL))
		tap_skip("cannot open %s", path);
	CHECK(unwind_table_build(&t, elf, cache_dir, NULL) == 0);
	return t;
}

#define BIG_BINARY "/lib/x86_64-linux-gnu/libc.so.6"

TEST(unwind_rows_equal_the_fde_rules_at_every_byte)
{
	CLEANUP(unwind_table_free_p) struct unwind_table *t = build(BIG_BINARY, NULL);
	struct cfi_run run;
	struct row_coder coder = {0};
	uint64_t nr_checked = 0;

	CHECK(t->nr_rows > 10000);
	CHECK_U64(t->nr_bad, 0);
	for (uint64_t vaddr = t->base; vaddr < t->end; vaddr += 13) {
		struct ehframe_fde fde;
		struct ehframe_cie cie;
		if (!unwind_table_fde(t, vaddr, &fde, &cie))
			continue;
		const struct cfi_rules *rules = cfi_at(&run, &fde, vaddr);
		const struct unwind_row *row = unwind_table_find(t, vaddr);
		CHECK(rules && row);
		if (!rules || !row)
			continue;
		uint32_t rule = row_code(&coder, rules);
		CHECK_U64(row_kind(rule), row_kind(row->rule));
		if (row_kind(rule) != ROW_SPECIAL)
			CHECK_U64(rule, row->rule);
		else
			CHECK(!memcmp(&t->specials[row_special_idx(row->rule)],
				      &coder.specials.p[row_special_idx(rule)],
				      sizeof(struct unwind_special)));
		nr_checked++;
	}
	CHECK(nr_checked > 10000);
	row_coder_release(&coder);
}

/* One CIE (zR, udata4) at 0, and FDEs with absolute start and size. */
static void made_cie(struct buf *b)
{
	static const uint8_t cie[] = {24, 0, 0, 0,    0, 0, 0,    0, 1, 'z', 'R', 0, 1, 0x78,
				      16, 1, 3, 0x0c, 7, 8, 0x90, 1, 0, 0,   0,   0, 0, 0};
	buf_add(b, cie, sizeof(cie));
}

static void made_fde(struct buf *b, uint32_t start, uint32_t size, const char *program, size_t n)
{
	size_t pad = (4 - (n + 1) % 4) % 4;
	buf_add_u32le(b, (uint32_t)(4 + 8 + 1 + n + pad));
	buf_add_u32le(b, (uint32_t)b->n);
	buf_add_u32le(b, start);
	buf_add_u32le(b, size);
	buf_add_ch(b, 0);
	buf_add(b, program, n);
	buf_add_repeat(b, 0, pad);
}

static struct unwind_table *made(const struct buf *eh, const struct buf *debug)
{
	CLEANUP(buf_release) struct buf image = {0};
	CLEANUP(elf_free_p) struct elf *elf = NULL;
	struct unwind_table *t = NULL;
	char code[4096];

	memset(code, 0xcc, sizeof(code)); /* nothing that could be followed */
	cfi_image(&image, buf_sv(eh), CFI_IMAGE_DEBUG_FRAME, debug ? buf_sv(debug) : (struct sv){0},
		  sv_from(code, sizeof(code)));
	CHECK(elf_open_bytes(&elf, image.p, image.n, NULL) == 0);
	CHECK(unwind_table_build(&t, elf, NULL, NULL) == 0);
	return t;
}

static uint32_t rule_of(const struct unwind_table *t, uint32_t off)
{
	const struct unwind_row *row = unwind_table_find(t, CFI_IMAGE_CODE + off);
	return row ? row->rule : UINT32_MAX;
}

#if defined(__x86_64__)
TEST(unwind_table_sorts_trims_overlaps_and_marks_gaps)
{
	CLEANUP(buf_release) struct buf b = {0};

	made_cie(&b);
	made_fde(&b, CFI_IMAGE_CODE + 0x100, 0x20, "\x41\x0e\x10", 3);
	made_fde(&b, CFI_IMAGE_CODE + 0x40, 0x30, "\x42\x0e\x18", 3); /* not in order */
	made_fde(&b, CFI_IMAGE_CODE + 0x60, 0x18, "\x42\x0e\x20", 3); /* overlaps it */
	made_fde(&b, CFI_IMAGE_CODE + 0x80, 0, "", 0);                /* empty */
	CLEANUP(unwind_table_free_p) struct unwind_table *t = made(&b, NULL);
	CHECK_U64(rule_of(t, 0x3f), ROW_NONE);
	CHECK_U64(rule_of(t, 0x40), row_make(ROW_SP, 8, ROW_FP_SAME));
	CHECK_U64(rule_of(t, 0x42), row_make(ROW_SP, 24, ROW_FP_SAME));
	CHECK_U64(rule_of(t, 0x5f), row_make(ROW_SP, 24, ROW_FP_SAME));
	CHECK_U64(rule_of(t, 0x60), row_make(ROW_SP, 8, ROW_FP_SAME));
	CHECK_U64(rule_of(t, 0x77), row_make(ROW_SP, 32, ROW_FP_SAME));
	CHECK_U64(rule_of(t, 0x90), ROW_NONE);
	CHECK_U64(rule_of(t, 0x101), row_make(ROW_SP, 16, ROW_FP_SAME));
	CHECK_U64(rule_of(t, 0x120), UINT32_MAX);
	CHECK_U64(t->nr_fdes, 3);
}

TEST(unwind_table_merges_padding_but_not_gaps)
{
	CLEANUP(buf_release) struct buf b = {0};

	made_cie(&b);
	made_fde(&b, CFI_IMAGE_CODE + 0x10, 0x11, "\x41\x0e\x10", 3);
	made_fde(&b, CFI_IMAGE_CODE + 0x30, 0x10, "\x41\x0e\x10", 3); /* 15 bytes after */
	made_fde(&b, CFI_IMAGE_CODE + 0x50, 0x10, "\x41\x0e\x10", 3); /* 16 bytes after */
	CLEANUP(unwind_table_free_p) struct unwind_table *t = made(&b, NULL);
	CHECK_U64(rule_of(t, 0x28), row_make(ROW_SP, 16, ROW_FP_SAME));
	CHECK_U64(rule_of(t, 0x48), ROW_NONE);
}

TEST(unwind_rows_encode_every_kind_of_rule)
{
	CLEANUP(buf_release) struct buf b = {0};
	uint32_t at = CFI_IMAGE_CODE;

	made_cie(&b);
	made_fde(&b, at + 0x00, 16, "\x0c\x06\x10\x86\x02", 5);     /* rbp + 16, c-16 */
	made_fde(&b, at + 0x10, 16, "\x07\x10", 2);                 /* ra undefined */
	made_fde(&b, at + 0x20, 16, "\x0c\x0a\x00", 3);             /* r10 + 0 */
	made_fde(&b, at + 0x30, 16, "\x0f\x03\x76\x78\x06", 5);     /* *(rbp - 8) */
	made_fde(&b, at + 0x40, 16, "\x09\x10\x05", 3);             /* ra in rdi */
	made_fde(&b, at + 0x50, 16, "\x0f\x04\x77\x08\x31\x22", 6); /* rsp + 8 + 1 */
	made_fde(&b, at + 0x60, 16, "\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22",
		 13);                                       /* PLT */
	made_fde(&b, at + 0x70, 16, "\x0e\x80\x80\x08", 4); /* 128 KiB: too far */
	made_fde(&b, at + 0x80, 16, "\x0a\x0e\x20\x41\x0b\x41\x86\x02\x41\xc6", 10);
	made_fde(&b, at + 0x90, 16, "\x41\x0b", 2); /* restore of nothing */
	CLEANUP(unwind_table_free_p) struct unwind_table *t = made(&b, NULL);
	CHECK_U64(rule_of(t, 0x00), row_make(ROW_FP, 16, -2));
	CHECK_U64(rule_of(t, 0x10), ROW_STOP);
	const struct unwind_special *s = t->specials;
	CHECK_U64(row_kind(rule_of(t, 0x20)), ROW_SPECIAL);
	CHECK_U64(s[row_special_idx(rule_of(t, 0x20))].cfa_reg, 10);
	CHECK_U64(s[row_special_idx(rule_of(t, 0x30))].cfa_kind, SPECIAL_CFA_DEREF);
	CHECK(s[row_special_idx(rule_of(t, 0x30))].cfa_off == -8);
	CHECK_U64(s[row_special_idx(rule_of(t, 0x40))].ra_kind, SPECIAL_IN_REG);
	CHECK_U64(s[row_special_idx(rule_of(t, 0x40))].ra_reg, 5);
	CHECK_U64(s[row_special_idx(rule_of(t, 0x50))].cfa_kind, SPECIAL_CFA_FULL);
	CHECK_U64(rule_of(t, 0x60), row_make(ROW_PLT, 11 * 8, ROW_FP_SAME));
	CHECK_U64(s[row_special_idx(rule_of(t, 0x70))].cfa_off, 128 << 10);
	CHECK_U64(rule_of(t, 0x80), row_make(ROW_SP, 32, ROW_FP_SAME));
	CHECK_U64(rule_of(t, 0x81), row_make(ROW_SP, 8, ROW_FP_SAME));
	CHECK_U64(rule_of(t, 0x82), row_make(ROW_SP, 8, -2));
	CHECK_U64(rule_of(t, 0x83), row_make(ROW_SP, 8, ROW_FP_SAME));
	CHECK_U64(rule_of(t, 0x90), row_make(ROW_SP, 8, ROW_FP_SAME));
	CHECK_U64(rule_of(t, 0x92), UINT32_MAX);
	CHECK_U64(t->nr_bad, 1);
}

TEST(debug_frame_is_used_only_where_eh_frame_has_no_fde)
{
	CLEANUP(buf_release) struct buf eh = {0};
	CLEANUP(buf_release) struct buf debug = {0};
	static const uint8_t cie[] = {20, 0,    0, 0, 255,  255, 255, 255, 1, 0, 1, 0x78,
				      16, 0x0c, 7, 8, 0x90, 1,   0,   0,   0, 0, 0, 0};

	made_cie(&eh);
	made_fde(&eh, CFI_IMAGE_CODE + 0x40, 0x40, "\x0e\x10", 2);
	buf_add(&debug, cie, sizeof(cie));
	for (uint64_t start = CFI_IMAGE_CODE + 0x20; start <= CFI_IMAGE_CODE + 0x60;
	     start += 0x20) {
		buf_add_u32le(&debug, 4 + 16 + 4);
		buf_add_u32le(&debug, 0);
		buf_add_u64le(&debug, start);
		buf_add_u64le(&debug, 0x20);
		buf_add(&debug, "\x0e\x20\0\0", 4);
	}
	CLEANUP(unwind_table_free_p) struct unwind_table *t = made(&eh, &debug);
	CHECK_U64(rule_of(t, 0x30), row_make(ROW_SP, 32, ROW_FP_SAME));
	CHECK_U64(rule_of(t, 0x50), row_make(ROW_SP, 16, ROW_FP_SAME));
	CHECK_U64(rule_of(t, 0x70), row_make(ROW_SP, 16, ROW_FP_SAME));
}
#endif

/* ---- the cache ---------------------------------------------------------------------------- */

static char *cache_file(const char *dir)
{
	struct stat st;
	if (stat(BIG_BINARY, &st))
		tap_skip("cannot open " BIG_BINARY);
	return xasprintf("%s/%jx-%jx.unwind", dir, (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
}

static void check_same(const struct unwind_table *a, const struct unwind_table *b)
{
	CHECK_U64(a->base, b->base);
	CHECK_U64(a->end, b->end);
	CHECK_U64(a->nr_rows, b->nr_rows);
	CHECK_U64(a->nr_fdes, b->nr_fdes);
	CHECK_U64(a->cfi[0].n, b->cfi[0].n);
	CHECK(!memcmp(a->rows, b->rows, a->nr_rows * sizeof(*a->rows)));
	CHECK(!memcmp(a->pages, b->pages, (a->nr_pages + 1) * sizeof(*a->pages)));
	CHECK(!memcmp(a->specials, b->specials, a->nr_specials * sizeof(*a->specials)));
	CHECK(!memcmp(a->fdes, b->fdes, a->nr_fdes * sizeof(*a->fdes)));
	CHECK(!memcmp(a->cfi[0].p, b->cfi[0].p, a->cfi[0].n));
}

TEST(unwind_cache_returns_the_same_table_and_rejects_changed_files)
{
	char dir[] = "/tmp/assay-unwind-XXXXXX";
	CHECK(mkdtemp(dir) != NULL);
	CLEANUP(free_p) char *path = cache_file(dir);
	CLEANUP(unwind_table_free_p) struct unwind_table *built = build(BIG_BINARY, dir);
	CHECK(!built->mapping);
	struct unwind_table *t = build(BIG_BINARY, dir);
	CHECK(t->mapping != NULL);
	check_same(t, built);
	unwind_table_free(t);

	CLEANUP(buf_release) struct buf bytes = {0};
	CHECK(file_read(&bytes, path, 1 << 26, NULL) == 0);
	for (size_t at = 0; at < bytes.n; at += at < 160 ? 1 : bytes.n / 50) {
		bytes.p[at] ^= 0x40;
		CHECK(unlink(path) == 0);
		FILE *f = fopen(path, "wb");
		CHECK(f && fwrite(bytes.p, 1, bytes.n, f) == bytes.n && !fclose(f));
		CHECK(chmod(path, 0600) == 0);
		bytes.p[at] ^= 0x40;
		t = build(BIG_BINARY, dir);
		CHECK(!t->mapping); /* and has written a good one again */
		check_same(t, built);
		unwind_table_free(t);
	}
	CHECK(chmod(path, 0666) == 0); /* anyone could have written it */
	t = build(BIG_BINARY, dir);
	CHECK(!t->mapping);
	unwind_table_free(t);
	CHECK(truncate(path, 100) == 0);
	t = build(BIG_BINARY, dir);
	CHECK(!t->mapping);
	unwind_table_free(t);
	(void)unlink(path);
	(void)rmdir(dir);
}

static void remove_dir(const char *dir)
{
	DIR *d = opendir(dir);
	CHECK(d != NULL);
	for (struct dirent *e; d && (e = readdir(d));)
		(void)unlinkat(dirfd(d), e->d_name, 0);
	closedir(d);
	CHECK(!rmdir(dir));
}

/* Writes a copy of BIG_BINARY to @path without the middle of its .eh_frame. */
static void blank_copy(const char *path)
{
	CLEANUP(elf_free_p) struct elf *elf = NULL;
	CLEANUP(buf_release) struct buf bytes = {0};
	if (elf_open_path(&elf, BIG_BINARY, NULL))
		tap_skip("cannot open " BIG_BINARY);
	const struct elf_section *s = elf_section(elf, ".eh_frame");
	CHECK(s && !file_read(&bytes, BIG_BINARY, 1 << 26, NULL));
	memset(bytes.p + s->offset + s->nr_bytes / 2, 0, s->nr_bytes / 20);
	CHECK(!out_file(path, 0600, &bytes, NULL));
}

/* The copy has the same build-id, the same size and the same ends of .eh_frame. */
TEST(unwind_cache_gives_a_binary_no_table_of_another_one)
{
	char dir[] = "/tmp/assay-unwind-XXXXXX";
	CHECK(mkdtemp(dir) != NULL);
	CLEANUP(free_p) char *blanked = xasprintf("%s/blanked", dir);
	CLEANUP(free_p) char *cache = xasprintf("%s/cache", dir);
	blank_copy(blanked);
	CLEANUP(unwind_table_free_p) struct unwind_table *poison = build(blanked, cache);
	CLEANUP(unwind_table_free_p) struct unwind_table *plain = build(BIG_BINARY, NULL);
	CLEANUP(unwind_table_free_p) struct unwind_table *t = build(BIG_BINARY, cache);
	CLEANUP(unwind_table_free_p) struct unwind_table *again = build(BIG_BINARY, cache);
	CHECK(poison->nr_fdes < plain->nr_fdes);
	check_same(t, plain);
	check_same(again, plain);
	CHECK(again->mapping != NULL);
	CLEANUP(unwind_table_free_p) struct unwind_table *own = build(blanked, cache);
	CHECK_U64(own->nr_fdes, poison->nr_fdes);
	CHECK(own->mapping != NULL);
	remove_dir(cache);
	remove_dir(dir);
}
