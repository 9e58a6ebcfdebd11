/* analyze/diff/diff.c, leaktable.c, heapsum.c: comparison of memory, growth, first page. */
#include "base/base.h"
#include "tap.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "analyze/diff/diffblocks.h"
#include "analyze/diff/diff.h"
#include "analyze/memory/heapsum.h"
#include "analyze/memory/heapweights.h"
#include "analyze/memory/leaktable.h"
#include "analyze/views.h"
#include "base/buf.h"
#include "base/clock.h"
#include "made.h"
#include "madeheap.h"
#include "model/heap.h"
#include "render/jsonout.h"

/* ---- comparisons --------------------------------------------------------------------------- */

struct pair {
	struct profile *p[2];
	struct selection sel[2];
	struct arena a;
	struct diff d;
};

static void pair_release(struct pair *x)
{
	profile_free(x->p[0]);
	profile_free(x->p[1]);
	arena_release(&x->a);
}

static void compare_sorted(struct pair *x, const struct select_spec *spec, int how, unsigned by,
			   enum diff_sort sort)
{
	CLEANUP(err_release) struct err err = {0};
	for (size_t i = 0; i < 2; i++) {
		profile_seal(x->p[i]);
		if (views_select(&x->a, x->p[i], spec, &x->sel[i], &err))
			tap_fail(__FILE__, __LINE__, "%s", err_msg(&err));
	}
	struct diff_spec ds = {.runs = {&x->sel[0], &x->sel[1]},
			       .nr_runs = {1, 1},
			       .how = how < 0 ? diff_how_of(&x->sel[0], &x->sel[1])
					      : (enum diff_how)how,
			       .by = by,
			       .sort = sort};
	if (blocks_select(&x->a, &ds, spec, &err))
		tap_fail(__FILE__, __LINE__, "%s", err_msg(&err));
	diff_make(&x->d, &x->a, &ds);
}

static void compare(struct pair *x, const struct select_spec *spec, int how, unsigned by)
{
	compare_sorted(x, spec, how, by, DIFF_SORT_SELF);
}

static const struct diff_item *find(const struct diff *d, const char *name)
{
	for (size_t i = 0; i < d->n; i++)
		if (!strcmp(d->items[i].name, name))
			return &d->items[i];
	tap_fail(__FILE__, __LINE__, "no row '%s'", name);
	return &d->all;
}

static const struct report_table *table_with(const struct report *r, const char *key)
{
	vec_foreach(t, &r->tables)
		if (!strcmp(t->key, key))
			return t;
	tap_fail(__FILE__, __LINE__, "no table '%s'", key);
	return r->tables.p;
}

static const char *table_text(const struct report_table *t, size_t row, const char *key)
{
	for (size_t c = 0; c < t->nr_columns; c++)
		if (!strcmp(t->columns[c].key, key))
			return t->cells[row * t->nr_columns + c].text;
	tap_fail(__FILE__, __LINE__, "no column '%s'", key);
	return "";
}

static struct profile *heap_with(unsigned seconds, unsigned flags, const struct madeheap *rows,
				 size_t n)
{
	struct profile *p = madeheap_new(seconds, flags);
	for (size_t i = 0; i < n; i++)
		madeheap(p, &rows[i]);
	return p;
}

