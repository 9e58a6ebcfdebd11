/* host/memory/anon.c, analyze/memory/explain.c: owners of memory; the parts add up. */
#include "base/base.h"

#include "analyze/memory/explain.h"
#include "host/memory/anon.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tap.h"

/* ---- whose anonymous memory is ------------------------------------------------------------ */

#define AT ((uint64_t)0x7f0000000000)

/* Pages that are resident; those without an address are read as 0. */
struct fake {
	uint64_t addr;
	struct pagehead head;
};

static void read_fake(void *ctx, uint64_t addr, size_t nr_pages, struct pagehead *to)
{
	for (size_t i = 0; i < nr_pages; i++) {
		to[i] = (struct pagehead){.is_resident = true, .is_read = true};
		for (const struct fake *f = ctx; f->addr; f++)
			if (f->addr == addr + i * PAGEHEAD_PAGE)
				memcpy(to[i].bytes, f->head.bytes, PAGEHEAD_BYTES);
	}
}

static struct memanon judge(uint64_t start, uint64_t len, struct fake *memory)
{
	CLEANUP(memmaps_release) struct memmaps m = {0};
	struct memmap one = {.start = start,
			     .end = start + len,
			     .is_readable = true,
			     .is_writable = true,
			     .rss_bytes = len};
	vec_push(&m.list, one);
	struct memanon_source from = {.read = read_fake, .ctx = memory, .nr_left = 1 << 20};
	return memanon_classify(&m, 0, &from);
}

static uint64_t owned(uint64_t start, uint64_t len, struct fake *memory, enum memanon_owner owner)
{
	struct memanon who = judge(start, len, memory);
	return who.of[owner].resident_bytes;
}

#define WORDS(...)                       \
	{                                \
		.words = { __VA_ARGS__ } \
	}

TEST(memanon_knows_mallocs_arenas)
{
	struct fake arena[] = {{AT, WORDS(AT + 0x30, 0, 0x21000, 0x30000)}, {0}};
	CHECK_U64(owned(AT, 0x30000, arena, MEMANON_GLIBC_ARENA), 0x30000);
	arena[0].head.words[3] = 0x40000; /* more than is mapped */
	CHECK_U64(owned(AT, 0x30000, arena, MEMANON_GLIBC_ARENA), 0);
	/* Two heaps that fill their 64 MiB are one mapping. */
	const uint64_t len = 64 << 20;
	struct fake full[] = {{AT, WORDS(AT + 0x30, 0, len, len)},
			      {AT + len, WORDS(AT + 0x30, AT, 0x1000, 0x21000)},
			      {0}};
	CHECK_U64(owned(AT, len + 0x21000, full, MEMANON_GLIBC_ARENA), len + 0x21000);
}

TEST(memanon_knows_mallocs_large_blocks)
{
	struct fake blocks[] = {
		{AT, WORDS(0, 0x21002, 1, 1)}, {AT + 0x21000, WORDS(0, 0x41002, 1, 1)}, {0}};
	CHECK_U64(owned(AT, 0x62000, blocks, MEMANON_GLIBC_MMAP), 0x62000);
	/* What follows is not malloc's. */
	CHECK_U64(owned(AT, 0x70000, blocks, MEMANON_GLIBC_MMAP), 0x62000);
	/* The second says more than is mapped. */
	CHECK_U64(owned(AT, 0x30000, blocks, MEMANON_GLIBC_MMAP), 0x21000);
	struct fake aligned[] = {{AT, WORDS(0xff0, 0x20010 | 2, 0, 0)}, {0}};
	CHECK_U64(owned(AT, 0x21000, aligned, MEMANON_GLIBC_MMAP), 0x21000);
	struct fake endless[] = {{AT, WORDS(0, 2, 0, 0)}, {0}};
	CHECK_U64(owned(AT, 0x21000, endless, MEMANON_GLIBC_MMAP), 0);
	/* Behind more memory of others than one read fetches. */
	struct fake later[] = {{AT + 0x20000000, WORDS(0, 0x21002, 1, 1)}, {0}};
	CHECK_U64(owned(AT, 0x20030000, later, MEMANON_GLIBC_MMAP), 0x21000);
	struct fake huge[] = {{AT, WORDS(UINT64_MAX & ~15ull, UINT64_MAX & ~5ull, 0, 0)}, {0}};
	CHECK_U64(owned(AT, 0x21000, huge, MEMANON_GLIBC_MMAP), 0);
}

