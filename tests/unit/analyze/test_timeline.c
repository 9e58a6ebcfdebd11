/* analyze/memory/timeline.c: snapshots of several processes, live bytes from flows, the peak. */
#include "base/base.h"

#include "analyze/diagnose/diagnosis.h"
#include "analyze/memory/heapsum.h"
#include "analyze/memory/timeline.h"
#include "analyze/whole.h"

#include <errno.h>

#include "made.h"
#include "model/heap.h"
#include "model/tables.h"
#include "tap.h"

#define SECOND 1000000000ull
#define START  (100 * SECOND)

static void add_memory(struct profile *p, int32_t pid, uint64_t ns, int64_t rss, int64_t anon)
{
	const struct tag tag = {.log2_ns = LOG2_NONE, .syscall = -1};
	const int64_t values[HEAP_MEMORY_NR] = {[HEAP_MEMORY_RSS] = rss,
						[HEAP_MEMORY_PSS] = rss / 2,
						[HEAP_MEMORY_ANON] = anon,
						[HEAP_MEMORY_FILE] = rss - anon};
	profile_tagged_sample(p, tables_add(p, TABLE_MEMORY, 0), START + ns, 0,
			      profile_task(p, pid, pid, profile_cstr(p, "a"), START), -1,
			      profile_tag(p, &tag), values);
}

static void add_blocks(struct profile *p, enum table_id kind, uint64_t ns, const char *stack,
		       int64_t nr_bytes)
{
	const struct tag tag = {.log2_ns = LOG2_NONE, .syscall = -1};
	const int64_t values[HEAP_ALLOCATED_NR] = {1, nr_bytes, 1};
	profile_tagged_sample(p, tables_add(p, kind, 0), START + ns, made_stack(p, stack),
			      profile_task(p, 7, 7, profile_cstr(p, "a"), START), -1,
			      profile_tag(p, &tag), values);
}

TEST(memtime_adds_up_processes_by_snapshot)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	CLEANUP(arena_release) struct arena a = {0};
	struct memtime m;
	p->start_ns = START;
	add_memory(p, 7, 0, 100, 60);
	add_memory(p, 8, 1000, 10, 5);
	add_memory(p, 7, SECOND, 200, 160);
	add_memory(p, 8, SECOND + 1000, 20, 5);
	add_memory(p, 7, 2 * SECOND, 150, 110); /* 8 has ended */
	profile_seal(p);
	CHECK(tables_has_rows(p, TABLE_MEMORY));
	CHECK(!memtime_make(&a, p, &m, NULL));
	CHECK_U64(m.nr_rows, 3);
	CHECK_U64(m.nr_processes, 2);
	CHECK_U64(m.rows[0].bytes[HEAP_MEMORY_RSS], 110);
	CHECK_U64(m.rows[1].bytes[HEAP_MEMORY_RSS], 220);
	CHECK_U64(m.rows[1].bytes[HEAP_MEMORY_PSS], 110);
	CHECK_U64(m.rows[1].bytes[HEAP_MEMORY_ANON], 165);
	CHECK_U64(m.rows[2].bytes[HEAP_MEMORY_RSS], 150);
	CHECK_U64(m.peak_idx, 1);
	CHECK(!m.has_live && m.has_rss && m.has_split);
}

TEST(memtime_live_is_what_was_allocated_and_not_freed_yet)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	CLEANUP(arena_release) struct arena a = {0};
	struct memtime m;
	p->start_ns = START;
	for (uint64_t i = 0; i <= 4; i++)
		add_memory(p, 7, i * SECOND, 1 << 20, 1 << 20);
	add_blocks(p, TABLE_ALLOCATED, 0, "main;f", 1000);
	add_blocks(p, TABLE_ALLOCATED, 0, "main;g", 500);
	add_blocks(p, TABLE_ALLOCATED, SECOND, "main;f", 400);
	add_blocks(p, TABLE_FREED, 2 * SECOND, "main;f", 1400);
	add_blocks(p, TABLE_PEAK, SECOND + SECOND / 3, "main;f", 1800);
	add_blocks(p, TABLE_PEAK, SECOND + SECOND / 3, "main;g", 500);
	profile_seal(p);
	CHECK(!memtime_make(&a, p, &m, NULL));
	CHECK(m.has_live && m.is_live_whole);
	CHECK_U64(m.rows[0].bytes[HEAP_MEMORY_LIVE], 0);
	CHECK_U64(m.rows[1].bytes[HEAP_MEMORY_LIVE],
		  2300); /* the peak, a third of a second later */
	CHECK_U64(m.rows[2].bytes[HEAP_MEMORY_LIVE], 1900);
	CHECK_U64(m.rows[3].bytes[HEAP_MEMORY_LIVE], 500);
	CHECK_U64(m.rows[4].bytes[HEAP_MEMORY_LIVE], 500);
	CHECK_U64(m.peak_idx, 1);
}