TEST(diff_aligns_by_name_and_sorts_by_change)
{
	static const struct madeheap before[] = {
		{.table = TABLE_LIVE, .size = 64, .nr = 100, .stack = "main;a;malloc libc.so.6"},
		{.table = TABLE_LIVE, .size = 64, .nr = 100, .stack = "main;b;malloc libc.so.6"},
		{.table = TABLE_LIVE, .size = 64, .nr = 5, .stack = "main;old;malloc libc.so.6"},
	};
	static const struct madeheap after[] = {
		{.table = TABLE_LIVE, .size = 64, .nr = 90, .stack = "main;b;malloc libc.so.6"},
		{.table = TABLE_LIVE, .size = 64, .nr = 300, .stack = "main;a;malloc libc.so.6"},
		{.table = TABLE_LIVE, .size = 64, .nr = 50, .stack = "main;new;malloc libc.so.6"},
	};
	CLEANUP(pair_release)
	struct pair x = {.p = {heap_with(10, 0, before, ARRAY_LEN(before)),
			       heap_with(10, 0, after, ARRAY_LEN(after))}};
	struct select_spec spec = {.heap = {.weight = "live"}, .flags = SELECT_CUT_STACKS};
	compare(&x, &spec, -1, BY_FUNCTION);
	CHECK(x.d.spec.how == DIFF_AMOUNTS);
	CHECK_STR(x.d.items[0].name, "a");
	CHECK_STR(x.d.items[1].name, "new");
	CHECK(find(&x.d, "a")->self.change == 200 * 64);
	CHECK(find(&x.d, "b")->self.change == -10 * 64);
	CHECK(find(&x.d, "old")->self.change == -5 * 64);
	CHECK(find(&x.d, "main")->self.change == 0);
	CHECK(find(&x.d, "main")->total.change == (200 - 10 + 50 - 5) * 64);
	CHECK(x.d.all.self.change == (200 - 10 + 50 - 5) * 64);
	CHECK(diff_is_significant(&find(&x.d, "old")->self));
	double sum = 0;
	for (size_t i = 0; i < x.d.n; i++)
		sum += x.d.items[i].self.change;
	CHECK(sum == x.d.all.self.change);
}

TEST(diff_of_samples_knows_what_is_chance)
{
	int64_t r = 524288;
	struct madeheap before[] = {
		{.table = TABLE_LIVE,
		 .bytes = 4 * r,
		 .nr = 4,
		 .samples = 4,
		 .variance = 4 * r * r,
		 .stack = "main;few"},
		{.table = TABLE_LIVE,
		 .bytes = 400 * r,
		 .nr = 400,
		 .samples = 400,
		 .variance = 400 * r * r,
		 .stack = "main;many"},
		{.table = TABLE_LIVE,
		 .bytes = 2 * r,
		 .nr = 2,
		 .samples = 2,
		 .variance = 2 * r * r,
		 .stack = "main;rare"},
	};
	struct madeheap after[] = {
		{.table = TABLE_LIVE,
		 .bytes = 8 * r,
		 .nr = 8,
		 .samples = 8,
		 .variance = 8 * r * r,
		 .stack = "main;few"},
		{.table = TABLE_LIVE,
		 .bytes = 800 * r,
		 .nr = 800,
		 .samples = 800,
		 .variance = 800 * r * r,
		 .stack = "main;many"},
	};
	CLEANUP(pair_release)
	struct pair x = {.p = {heap_with(10, MADEHEAP_SAMPLED, before, ARRAY_LEN(before)),
			       heap_with(10, MADEHEAP_SAMPLED, after, ARRAY_LEN(after))}};
	compare(&x, &(struct select_spec){.heap = {.weight = "live"}}, -1, BY_FUNCTION);
	const struct diff_item *few = find(&x.d, "few");
	const struct diff_item *many = find(&x.d, "many");
	const struct diff_item *rare = find(&x.d, "rare");
	CHECK(!diff_is_significant(&few->self));
	CHECK(diff_is_significant(&many->self));
	/* both doubled; two samples that became none prove nothing */
	CHECK(!diff_is_significant(&rare->self));
	/* four rows: 2.50 sqrt(1200) intervals, and a little for skew */
	CHECK(many->self.change_error > 86 * (double)r && many->self.change_error < 93 * (double)r);
}