static struct fake pool(uint64_t addr, uint32_t pool_bytes, uint32_t class_idx, uint32_t nr_used)
{
	struct fake f = {addr, {0}};
	f.head.halves[0] = nr_used;
	f.head.words[1] = addr + 48;
	f.head.halves[9] = class_idx;
	f.head.halves[10] = 48 + nr_used * (class_idx + 1) * 16;
	f.head.halves[11] = pool_bytes - (class_idx + 1) * 16;
	return f;
}

TEST(memanon_follows_an_arena_into_the_mapping_that_grew_after_a_fork)
{
	CLEANUP(memmaps_release) struct memmaps m = {0};
	for (uint64_t i = 0; i < 2; i++) {
		struct memmap one = {.start = AT + i * 0x21000,
				     .end = AT + (i + 1) * 0x21000,
				     .is_readable = true,
				     .is_writable = true,
				     .rss_bytes = 0x21000};
		vec_push(&m.list, one);
	}
	struct fake arena[] = {{AT, WORDS(AT + 0x30, 0, 0x42000, 0x42000)}, {0}};
	struct memanon_source from = {.read = read_fake, .ctx = arena, .nr_left = 1000};
	for (size_t i = 0; i < 2; i++) {
		struct memanon who = memanon_classify(&m, i, &from);
		CHECK_U64(who.of[MEMANON_GLIBC_ARENA].resident_bytes, 0x21000);
	}
}

TEST(memanon_knows_pools_of_python)
{
	/* Arenas are not aligned to pools. */
	struct fake pools[] = {
		pool(AT + 0x4000, 0x4000, 0, 100), pool(AT + 0x8000, 0x4000, 31, 3), {0}};
	struct memanon who = judge(AT + 0x1000, 0x10000, pools);
	CHECK_U64(who.of[MEMANON_PYMALLOC].resident_bytes, 0x8000);
	CHECK_U64(who.of[MEMANON_PYMALLOC].used_bytes, 100 * 16 + 3 * 512);
	struct fake older[] = {pool(AT + 0x3000, 0x1000, 3, 2), {0}};
	CHECK_U64(owned(AT, 0x10000, older, MEMANON_PYMALLOC), 0x1000);
	pools[0].head.halves[11] -= 16; /* of another size class */
	pools[1].head.halves[0] = 100;  /* more than fit */
	CHECK_U64(owned(AT, 0x10000, pools, MEMANON_PYMALLOC), 0);
}

TEST(memanon_knows_the_buffer_pool_of_innodb)
{
	struct fake frames[] = {{AT + 0x4000, {0}}, {AT + 0xc000, {0}}, {0}};
	for (size_t i = 0; i < 2; i++) {
		frames[i].head.bytes[24] = 0x45;
		frames[i].head.bytes[25] = 0xbf;
		memcpy(frames[i].head.bytes + 99, "infimum", 8);
	}
	/* The page of another type between the two counts, those around them do not. */
	CHECK_U64(owned(AT, 0x40000, frames, MEMANON_INNODB), 0xc000);
	frames[1].head.bytes[25] = 0;
	CHECK_U64(owned(AT, 0x40000, frames, MEMANON_INNODB), 0x4000);
}