static void held_at_end(struct profile *p, uint64_t ns, int32_t pid, int64_t bytes)
{
	const struct tag tag = {
		.log2_ns = LOG2_NONE, .syscall = -1, .detail = profile_cstr(p, HEAP_FREED_BY_END)};
	const int64_t values[HEAP_BLOCK_NR] = {[HEAP_BLOCKS] = 1, [HEAP_BYTES] = bytes};
	task_id task = profile_task(p, pid, pid, 0, p->start_ns);
	profile_tagged_sample(p, tables_add(p, TABLE_FREED, 0), p->start_ns + ns, 0, task, -1,
			      profile_tag(p, &tag), values);
}

TEST(memtime_a_process_that_ends_frees_what_it_held_at_once)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	CLEANUP(arena_release) struct arena a = {0};
	struct memtime m;
	p->start_ns = START;
	for (uint64_t i = 0; i <= 4; i++)
		add_memory(p, 7, i * SECOND, 1 << 20, 1 << 20);
	add_blocks(p, TABLE_ALLOCATED, 0, "main;f", 1000);
	held_at_end(p, 2 * SECOND + SECOND / 2, 8, 600);
	profile_seal(p);
	CHECK(!memtime_make(&a, p, &m, NULL));
	CHECK_U64(m.rows[2].bytes[HEAP_MEMORY_LIVE], 1000);
	CHECK_U64(m.rows[3].bytes[HEAP_MEMORY_LIVE], 400);
	CHECK_U64(m.rows[4].bytes[HEAP_MEMORY_LIVE], 400);
}

TEST(memtime_without_the_kernels_numbers_goes_by_seconds)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	CLEANUP(arena_release) struct arena a = {0};
	struct memtime m;
	p->start_ns = START;
	p->end_ns = START + 3 * SECOND;
	add_blocks(p, TABLE_ALLOCATED, 0, "main;f", 1000);
	add_blocks(p, TABLE_FREED, SECOND, "main;f", 600);
	profile_fact(p, FACT_HEAP_ATTACHED, "attach");
	profile_seal(p);
	CHECK(!tables_has_rows(p, TABLE_MEMORY));
	CHECK(!memtime_make(&a, p, &m, NULL));
	CHECK_U64(m.nr_rows, 4);
	CHECK(!m.has_rss && !m.has_split && m.has_live && !m.is_live_whole);
	CHECK_U64(m.rows[1].bytes[HEAP_MEMORY_LIVE], 1000);
	CHECK_U64(m.rows[3].bytes[HEAP_MEMORY_LIVE], 400);
	CLEANUP(profile_free_p) struct profile *none = profile_new();
	CLEANUP(err_release) struct err err = {0};
	CHECK(memtime_make(&a, none, &m, &err) == -ENODATA && err.hint);
}

TEST(memtime_verdict_is_of_the_time_that_was_recorded)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	CLEANUP(arena_release) struct arena a = {0};
	struct memtime m;
	p->start_ns = START + 2 * SECOND;
	p->end_ns = START + 40 * SECOND;
	for (uint64_t i = 0; i <= 60; i++)
		add_memory(p, 7, i * SECOND, 1 << 20, 1 << 20);
	profile_seal(p);
	CHECK(!memtime_make(&a, p, &m, NULL));
	CHECK_U64(memtime_verdict(&a, p, &m).span_ns, 38 * SECOND);
	p->end_ns = 0; /* not known */
	CHECK_U64(memtime_verdict(&a, p, &m).span_ns, 58 * SECOND);
}

