/* analyze/allocstats: tables and notes made from the statistics of an allocator. */
#include "base/base.h"
#include "tap.h"

#include "analyze/memory/allocstats.h"
#include "base/buf.h"
#include "render/text.h"

#define MIB ((uint64_t)1 << 20)

static struct allocstats_class classes[] = {
	{.size_bytes = 64, .nr_live = 100, .nr_slabs = 2, .nr_per_slab = 64},
	{.size_bytes = 320, .nr_live = 1024, .nr_slabs = 128, .nr_per_slab = 64},
	{.size_bytes = MIB, .nr_live = 20},
};

static const struct allocstats_of of = {"server (42)", "jemalloc 5.3.0, static", 140 * MIB};

static struct allocstats made(void)
{
	return (struct allocstats){
		.allocated_bytes = 60 * MIB,
		.active_bytes = 80 * MIB,
		.metadata_bytes = 5 * MIB,
		.resident_bytes = 125 * MIB,
		.mapped_bytes = 130 * MIB,
		.retained_bytes = 900 * MIB,
		.tcache_bytes = 10 * MIB,
		.dirty_decay_ms = 10000,
		.nr_arenas = 9,
		.nr_threads = 4,
		.classes = {classes, ARRAY_LEN(classes), ARRAY_LEN(classes)},
	};
}

static bool says(const struct report *r, const char *part)
{
	vec_foreach(n, &r->notes)
		if (strstr(*n, part))
			return true;
	return false;
}

TEST(allocstats_rank_classes_by_what_is_unused)
{
	CLEANUP(report_free_p) struct report *r = report_new();
	struct allocstats s = made();
	allocstats_report(r, &of, &s, 2);
	const struct report_table *t = &r->tables.p[1];
	CHECK_U64(t->nr_rows, 2);
	CHECK_U64(t->nr_rows_total, 3);
	CHECK_U64(t->cells[0].u, 320);
	CHECK_U64(t->cells[5].u, (128 * 64 - 1024) * 320);
	CHECK(t->cells[4].d == 12.5);
	CHECK_U64(t->cells[6].u, 64);
	CHECK_U64(allocstats_unused(&classes[2]), 0);
}

TEST(allocstats_say_where_memory_is)
{
	CLEANUP(report_free_p) struct report *r = report_new();
	struct allocstats s = made();
	allocstats_report(r, &of, &s, 0);
	CHECK(says(r, "of 125 MiB resident in the allocator, 50.0 MiB are in use (40.0 %)"));
	CHECK(says(r, "fragmentation: 20.0 MiB of free slots next to live blocks, mostly in size "
		      "class 320 B"));
	CHECK(says(r,
		   "40.0 MiB are free pages that the allocator keeps for 10000 ms; idle arenas"));
	CHECK(!says(r, "allocator metadata"));
	CHECK(!says(r, "never returned to the kernel"));
}

TEST(allocstats_name_pages_that_are_never_given_back)
{
	CLEANUP(report_free_p) struct report *r = report_new();
	struct allocstats s = made();
	s.dirty_decay_ms = -1;
	allocstats_report(r, &(struct allocstats_of){"x", "y", 60 * MIB}, &s, 0);
	CHECK(says(r, "never returned to the kernel"));
	CHECK(says(r, "is less than what the allocator counts"));
}

TEST(allocstats_survive_numbers_that_make_no_sense)
{
	CLEANUP(report_free_p) struct report *r = report_new();
	struct allocstats_class odd = {UINT64_MAX, 1, UINT64_MAX, UINT32_MAX};
	struct allocstats s = {.active_bytes = UINT64_MAX,
			       .tcache_bytes = ALLOCSTATS_UNKNOWN,
			       .classes = {&odd, 1, 1}};
	allocstats_report(r, &of, &s, 0);
	CLEANUP(buf_release) struct buf b = {0};
	text_render(&b, r, &(struct text_style){0});
	CHECK_U64(allocstats_unused(&odd), UINT64_MAX);
	CHECK(b.n > 0);
}