TEST(memanon_attributes_memory_to_variables_that_point_to_it)
{
	CLEANUP(memmaps_release) struct memmaps m = {0};
	struct memmap one = {.start = AT,
			     .end = AT + 0x40000,
			     .is_readable = true,
			     .is_writable = true,
			     .rss_bytes = 0x40000};
	vec_push(&m.list, one);
	struct fake block[] = {{AT + 0x20000, WORDS(0, 0x10002, 1, 1)}, {0}};
	CLEANUP(memanon_source_release)
	struct memanon_source from = {.read = read_fake, .ctx = block, .nr_left = 1000};
	vec_push(&from.refs.list, (struct memanon_reference){AT - 0x1000, 3});
	vec_push(&from.refs.list, (struct memanon_reference){AT + 0x8000, 7});
	vec_push(&from.refs.list, (struct memanon_reference){AT + 0x24000, 3}); /* malloc's */
	struct memanon who = memanon_classify(&m, 0, &from);
	CHECK_U64(who.of[MEMANON_GLIBC_MMAP].resident_bytes, 0x10000);
	CHECK_U64(who.of[MEMANON_REFERENCED].resident_bytes, 0x18000);
	CHECK_U64(who.referrer, 7);
}

static void must_not_read(void *ctx, uint64_t addr, size_t nr_pages, struct pagehead *to)
{
	(void)addr;
	(void)nr_pages;
	(void)to;
	*(bool *)ctx = true;
}

TEST(memanon_does_not_read_terabytes_for_a_few_pages)
{
	CLEANUP(memmaps_release) struct memmaps m = {0};
	vec_push(&m.list, (struct memmap){.start = AT,
					  .end = AT + ((uint64_t)14 << 40),
					  .is_readable = true,
					  .is_writable = true,
					  .rss_bytes = 2 << 20});
	bool was_read = false;
	struct memanon_source from = {.read = must_not_read, .ctx = &was_read, .nr_left = 1 << 20};
	struct memanon who = memanon_classify(&m, 0, &from);
	CHECK(!was_read);
	for (size_t i = 0; i < MEMANON_NR; i++)
		CHECK_U64(who.of[i].resident_bytes, 0);
}

TEST(memanon_knows_runtimes_and_bss)
{
	const uint64_t at = 0x5501240000;
	struct fake chunk[] = {{at, WORDS(0x40000, 4, 0x3ce4e040, 0x5501241148)}, {0}};
	CHECK_U64(owned(at, 0x40000, chunk, MEMANON_V8), 0x40000);
	CHECK_U64(owned(at, 0x30000, chunk, MEMANON_V8), 0);
	struct fake none[] = {{0}};
	CHECK_U64(owned(0xc000000000, 0x400000, none, MEMANON_GO), 0x400000);
	CHECK_U64(owned(0x1000000, 0x400000, none, MEMANON_GO), 0);
	CLEANUP(memmaps_release) struct memmaps m = {0};
	memmaps_parse(&m, sv_from_str("00400000-00401000 r-xp 00000000 fe:00 10 /bin/a\n"
				      "00601000-00602000 rw-p 00001000 fe:00 10 /bin/a\n"
				      "00602000-00702000 rw-p 00000000 00:00 0 \n"));
	CHECK_U64(m.list.n, 3);
	struct memanon_source from = {.read = read_fake, .ctx = none, .nr_left = 10};
	struct memanon who = memanon_classify(&m, 2, &from);
	CHECK_U64(who.of[MEMANON_BSS].virtual_bytes, 0x100000);
	/* The program has protected a page of its data. */
	CLEANUP(memmaps_release) struct memmaps more = {0};
	memmaps_parse(&more, sv_from_str("00400000-00401000 r-xp 00000000 fe:00 10 /bin/a\n"
					 "00601000-00602000 rw-p 00001000 fe:00 10 /bin/a\n"
					 "00602000-00603000 r--p 00002000 fe:00 10 /bin/a\n"
					 "00603000-00703000 rw-p 00000000 00:00 0 \n"
					 "00801000-00802000 r--p 00001000 fe:00 10 /bin/a\n"
					 "00802000-00803000 rw-p 00000000 00:00 0 \n"));
	who = memanon_classify(&more, 3, &from);
	CHECK_U64(who.of[MEMANON_BSS].virtual_bytes, 0x100000);
	who = memanon_classify(&more, 5, &from);
	CHECK_U64(who.of[MEMANON_BSS].virtual_bytes, 0);
}