TEST(memtime_report_keeps_the_peak_and_shows_its_tree)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(err_release) struct err err = {0};
	p->start_ns = START;
	for (uint64_t i = 0; i < 100; i++)
		add_memory(p, 7, i * SECOND, i == 37 ? 9000 : 1000 + (int64_t)i, 500);
	add_blocks(p, TABLE_PEAK, 37 * SECOND, "main;f;malloc", 900);
	add_blocks(p, TABLE_PEAK, 37 * SECOND, "main;g;malloc", 100);
	profile_seal(p);
	const struct view_limits limits = {.max_rows = 10};
	CHECK(!memtime_report(r, p, &limits, 1, &err));
	const struct report_table *t = &r->tables.p[0];
	CHECK_STR(t->key, "memory_time");
	CHECK_U64(t->nr_rows, 11);
	CHECK_U64(t->nr_rows_total, 100);
	unsigned nr_peaks = 0;
	uint64_t before = 0;
	for (size_t i = 0; i < t->nr_rows; i++) {
		const union cell *c = &t->cells[i * t->nr_columns];
		CHECK(!i || c[0].u > before);
		before = c[0].u;
		nr_peaks += *c[9].text != 0;
		if (*c[9].text)
			CHECK(c[1].u == 9000 && c[0].u == 37 * SECOND);
	}
	CHECK_U64(nr_peaks, 1);
	CHECK_U64(r->trees.n, 1);
	CHECK_U64(r->trees.p[0].nodes[0].total, 1000);
	CHECK(r->notes.n && strstr(r->notes.p[0], "verdict "));
}

/* Process 8 ended: the last reading is of the others alone. */
static struct report *heap_page(const char *has_ended)
{
	CLEANUP(err_release) struct err err = {0};
	struct profile *p = profile_new();
	struct report *r = report_new();
	p->start_ns = START;
	p->end_ns = START + 2 * SECOND;
	profile_fact(p, FACT_HEAP_ATTACHED, "launch");
	if (has_ended)
		profile_fact(p, FACT_HEAP_ENDED, has_ended);
	add_blocks(p, TABLE_ALLOCATED, 0, "main;f;malloc libc.so.6", 8);
	add_memory(p, 7, SECOND, 100, 60);
	add_memory(p, 8, SECOND, 1000, 500);
	add_memory(p, 7, 2 * SECOND, 200, 160);
	add_memory(p, 9, 2 * SECOND, 50, 40);
	profile_seal(p);
	CHECK(!heapsum_report(r, p, &(struct select_spec){0}, NULL, &(struct view_limits){0},
			      &err));
	profile_free(p);
	return r;
}

static const union cell *row_named(const struct report *r, const char *what)
{
	vec_foreach(t, &r->tables)
		for (size_t i = 0; !strcmp(t->key, "memory") && i < t->nr_rows; i++)
			if (!strcmp(t->cells[i * t->nr_columns + 4].text, what))
				return &t->cells[i * t->nr_columns];
	return NULL;
}

TEST(heapsum_of_resident_memory_knows_whether_it_is_of_the_end)
{
	CLEANUP(report_free_p) struct report *lives = heap_page(NULL);
	CLEANUP(report_free_p) struct report *ended = heap_page("yes");
	const union cell *row = row_named(lives, "RSS at the end");
	CHECK(row && row[0].estimate.value == 250 && strstr(row[5].text, "sum of 2 processes"));
	CHECK(!row_named(ended, "RSS at the end"));
	row = row_named(ended, "RSS, last reading");
	CHECK(row && row[0].estimate.value == 250 && strstr(row[5].text, "after 2.00 s"));
}

/* Who asked for allocations sees who made them, on the page of everything. */
TEST(page_of_everything_has_the_allocation_sites)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	CLEANUP(report_free_p) struct report *r = report_new();
	p->start_ns = START;
	p->end_ns = START + 2 * SECOND;
	profile_fact(p, FACT_KIND, "all");
	uint32_t samples = made_table(p, "cpu-clock", 1);
	made_sample(p, samples, &(struct made){.stack = "main;work", .ns = START});
	add_memory(p, 7, SECOND, 4096, 4096);
	add_blocks(p, TABLE_ALLOCATED, 0, "main;f", 1000);
	add_blocks(p, TABLE_LIVE, 0, "main;f", 1000);
	profile_seal(p);
	struct select_spec spec = {0};
	CHECK(whole_exists(p));
	CHECK(!whole_page(r, p, &spec, NULL, &(struct view_limits){.max_rows = 10}, NULL));
	const struct report_table *sites = NULL;
	vec_foreach(t, &r->tables)
		if (!strcmp(t->key, "heap_functions"))
			sites = t;
	CHECK(sites && !sites->is_detail && sites->nr_rows == 1);
}