TEST(diff_of_flows_is_per_time_unless_both_ran_to_their_end)
{
	static const struct madeheap row = {
		.table = TABLE_ALLOCATED, .size = 64, .nr = 100, .stack = "main;a"};
	static const struct madeheap twice = {
		.table = TABLE_ALLOCATED, .size = 64, .nr = 200, .stack = "main;a"};
	struct select_spec spec = {.heap = {.weight = "allocated"}};
	CLEANUP(pair_release)
	struct pair x = {.p = {heap_with(10, MADEHEAP_ATTACHED, &row, 1),
			       heap_with(20, MADEHEAP_ATTACHED, &twice, 1)}};
	compare(&x, &spec, -1, BY_FUNCTION);
	CHECK(x.d.spec.how == DIFF_PER_TIME);
	CHECK(x.d.all.self.change == 0);
	CLEANUP(pair_release)
	struct pair runs = {.p = {heap_with(10, 0, &row, 1), heap_with(20, 0, &twice, 1)}};
	compare(&runs, &spec, -1, BY_FUNCTION);
	CHECK(runs.d.spec.how == DIFF_AMOUNTS);
	CHECK(runs.d.all.self.change == 6400);
}

TEST(diff_has_growth_per_minute_of_what_lives)
{
	static const struct madeheap row = {
		.table = TABLE_LIVE, .size = 1024, .nr = 1024, .stack = "main;a"};
	static const struct madeheap more = {
		.table = TABLE_LIVE, .size = 1024, .nr = 3072, .stack = "main;a"};
	CLEANUP(pair_release)
	struct pair x = {.p = {heap_with(10, MADEHEAP_ATTACHED, &row, 1),
			       heap_with(10, MADEHEAP_ATTACHED, &more, 1)}};
	x.p[1]->wall_start_ns += 120 * (int64_t)NS_PER_SEC;
	compare(&x, &(struct select_spec){.heap = {.weight = "live"}}, -1, DIFF_BY_STACK);
	CHECK(fabs(x.d.minutes - 2) < 1e-9);
	CHECK_STR(x.d.items[0].name, "a < main");
	CLEANUP(report_free_p) struct report *r = report_new();
	diff_report(r, &x.d, 1, &(struct view_limits){.max_rows = 5});
	const struct report_table *t = table_with(r, "stacks");
	for (size_t c = 0; c < t->nr_columns; c++)
		if (!strcmp(t->columns[c].key, "per_min"))
			CHECK(t->cells[c].estimate.change == 1024 * 1024);
}

static struct profile *cpu_with(int64_t a, int64_t b)
{
	struct profile *p = profile_new();
	uint32_t t = made_table(p, "cycles", 1);
	made_sample(p, t, &(struct made){.stack = "main;a", .nr = a, .ns = 1});
	made_sample(p, t, &(struct made){.stack = "main;b", .nr = b, .ns = 2});
	return p;
}

TEST(diff_of_cpu_samples_is_by_share)
{
	CLEANUP(pair_release) struct pair x = {.p = {cpu_with(5000, 5000), cpu_with(1500, 500)}};
	compare(&x, &(struct select_spec){0}, -1, BY_FUNCTION);
	CHECK(x.d.spec.how == DIFF_SHARES);
	const struct diff_item *a = find(&x.d, "a");
	CHECK(fabs(a->self.change - 25) < 1e-9 && diff_is_significant(&a->self));
	CLEANUP(pair_release) struct pair few = {.p = {cpu_with(5, 5), cpu_with(6, 5)}};
	compare(&few, &(struct select_spec){0}, -1, BY_FUNCTION);
	a = find(&few.d, "a");
	CHECK(!diff_is_significant(&a->self));
}

static uint64_t made_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return *seed >> 20;
}

/* Samples over @nr functions, the weight of each half of that of the one before, down to 1 / 256. */
static struct profile *drawn_profile(uint64_t *seed, unsigned nr, unsigned samples)
{
	static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
	struct profile *p = profile_new();
	uint32_t t = made_table(p, "cycles", 1);
	int64_t counts[ARRAY_LEN(names)] = {0};
	for (unsigned i = 0; i < samples; i++) {
		unsigned at = (unsigned)__builtin_clzll(made_random(seed) | 1) - 20;
		counts[at % nr]++;
	}
	for (unsigned i = 0; i < nr; i++) {
		CLEANUP(buf_release) struct buf stack = {0};
		buf_addf(&stack, "main;%s", names[i]);
		if (counts[i])
			made_sample(p, t,
				    &(struct made){.stack = buf_str(&stack),
						   .nr = counts[i],
						   .ns = 1 + i});
	}
	return p;
}

