/* analyze/runs: the spread of shares over several runs. */
#include "base/base.h"
#include "tap.h"

#include <math.h>

#include "analyze/stacks/runs.h"
#include "made.h"

/* @nr_a samples in a and @nr_b in b, each of weight 1. */
static struct profile *make_run(int64_t nr_a, int64_t nr_b)
{
	struct profile *p = profile_new();
	uint32_t t = made_table(p, "cycles", 1);
	if (nr_a)
		made_sample(p, t, &(struct made){.stack = "main;a", .ns = 1000, .nr = nr_a});
	if (nr_b)
		made_sample(p, t, &(struct made){.stack = "main;b", .ns = 2000, .nr = nr_b});
	p->losses.nr[LOSS_SEEN] = p->losses.nr[LOSS_WRITTEN] = (uint64_t)(nr_a + nr_b);
	profile_seal(p);
	return p;
}

struct three {
	struct profile *p[3];
	struct report *r;
};

static void three_release(struct three *t)
{
	for (size_t i = 0; i < 3; i++)
		profile_free(t->p[i]);
	report_free(t->r);
}

/* Shares of a: 50, 60, 70 %; of b the rest; the third run is ten times as long. */
static struct three three_runs(const struct view_limits *limits)
{
	struct three t = {{make_run(50, 50), make_run(60, 40), make_run(700, 300)}, report_new()};
	struct run_input runs[3];
	for (size_t i = 0; i < 3; i++) {
		runs[i].name = "run";
		CHECK(!select_run(&t.r->arena, t.p[i], &(struct select_spec){0}, &runs[i].sel,
				  NULL));
	}
	runs_report(t.r, runs, 3, limits);
	return t;
}

static double number(const struct report *r, const char *key, size_t row, const char *column)
{
	vec_foreach(t, &r->tables) {
		for (size_t c = 0; !strcmp(t->key, key) && c < t->nr_columns; c++)
			if (!strcmp(t->columns[c].key, column) && row < t->nr_rows) {
				const union cell *cell = &t->cells[row * t->nr_columns + c];
				return t->columns[c].kind == CELL_PERCENT ? cell->d
									  : (double)cell->u;
			}
	}
	return -1;
}

static bool is_near(double a, double b)
{
	return fabs(a - b) < 1e-9;
}

TEST(runs_weigh_the_same_however_long_they_are)
{
	CLEANUP(three_release) struct three t = three_runs(&(struct view_limits){0});
	CHECK(is_near(number(t.r, "run_functions", 0, "mean_pct"), 60));
	CHECK(is_near(number(t.r, "run_functions", 0, "min_pct"), 50));
	CHECK(is_near(number(t.r, "run_functions", 0, "max_pct"), 70));
	CHECK(is_near(number(t.r, "run_functions", 0, "stddev_pct"), 10)); /* n - 1 */
	CHECK(is_near(number(t.r, "run_functions", 1, "mean_pct"), 40));
	CHECK_U64((uint64_t)number(t.r, "run_functions", 0, "samples"), 810);
	CHECK_U64(t.r->losses.nr[LOSS_WRITTEN], 1200);
	CHECK_U64(t.r->nr_samples, 1200);
}

TEST(runs_know_the_spread_of_sampling)
{
	CLEANUP(three_release) struct three t = three_runs(&(struct view_limits){0});
	/* the mean of p (1 - p) / n with p = 0.6 and n = 100, 100, 1000 */
	double want = 100 * sqrt(0.6 * 0.4 * (0.01 + 0.01 + 0.001) / 3);
	CHECK(is_near(number(t.r, "run_functions", 0, "chance_pct"), want));
}

TEST(runs_add_what_limits_cut_run_by_run)
{
	CLEANUP(three_release) struct three t = three_runs(&(struct view_limits){.max_rows = 1});
	CHECK(is_near(number(t.r, "run_functions", 1, "mean_pct"), 40));
	CHECK(is_near(number(t.r, "run_functions", 1, "stddev_pct"), 10));
	CHECK_U64(t.r->tables.p[1].nr_rows, 2);
	CHECK_U64(t.r->tables.p[1].nr_rows_total, 2);
}

TEST(runs_count_an_absent_function_as_none)
{
	struct three t = {{make_run(10, 0), make_run(0, 10), make_run(0, 0)}, report_new()};
	struct run_input runs[3];
	for (size_t i = 0; i < 3; i++) {
		runs[i].name = "run";
		CHECK(!select_run(&t.r->arena, t.p[i], &(struct select_spec){0}, &runs[i].sel,
				  NULL));
	}
	runs_report(t.r, runs, 3, &(struct view_limits){0});
	CHECK(is_near(number(t.r, "run_functions", 0, "mean_pct"), 100.0 / 3));
	CHECK(is_near(number(t.r, "run_functions", 0, "min_pct"), 0));
	CHECK_U64((uint64_t)number(t.r, "run_functions", 0, "runs"), 1);
	CHECK(t.r->notes.n >= 1); /* of the run without samples */
	three_release(&t);
}