TEST(memanon_finds_a_large_block_of_this_process)
{
	const size_t nr_bytes = 5 << 20;
	char *block = malloc(nr_bytes);
	memset(block, 1, nr_bytes);
	__asm__ volatile("" : : "r"(block) : "memory");
	CLEANUP(memmaps_release) struct memmaps m = {0};
	CHECK(!memmaps_read(&m, getpid(), NULL, NULL));
	memanon_classify_all(&m, getpid());
	bool is_found = false;
	for (size_t i = 0; i < m.list.n; i++) {
		const struct memmap *one = &m.list.p[i];
		if ((uintptr_t)block < one->start || (uintptr_t)block >= one->end)
			continue;
		is_found = one->anon.of[MEMANON_GLIBC_MMAP].resident_bytes >= nr_bytes;
	}
#ifdef __SANITIZE_ADDRESS__
	is_found = true; /* its own allocator */
#endif
	CHECK(is_found);
	free(block);
}

/* ---- parts -------------------------------------------------------------------------------- */

static void add(struct memexplain *e, enum memexplain_kind kind, const char *name, uint64_t rss)
{
	const struct memexplain_part part = {.kind = kind,
					     .name = name,
					     .nr_mappings = 1,
					     .rss_bytes = rss,
					     .pss_bytes = rss,
					     .anon_bytes = rss};
	memexplain_add(e, &part);
}

static const struct report_table *report(struct report *r, const struct memexplain *e,
					 uint64_t max_rows)
{
	memexplain_report(r, e, 1000, 50, max_rows);
	return vec_last(&r->tables);
}

TEST(memexplain_names_the_recorder_of_assay)
{
	CLEANUP(memmaps_release) struct memmaps m = {0};
	memmaps_parse(&m, SV("7f0000000000-7f0000010000 r-xp 00000000 00:01 7 "
			     "/memfd:assay-heap (deleted)\nRss: 64 kB\n"
			     "7f0000100000-7f0000110000 r-xp 00000000 00:01 8 "
			     "/memfd:other (deleted)\nRss: 64 kB\n"));
	struct memexplain *e CLEANUP(memexplain_free_p) = memexplain_new();
	memexplain_maps(e, &m, 0);
	CLEANUP(report_free_p) struct report *r = report_new();
	const struct report_table *t = report(r, e, 10);
	bool is_named = false;
	for (size_t i = 0; i < t->nr_rows; i++)
		is_named |=
			!strcmp(t->cells[i * t->nr_columns + 8].text, "the recorder of assay heap");
	CHECK(is_named);
}

TEST(memexplain_parts_add_up_and_an_allocator_explains_what_it_holds)
{
	CLEANUP(memexplain_free_p) struct memexplain *e = memexplain_new();
	CLEANUP(report_free_p) struct report *r = report_new();
	add(e, MEMEXPLAIN_CODE, "/lib/a.so", 100);
	add(e, MEMEXPLAIN_CODE, "/lib/a.so", 20);
	add(e, MEMEXPLAIN_DATA, "/lib/a.so", 30);
	add(e, MEMEXPLAIN_STACKS, "stacks", 50);
	add(e, MEMEXPLAIN_UNKNOWN, "anonymous", 800);
	struct memexplain_sum s = memexplain_sum(e);
	CHECK_U64(s.rss_bytes, 1000);
	CHECK_U64(s.explained_bytes, 200);
	memexplain_allocator(e, "jemalloc", 700);
	s = memexplain_sum(e);
	CHECK_U64(s.rss_bytes, 1000);
	CHECK_U64(s.explained_bytes, 900);
	const struct report_table *t = report(r, e, 0);
	CHECK_U64(t->nr_rows, 5);
	CHECK_U64(t->cells[0].u, 700);
	CHECK_STR(t->cells[0 * t->nr_columns + 7].text, "allocator");
	CHECK_U64(t->cells[1 * t->nr_columns + 6].u, 2);
	CHECK_STR(t->cells[4 * t->nr_columns + 7].text, "[unexplained]");
	CHECK_U64(t->cells[4 * t->nr_columns].u, 100);
	CHECK(strstr(t->note, "90.0 % of 1000 B is explained") != NULL);
	/* More than there is explains all there is. */
	memexplain_allocator(e, "jemalloc", 5000);
	CHECK_U64(memexplain_sum(e).explained_bytes, 1000);
}