TEST(diff_of_the_same_behaviour_marks_one_run_of_twenty_at_most)
{
	enum { RUNS = 1000, ROWS = 10 };
	uint64_t seed = 1;
	unsigned nr_marked_runs = 0;
	unsigned nr_marked_rows = 0;
	for (unsigned run = 0; run < RUNS; run++) {
		CLEANUP(pair_release)
		struct pair x = {.p = {drawn_profile(&seed, ROWS, 500 + run),
				       drawn_profile(&seed, ROWS, 2000)}};
		compare(&x, &(struct select_spec){0}, -1, BY_FUNCTION);
		unsigned nr = 0;
		for (size_t i = 0; i < x.d.n; i++)
			nr += diff_is_significant(&x.d.items[i].self);
		nr_marked_runs += nr != 0;
		nr_marked_rows += nr;
	}
	CHECK(nr_marked_runs <= RUNS * 5 / 100);
	CHECK(nr_marked_rows > 0 && nr_marked_rows < RUNS * ROWS / 100); /* not too wide either */
}

TEST(diff_finds_a_change_of_one_row_of_many)
{
	uint64_t seed = 7;
	CLEANUP(pair_release)
	struct pair x = {.p = {drawn_profile(&seed, 10, 4000), drawn_profile(&seed, 10, 3600)}};
	made_sample(x.p[1], 0, &(struct made){.stack = "main;slower", .nr = 40, .ns = 99});
	compare(&x, &(struct select_spec){0}, -1, BY_FUNCTION);
	const struct diff_item *it = find(&x.d, "slower");
	CHECK(it->self.change > 1 && it->self.change_error < it->self.change &&
	      diff_is_significant(&it->self));
}

TEST(diff_leaves_out_and_counts_rows_without_a_change)
{
	static const struct madeheap before = {
		.table = TABLE_LIVE, .size = 64, .nr = 1, .stack = "main;serve;grow"};
	static const struct madeheap after = {
		.table = TABLE_LIVE, .size = 64, .nr = 9, .stack = "main;serve;grow"};
	CLEANUP(pair_release)
	struct pair x = {.p = {heap_with(10, 0, &before, 1), heap_with(10, 0, &after, 1)}};
	compare(&x, &(struct select_spec){.heap = {.weight = "live"}}, -1, BY_FUNCTION);
	CLEANUP(report_free_p) struct report *r = report_new();
	diff_report(r, &x.d, 1, &(struct view_limits){.max_rows = 5});
	const struct report_table *t = table_with(r, "functions");
	/* the total of its callers is larger, too: they have no change of their own */
	CHECK_U64(t->nr_rows, 1);
	CHECK_STR(table_text(t, 0, "function"), "grow");
	CHECK_STR(table_text(t, 0, "note"), "more");
	CHECK_STR(t->note, "left out: 2 rows without a change of self");
	CLEANUP(report_free_p) struct report *same = report_new();
	CLEANUP(pair_release)
	struct pair y = {.p = {heap_with(10, 0, &before, 1), heap_with(10, 0, &before, 1)}};
	compare(&y, &(struct select_spec){.heap = {.weight = "live"}}, -1, BY_FUNCTION);
	diff_report(same, &y.d, 1, &(struct view_limits){.max_rows = 5});
	t = table_with(same, "functions");
	CHECK_U64(t->nr_rows, 0);
	CHECK_STR(t->note, "left out: 3 rows without a change of self");
}

/* @more samples below "serve", each part of them in another function; @alone in "alone". */
static struct profile *calls_profile(int64_t more, int64_t alone)
{
	struct profile *p = profile_new();
	uint32_t t = made_table(p, "cycles", 1);
	for (int i = 0; i < 20; i++) {
		CLEANUP(buf_release) struct buf stack = {0};
		buf_addf(&stack, "main;serve;f%d", i);
		made_sample(p, t,
			    &(struct made){.stack = buf_str(&stack),
					   .comm = more ? "worker-2" : "worker-1",
					   .nr = 20 + more,
					   .ns = 1});
	}
	made_sample(p, t,
		    &(struct made){.stack = "main;alone", .comm = "main", .nr = alone, .ns = 2});
	return p;
}

