/* analyze/memory/leaktable.c: growing sites come first and are noted, however small. */
#include "base/base.h"
#include "tap.h"

#include <string.h>

#include "analyze/memory/heapsum.h"
#include "analyze/memory/leaks.h"
#include "analyze/report.h"
#include "base/clock.h"
#include "made.h"
#include "madeheap.h"
#include "model/heap.h"

#define SECONDS   40
#define NR_STEADY 20 /* sites that hold much, and gain nothing */

/* Sites "keepN" hold 50 MiB and more from the first second on; "drip" gains 2 KiB a second. */
static struct profile *make_profile(void)
{
	struct profile *p = madeheap_new(SECONDS, 0);
	char names[NR_STEADY][64];
	for (unsigned i = 0; i < NR_STEADY; i++) {
		snprintf(names[i], sizeof(names[i]), "main;keep%u;malloc libc.so.6", i);
		struct madeheap m = {.table = TABLE_ALLOCATED,
				     .stack = names[i],
				     .size = (50 + i) << 20,
				     .nr = 1};
		madeheap(p, &m);
		m.table = TABLE_LIVE;
		madeheap(p, &m);
	}
	for (unsigned s = 0; s < SECONDS; s++) {
		struct madeheap m = {.table = TABLE_ALLOCATED,
				     .second = s,
				     .stack = "main;drip;malloc libc.so.6",
				     .size = 2048,
				     .nr = 1};
		madeheap(p, &m);
		m.table = TABLE_LIVE;
		madeheap(p, &m);
	}
	profile_seal(p);
	return p;
}

TEST(leaktable_shows_what_grows_before_what_is_large)
{
	CLEANUP(profile_free_p) struct profile *p = make_profile();
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(err_release) struct err err = {0};
	const struct view_limits limits = {.max_rows = 3};
	CHECK(!heapsum_table(r, p, &(struct select_spec){0}, &limits, HEAPSUM_LEAKS, &err));
	const struct report_table *t = &r->tables.p[0];
	CHECK_STR(t->key, "leaks");
	CHECK_U64(t->nr_rows, 4); /* three, and all others */
	CHECK_U64(t->nr_rows_total, NR_STEADY + 1);
	const union cell *first = t->cells;
	CHECK_STR(first[4].text, "grows");
	CHECK_STR(first[5].text, "drip");
	CHECK(first[3].estimate.change == 60 * 2048);
	CHECK_STR(t->cells[t->nr_columns + 5].text, "keep19");
	CHECK_STR(t->cells[3 * t->nr_columns + 5].text, "<other>");
	CHECK(t->cells[3 * t->nr_columns].estimate.value == ((18ull * 50 + 153) << 20));
	CHECK_U64(r->notes.n, 1);
	CHECK(strstr(r->notes.p[0], "drip grows by 120 KiB/min (95 %: 120 KiB to 120 KiB)"));
}

static void read_rss(struct profile *p, unsigned second, int64_t rss)
{
	const struct tag tag = {.log2_ns = LOG2_NONE, .syscall = -1};
	const int64_t values[HEAP_MEMORY_NR] = {[HEAP_MEMORY_RSS] = rss};
	profile_tagged_sample(p, tables_add(p, TABLE_MEMORY, 0), p->start_ns + second * NS_PER_SEC,
			      0, profile_task(p, 1, 1, profile_cstr(p, "a"), p->start_ns), -1,
			      profile_tag(p, &tag), values);
}

/* A pool of constant size: each block of the capture replaces an older one, or none. */
TEST(leaktable_takes_no_replacement_of_older_blocks_for_growth)
{
	static const struct {
		uint64_t frees;
		int64_t rss_step;
		const char *verdict;
	} cases[] = {
		{2000, 0, "unclear"},    /* as many frees, RSS does not rise */
		{0, 0, "grows"},         /* not counted */
		{1, 0, "grows"},         /* into what the allocator had free */
		{2000, 800000, "grows"}, /* larger blocks than those that were freed */
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(profile_free_p) struct profile *p = madeheap_new(20, MADEHEAP_ATTACHED);
		CLEANUP(report_free_p) struct report *r = report_new();
		CLEANUP(err_release) struct err err = {0};
		const struct view_limits limits = {0};
		for (unsigned s = 0; s < 20; s++) {
			const struct madeheap m = {.second = s,
						   .size = 8000,
						   .nr = 100,
						   .stack = "main;put;malloc libc.so.6"};
			madeheap_block(p, &m, MADEHEAP_NEVER);
			read_rss(p, s, 20000000 + s * cases[i].rss_step);
		}
		profile_fact_nr(p, FACT_HEAP_ALLOCATIONS, 2000);
		profile_fact_nr(p, FACT_HEAP_FREES, cases[i].frees);
		profile_seal(p);
		CHECK(!heapsum_table(r, p, &(struct select_spec){0}, &limits, HEAPSUM_LEAKS, &err));
		CHECK_STR(r->tables.p[0].cells[4].text, cases[i].verdict);
		CHECK_U64(r->notes.n, !strcmp(cases[i].verdict, "grows"));
	}
}

/* Moves the rows of a table that are at @second to @ns after the capture's start. */
static void move_rows(struct profile *p, enum table_id id, unsigned second, uint64_t ns)
{
	vec_foreach(t, &p->tables)
		for (size_t i = 0; t->id == id && i < t->n; i++)
			if (t->time_ns[i] == p->start_ns + second * NS_PER_SEC)
				t->time_ns[i] = p->start_ns + ns;
}

/* A burst at 3.17 s of 7.05 s: older than the half, and nothing grows in the second half. */
TEST(leaktable_counts_what_was_allocated_just_before_the_middle_as_old)
{
	CLEANUP(profile_free_p) struct profile *p = madeheap_new(7, MADEHEAP_ATTACHED);
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(err_release) struct err err = {0};
	const struct view_limits limits = {0};
	const struct madeheap m = {
		.second = 3, .size = 100000, .nr = 100, .stack = "main;burst;malloc libc.so.6"};
	p->end_ns += 50000000;
	heap_slices_set(p, p->start_ns);
	madeheap_block(p, &m, MADEHEAP_NEVER);
	move_rows(p, TABLE_ALLOCATED, 3, heap_slice_start(3170000000));
	move_rows(p, TABLE_LIVE, 3, 25ull * HEAP_TICK_NS);
	profile_seal(p);
	CHECK(!heapsum_table(r, p, &(struct select_spec){0}, &limits, HEAPSUM_LEAKS, &err));
	const struct report_table *t = &r->tables.p[0];
	CHECK_U64(t->nr_rows, 1);
	CHECK(t->cells[0].estimate.value == 10000000);
	CHECK(t->cells[3].estimate.change == 0 && t->cells[3].estimate.error == 0);
	CHECK_STR(t->cells[4].text, "steady");
	struct leak_limit l;
	CHECK(!leaks_limit(p, "3800ms", &l, &err)); /* the tick ends at 3.25 s */
	CHECK(leaks_has(&l, p->start_ns + 25ull * HEAP_TICK_NS));
	CHECK(!leaks_limit(p, "3900ms", &l, &err));
	CHECK(!leaks_has(&l, p->start_ns + 25ull * HEAP_TICK_NS));
}