TEST(memexplain_likely_memory_is_not_counted_as_explained)
{
	CLEANUP(memexplain_free_p) struct memexplain *e = memexplain_new();
	CLEANUP(report_free_p) struct report *r = report_new();
	add(e, MEMEXPLAIN_CODE, "/lib/a.so", 100);
	add(e, MEMEXPLAIN_UNKNOWN, "anonymous", 300);
	memexplain_assign_likely(e, "jemalloc");
	struct memexplain_sum s = memexplain_sum(e);
	CHECK_U64(s.rss_bytes, 400);
	CHECK_U64(s.explained_bytes, 100);
	CHECK_U64(s.likely_bytes, 300);
	const struct report_table *t = report(r, e, 0);
	CHECK_STR(t->cells[7].text, "likely heap");
	CHECK_STR(t->cells[8].text, "jemalloc");
	CHECK(strstr(t->note, "25.0 % of 400 B is explained, another 75.0 % is likely") != NULL);
}

TEST(memexplain_rows_left_out_are_added_up)
{
	CLEANUP(memexplain_free_p) struct memexplain *e = memexplain_new();
	CLEANUP(report_free_p) struct report *r = report_new();
	static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		add(e, MEMEXPLAIN_FILES, names[i], 10 + i);
	add(e, MEMEXPLAIN_UNKNOWN, "anonymous", 5);
	for (uint64_t max = 0; max < 10; max++) {
		const struct report_table *t = report(r, e, max);
		uint64_t sum = 0;
		for (size_t i = 0; i < t->nr_rows; i++)
			sum += t->cells[i * t->nr_columns].u;
		CHECK_U64(sum, 96);
		CHECK_STR(t->cells[(t->nr_rows - 1) * t->nr_columns + 7].text, "[unexplained]");
		CHECK(!max || t->nr_rows <= max + 2);
	}
	CLEANUP(memexplain_free_p) struct memexplain *none = memexplain_new();
	CHECK_U64(report(r, none, 0)->nr_rows, 0);
}

/* ---- in a recording ------------------------------------------------------------------------ */

TEST(explain_parts_are_the_same_after_they_were_saved)
{
	CLEANUP(memexplain_free_p) struct memexplain *e = memexplain_new();
	CLEANUP(memexplain_free_p) struct memexplain *back = memexplain_new();
	CLEANUP(buf_release) struct buf text = {0};
	CLEANUP(buf_release) struct buf again = {0};
	const struct memexplain_part heap = {MEMEXPLAIN_HEAP, "[heap]", 1, 4096, 4000, 96, 1, 8192};
	const struct memexplain_part file = {
		MEMEXPLAIN_FILES, "/data/a file\nof two lines", 3, 100, 50, 0, 0, 200};
	memexplain_add(e, &heap);
	memexplain_add(e, &file);
	memexplain_save(&text, e);
	memexplain_load(back, buf_sv(&text));
	memexplain_save(&again, back);
	CHECK_STR(buf_str(&again), buf_str(&text));
	CHECK_U64(memexplain_sum(back).rss_bytes, 4196);
	CHECK(strstr(text.p, "/data/a file?of two lines\n") != NULL);
}

TEST(explain_leaves_out_what_a_file_made_up)
{
	CLEANUP(memexplain_free_p) struct memexplain *e = memexplain_new();
	memexplain_load(e, sv_from_str("0 1 2 3\n99 1 1 1 1 1 1 kind\nx\n-1 1 1 1 1 1 1 a\n\n"
				       "0 1 10 1 1 1 1 good\n0 1 7 1 1 1 1"));
	CHECK_U64(memexplain_sum(e).rss_bytes, 17); /* the last one is unnamed */
}