TEST(diff_finds_a_caller_whose_callees_change_little)
{
	CLEANUP(pair_release) struct pair x = {.p = {calls_profile(0, 600), calls_profile(7, 460)}};
	compare(&x, &(struct select_spec){0}, DIFF_AMOUNTS, BY_FUNCTION);
	CHECK(!diff_is_significant(&find(&x.d, "f3")->self));
	const struct diff_item *serve = find(&x.d, "serve");
	CHECK(diff_is_of_total(&x.d, serve) && serve->total.change == 140);
	CHECK(serve->self.change == 0);
	CLEANUP(report_free_p) struct report *r = report_new();
	diff_report(r, &x.d, 1, &(struct view_limits){0});
	CHECK(strstr(r->findings.p[0], "with callees (total): serve +140 samples"));
	const struct report_table *t = table_with(r, "functions");
	bool has_serve = false;
	for (size_t i = 0; i < t->nr_rows; i++)
		has_serve |= !strcmp(table_text(t, i, "function"), "serve") &&
			     !strcmp(table_text(t, i, "note"), "more (total)");
	CHECK(has_serve);
	/* a caller of what is marked itself is no further finding */
	CLEANUP(pair_release)
	struct pair y = {.p = {calls_profile(0, 600), calls_profile(0, 1200)}};
	compare(&y, &(struct select_spec){0}, DIFF_AMOUNTS, BY_FUNCTION);
	CHECK(diff_is_significant(&find(&y.d, "main")->total));
	CHECK(!diff_is_of_total(&y.d, find(&y.d, "main")));
}

TEST(diff_sorts_by_total_and_compares_threads)
{
	CLEANUP(pair_release) struct pair x = {.p = {calls_profile(0, 600), calls_profile(7, 610)}};
	compare_sorted(&x, &(struct select_spec){0}, DIFF_AMOUNTS, BY_FUNCTION, DIFF_SORT_TOTAL);
	CHECK_STR(x.d.items[0].name, "main");
	CHECK_STR(x.d.items[1].name, "serve");
	CLEANUP(pair_release) struct pair y = {.p = {calls_profile(0, 600), calls_profile(7, 610)}};
	compare(&y, &(struct select_spec){0}, DIFF_AMOUNTS, DIFF_BY_THREAD);
	CHECK_U64(y.d.n, 2);
	CHECK_STR(y.d.items[0].name, "worker-#");
	CHECK(y.d.items[0].self.change == 140 && diff_is_significant(&y.d.items[0].self));
}

/* Every event of @seconds: about 100 of "a" a second, which vary, 100 of "b", and @more of "c". */
static struct profile *counted_profile(uint64_t *seed, unsigned seconds, unsigned more)
{
	struct profile *p = profile_new();
	uint32_t t = made_table(p, "faults", 2);
	p->start_ns = NS_PER_SEC;
	p->end_ns = p->start_ns + seconds * (uint64_t)NS_PER_SEC;
	for (unsigned s = 0; s < seconds; s++) {
		const int64_t counts[] = {60 + (int64_t)(made_random(seed) % 80),
					  90 + (int64_t)(made_random(seed) % 20),
					  more + (int64_t)(made_random(seed) % 10)};
		static const char *const stacks[] = {"main;a", "main;b", "main;c"};
		for (size_t i = 0; i < ARRAY_LEN(counts); i++)
			for (int64_t nr = 0; nr < counts[i]; nr++)
				made_sample(p, t,
					    &(struct made){.stack = stacks[i],
							   .ns = p->start_ns + s * NS_PER_SEC + 1,
							   .weight = 1});
	}
	return p;
}