/* Of six readings, one step: the pairs of readings allow for any slope. */
TEST(growth_per_minute_needs_readings_that_bound_it)
{
	for (int is_steep = 0; is_steep < 2; is_steep++) {
		CLEANUP(profile_free_p) struct profile *p = profile_new();
		CLEANUP(report_free_p) struct report *r = report_new();
		CLEANUP(arena_release) struct arena a = {0};
		struct memtime m;
		p->start_ns = START;
		for (int64_t i = 0; i < 6; i++)
			add_memory(p, 7, (uint64_t)i * 2 * SECOND,
				   is_steep ? (i == 3 ? 100 << 20 : 1 << 20) : (1 + i) << 20,
				   1 << 19);
		profile_seal(p);
		CHECK(!memtime_make(&a, p, &m, NULL));
		memtime_growth_report(r, &m);
		const struct report_table *t = &r->tables.p[0];
		CHECK(!strcmp(t->cells[0].text, "RSS"));
		CHECK((t->cells[4].estimate.change == CELL_NO_CHANGE) == is_steep);
	}
}

/* A program that is busy in one path, and whose memory grows by 60 MiB a minute, mostly in drip. */
static struct profile *leaking(void)
{
	struct profile *p = profile_new();
	p->start_ns = START;
	p->end_ns = START + 40 * SECOND;
	profile_fact(p, FACT_KIND, "all");
	uint32_t samples = made_table(p, "cpu-clock", 2);
	for (uint64_t i = 0; i < 400; i++)
		made_sample(p, samples,
			    &(struct made){.stack = "main;run;work",
					   .ns = START + i * SECOND / 10,
					   .weight = (int64_t)SECOND / 10});
	for (int64_t i = 0; i < 40; i++)
		add_memory(p, 7, (uint64_t)i * SECOND, (100 + i) << 20, (90 + i) << 20);
	const struct tag tag = {.log2_ns = LOG2_NONE, .syscall = -1};
	static const char *const stacks[] = {"main;drip", "main;run"};
	for (size_t i = 0; i < ARRAY_LEN(stacks); i++) {
		const int64_t values[] = {i ? 1 : 9, i ? 4096 : 9 * 4096};
		profile_tagged_sample(p, tables_add(p, TABLE_GROWTH, 0), START,
				      made_stack(p, stacks[i]),
				      profile_task(p, 7, 7, profile_cstr(p, "a"), START), -1,
				      profile_tag(p, &tag), values);
	}
	profile_seal(p);
	return p;
}

/* Where CPU time goes describes the program; that it grows is what is wrong with it. */
TEST(growth_comes_before_the_hottest_path_and_names_who_touched_its_pages)
{
	static const char touched[] = ". Of its new pages 90 % were touched first in drip";
	CLEANUP(profile_free_p) struct profile *p = leaking();
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(rules_release) struct rules rules = {0};
	CLEANUP(report_free_p) struct report *page = report_new();
	CLEANUP(report_free_p) struct report *diagnosis = report_new();
	const struct select_spec spec = {0};
	CHECK(!whole_page(page, p, &spec, NULL, &(struct view_limits){.max_rows = 10}, NULL));
	rules_add_builtin(&rules, &a);
	diagnosis_report(diagnosis, p, &spec, &rules, NULL, 0);
	const struct report *both[] = {page, diagnosis};
	for (size_t i = 0; i < ARRAY_LEN(both); i++) {
		const struct report *r = both[i];
		CHECK(r->findings.n >= 2 && strstr(r->findings.p[0], "verdict leak") &&
		      strstr(r->findings.p[1], "hottest path"));
		CHECK(r->findings.n && strstr(r->findings.p[0], touched));
	}
}
