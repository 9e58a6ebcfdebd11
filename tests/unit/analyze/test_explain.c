/* host/memory/anon.c, analyze/memory/explain.c: owners of memory; the parts add up. */
#include "base/base.h"

#include "analyze/memory/explain.h"
#include "host/memory/anon.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tap.h"

/* ---- whose anonymous memory is ------------------------------------------------------------ */

struct fake {
	uint64_t addr;
	uint64_t words[4];
};

static bool read_fake(void *ctx, uint64_t addr, void *to, size_t nr_bytes)
{
	for (const struct fake *f = ctx; f->addr; f++)
		if (f->addr == addr && nr_bytes == sizeof(f->words)) {
			memcpy(to, f->words, nr_bytes);
			return true;
		}
	return false;
}

static struct memanon judge(uint64_t start, uint64_t len, struct fake *memory)
{
	CLEANUP(memmaps_release) struct memmaps m = {0};
	struct memmap one = {.start = start,
			     .end = start + len,
			     .is_readable = true,
			     .is_writable = true,
			     .rss_bytes = 4096};
	vec_push(&m.list, one);
	uint32_t nr_left = 1000;
	return memanon_classify(&m, 0, read_fake, memory, &nr_left);
}

TEST(memanon_knows_mallocs_arenas_and_blocks)
{
	const uint64_t at = 0x7f0000000000;
	struct fake arena[] = {{at, {at + 0x30, 0, 0x21000, 0x30000}}, {0}};
	CHECK(judge(at, 0x30000, arena).owner == MEMANON_GLIBC_ARENA);
	CHECK(judge(at + 0x1000, 0x30000, arena).owner == MEMANON_UNKNOWN);
	arena[0].words[3] = 0x40000; /* more than is mapped */
	CHECK(judge(at, 0x30000, arena).owner == MEMANON_UNKNOWN);
	struct fake second[] = {{at, {0x7e0000000030, at - (64ull << 20), 0x1000, 0x30000}}, {0}};
	CHECK(judge(at, 0x30000, second).owner == MEMANON_GLIBC_ARENA);
	struct fake blocks[] = {{at, {0, 0x21002, 1, 1}}, {at + 0x21000, {0, 0x41002, 1, 1}}, {0}};
	struct memanon who = judge(at, 0x62000, blocks);
	CHECK(who.owner == MEMANON_GLIBC_MMAP && who.owned_bytes == 0x62000);
	who = judge(at, 0x70000, blocks); /* what follows is not malloc's */
	CHECK(who.owner == MEMANON_GLIBC_MMAP && who.owned_bytes == 0x62000);
	who = judge(at, 0x30000, blocks); /* the second says more than is mapped */
	CHECK(who.owned_bytes == 0x21000);
	struct fake aligned[] = {{at, {0xff0, 0x20010 | 2, 0, 0}}, {0}};
	CHECK_U64(judge(at, 0x21000, aligned).owned_bytes, 0x21000);
	struct fake endless[] = {{at, {0, 2, 0, 0}}, {0}};
	CHECK(judge(at, 0x21000, endless).owner == MEMANON_UNKNOWN);
	struct fake later[] = {{at + 0x5000, {0, 0x21002, 1, 1}}, {0}};
	CHECK_U64(judge(at, 0x30000, later).owned_bytes, 0x21000);
	struct fake huge[] = {{at, {UINT64_MAX & ~15ull, UINT64_MAX & ~5ull, 0, 0}}, {0}};
	CHECK(judge(at, 0x21000, huge).owner == MEMANON_UNKNOWN);
}

TEST(memanon_knows_runtimes_and_bss)
{
	struct fake chunk[] = {{0x5501240000, {0x40000, 4, 0x3ce4e040, 0x5501241148}}, {0}};
	CHECK(judge(0x5501240000, 0x40000, chunk).owner == MEMANON_V8);
	CHECK(judge(0x5501240000, 0x80000, chunk).owner == MEMANON_UNKNOWN);
	struct fake none[] = {{0}};
	CHECK(judge(0xc000000000, 0x400000, none).owner == MEMANON_GO);
	CHECK(judge(0x1000000, 0x400000, none).owner == MEMANON_UNKNOWN);
	CLEANUP(memmaps_release) struct memmaps m = {0};
	memmaps_parse(&m, sv_from_str("00400000-00401000 r-xp 00000000 fe:00 10 /bin/a\n"
				      "00601000-00602000 rw-p 00001000 fe:00 10 /bin/a\n"
				      "00602000-00702000 rw-p 00000000 00:00 0 \n"));
	CHECK_U64(m.list.n, 3);
	uint32_t nr_left = 10;
	CHECK(memanon_classify(&m, 2, read_fake, none, &nr_left).owner == MEMANON_BSS);
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
		is_found =
			one->anon.owner == MEMANON_GLIBC_MMAP && one->anon.owned_bytes >= nr_bytes;
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
	memexplain_maps(e, &m);
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