TEST(diff_of_counted_events_has_the_noise_within_the_captures)
{
	enum { RUNS = 100 };
	uint64_t seed = 3;
	unsigned nr_marked_runs = 0;
	for (unsigned run = 0; run < RUNS; run++) {
		CLEANUP(pair_release)
		struct pair x = {.p = {counted_profile(&seed, 6, 0), counted_profile(&seed, 8, 0)}};
		compare(&x, &(struct select_spec){0}, run % 2 ? DIFF_SHARES : DIFF_PER_TIME,
			BY_FUNCTION);
		CHECK(x.d.has_blocks);
		unsigned nr = 0;
		for (size_t i = 0; i < x.d.n; i++)
			nr += diff_is_significant(&x.d.items[i].self);
		nr_marked_runs += nr != 0;
	}
	CHECK(nr_marked_runs <= RUNS * 5 / 100);
	CLEANUP(pair_release)
	struct pair more = {.p = {counted_profile(&seed, 6, 0), counted_profile(&seed, 6, 50)}};
	compare(&more, &(struct select_spec){0}, DIFF_AMOUNTS, BY_FUNCTION);
	CHECK(diff_is_significant(&find(&more.d, "c")->self));
	CHECK(!diff_is_significant(&find(&more.d, "a")->self));
}

TEST(diff_of_short_counted_captures_marks_nothing)
{
	uint64_t seed = 3;
	CLEANUP(pair_release)
	struct pair x = {.p = {counted_profile(&seed, 6, 0), counted_profile(&seed, 3, 900)}};
	compare(&x, &(struct select_spec){0}, DIFF_SHARES, BY_FUNCTION);
	CHECK(x.d.is_unknown);
	CHECK(!diff_is_significant(&find(&x.d, "c")->self));
	CLEANUP(report_free_p) struct report *r = report_new();
	diff_report(r, &x.d, 1, &(struct view_limits){.max_rows = 5});
	CHECK(strstr(r->findings.p[0], "cannot tell a change from noise"));
}

/* ---- growth -------------------------------------------------------------------------------- */

TEST(growth_is_of_the_second_half_and_has_an_interval)
{
	double even[10];
	double noisy[10];
	double filled[10] = {100, 80, 30, 10, 0, 0, 0, 0, 0, 0};
	for (size_t i = 0; i < 10; i++) {
		even[i] = 100;
		noisy[i] = i % 2 ? 500 : -480;
	}
	struct leak_growth g = leak_growth_of(even, 10);
	CHECK(g.is_known && g.per_min == 6000 && g.per_min_error == 0);
	CHECK_STR(leak_verdict(&g, 1000, 10 * NS_PER_SEC), "grows");
	g = leak_growth_of(filled, 10);
	CHECK(g.is_known && g.per_min == 0);
	CHECK_STR(leak_verdict(&g, 220, 10 * NS_PER_SEC), "steady");
	double filling[12] = {9, 9, 9, 9, 9, 9, 600, 590, 610, 600, 100, 0};
	g = leak_growth_of(filling, 12);
	CHECK_STR(leak_verdict(&g, 2500, 12 * NS_PER_SEC), "slows down");
	g = leak_growth_of(noisy, 10);
	CHECK(g.per_min_error > fabs(g.per_min));
	CHECK_STR(leak_verdict(&g, 100, 10 * NS_PER_SEC), "unclear");
	CHECK(!leak_growth_of(even, 4).is_known);
	g = leak_growth_of(even, 4);
	CHECK_STR(leak_verdict(&g, 100, 10 * NS_PER_SEC), "too short to tell");
}

/* ---- the first page ------------------------------------------------------------------------ */

static const union cell *cell_at(const struct report_table *t, size_t row, const char *key)
{
	for (size_t c = 0; c < t->nr_columns; c++)
		if (!strcmp(t->columns[c].key, key))
			return &t->cells[row * t->nr_columns + c];
	tap_fail(__FILE__, __LINE__, "no column '%s' in %s", key, t->key);
	return t->cells;
}

static size_t row_named(const struct report_table *t, const char *column, const char *name)
{
	for (size_t i = 0; i < t->nr_rows; i++)
		if (!strcmp(cell_at(t, i, column)->text, name))
			return i;
	tap_fail(__FILE__, __LINE__, "no row '%s' in %s", name, t->key);
	return 0;
}

TEST(heapsum_has_what_was_recorded)
{
	CLEANUP(profile_free_p) struct profile *p = madeheap_server(MADEHEAP_ATTACHED);
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(err_release) struct err err = {0};
	struct view_limits limits = {.max_rows = 20};
	CHECK(!views_page(r, p, &(struct select_spec){0}, "x.assay", &limits, &err));
	const struct report_table *t = table_with(r, "memory");
	CHECK_U64(cell_at(t, row_named(t, "what", "live"), "bytes")->estimate.value, 12 << 20);
	CHECK_U64(cell_at(t, row_named(t, "what", "leaked"), "bytes")->estimate.value, 7 << 20);
	CHECK_U64(cell_at(t, row_named(t, "what", "freed, preexisting"), "count")->estimate.value,
		  77);
	t = table_with(r, "heap_functions");
	size_t row = row_named(t, "function", "Cache::insert");
	CHECK_U64(row, 0);
	CHECK_U64(cell_at(t, row, "allocated")->estimate.value, 10 << 20);
	CHECK_U64(cell_at(t, row, "mean_bytes")->u, 4096);
	CHECK_STR(cell_at(t, row, "through")->text, "std::vector::push_back");
	row = row_named(t, "function", "read_request");
	CHECK(cell_at(t, row, "temporary_pct")->d == 95);
	t = table_with(r, "leaks");
	row = row_named(t, "function", "Cache::insert");
	CHECK(cell_at(t, row, "growth_per_min")->estimate.change == 60 << 20);
	CHECK_STR(cell_at(t, row, "verdict")->text, "grows");
	CHECK_STR(cell_at(t, row_named(t, "function", "load_table"), "verdict")->text, "steady");
	t = table_with(r, "heap_sizes");
	CHECK_U64(t->nr_rows, 3);
	CHECK_U64(cell_at(t, 0, "min_bytes")->u, 512);
	t = table_with(r, "heap_threads");
	CHECK_STR(cell_at(t, 1, "thread")->text, "worker-1");
	CHECK(r->hints.n == 3);
}

TEST(heapsum_of_samples_has_intervals_in_json)
{
	CLEANUP(profile_free_p) struct profile *p = madeheap_server(MADEHEAP_SAMPLED);
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(buf_release) struct buf b = {0};
	struct view_limits limits = {.max_rows = 20};
	CHECK(!heapsum_report(r, p, &(struct select_spec){0}, NULL, &limits, &err));
	jsonout_render(&b, r);
	CHECK(strstr(buf_str(&b), "\"live_error\":") != NULL);
	const struct report_table *t = table_with(r, "memory");
	const union cell *live = cell_at(t, row_named(t, "what", "live"), "bytes");
	CHECK(live->estimate.error > live->estimate.value / 3);
	CHECK(live->estimate.error < live->estimate.value);
}

TEST(heapsum_of_a_dump_shows_what_lives)
{
	struct madeheap row = {.table = TABLE_LIVE, .nr = 3, .bytes = 300, .stack = "main;a"};
	CLEANUP(profile_free_p) struct profile *p = madeheap_new(0, MADEHEAP_ATTACHED);
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(err_release) struct err err = {0};
	madeheap(p, &row);
	p->tables.p[3].time_ns[0] = 0;
	profile_seal(p);
	struct view_limits limits = {0};
	CHECK(!heapsum_report(r, p, &(struct select_spec){0}, NULL, &limits, &err));
	const struct report_table *t = table_with(r, "memory");
	CHECK_U64(t->nr_rows, 1);
	CHECK_U64(cell_at(t, 0, "bytes")->estimate.value, 300);
	CHECK_U64(cell_at(table_with(r, "heap_functions"), 0, "blocks")->estimate.value, 3);
}
