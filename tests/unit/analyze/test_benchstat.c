/*
 * analyze/bench: statistics of repeated runs, against Python's, their intervals by
 * simulation, and phases.
 */
#include "base/base.h"
#include "tap.h"

#include <math.h>

#include "analyze/bench/benchcompare.h"
#include "analyze/bench/benchphases.h"
#include "analyze/bench/benchstat.h"
#include "analyze/bench/countermetrics.h"
#include "base/mem.h"
#include "random.h"

/* Expected values: Python 3.11, statistics.fmean, stdev, median, quantiles(n=100, inclusive). */
static const double sample[] = {
	5.6161,  6.3312, 5.6288,  3.7433,  6.0626,  10.6246, 19.1464, 3.0175,  8.894,   4.8984,
	2.2868,  5.6316, 5.913,   13.8321, 5.3502,  5.0847,  14.7788, 16.7962, 12.9073, 9.3215,
	4.6454,  5.5175, 9.7124,  5.0516,  17.7084, 5.4108,  10.2019, 8.9466,  10.2037, 4.5816,
	6.5564,  6.4519, 7.0849,  7.4132,  4.4788,  4.8258,  14.6225, 5.221,   19.8604, 11.8101,
	6.8397,  5.5556, 7.3725,  6.8915,  7.4256,  2.276,   13.8645, 5.168,   23.5385, 3.6967,
	2.2935,  6.265,  4.3825,  13.5884, 4.601,   8.45,    8.593,   4.1568,  11.7464, 7.666,
	13.8379, 3.7049, 4.2948,  3.2047,  9.983,   13.4499, 4.3005,  5.1576,  2.4068,  26.2517,
	5.2402,  6.6484, 6.3661,  11.0196, 4.8433,  8.7046,  12.6102, 4.7271,  3.3706,  14.1361,
	12.075,  9.2049, 16.8588, 17.3464, 25.4991, 4.4965,  8.3966,  3.9067,  4.1667,  6.6684,
	8.77,    5.9976, 12.7803, 4.1873,  14.422,  17.2356, 11.4888, 18.3559, 3.5272,  15.5603,
	21.7344};

static bool is_near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * MAX(1.0, fabs(b));
}

TEST(bench_summary_equals_pythons_statistics)
{
	static const struct {
		size_t n;
		double mean, stddev, median, mad, q1, p90, p95, p99;
	} want[] = {
		{2, 5.97365, 0.5056520592264999, 5.97365, 0.35755, 5.794875, 6.25969, 6.295445,
		 6.324049},
		{5, 5.4764, 1.0149742533680348, 5.6288, 0.4338, 5.6161, 6.22376, 6.27748, 6.320456},
		{10, 7.39629, 4.6986291266590605, 5.8457, 1.52485, 5.077825, 11.47678, 15.31159,
		 18.379438},
		{11, 6.93179090909091, 4.716222806750026, 5.6288, 1.8855, 4.32085, 10.6246, 14.8855,
		 18.29422},
		{101, 8.88591782178218, 5.420504029265102, 6.8397, 2.5449, 4.8433, 16.8588, 19.1464,
		 25.4991},
	};
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		struct bench_summary s;
		double sorted[ARRAY_LEN(sample)];
		bench_summarize(&s, sample, want[i].n);
		CHECK(is_near(s.mean, want[i].mean) && is_near(s.stddev, want[i].stddev));
		CHECK(is_near(s.median, want[i].median) && is_near(s.mad, want[i].mad));
		CHECK(is_near(s.q1, want[i].q1));
		memcpy(sorted, sample, sizeof(sorted));
		bench_sort(sorted, want[i].n);
		CHECK(is_near(bench_quantile_sorted(sorted, want[i].n, 0.9), want[i].p90));
		CHECK(is_near(bench_quantile_sorted(sorted, want[i].n, 0.95), want[i].p95));
		CHECK(is_near(bench_quantile_sorted(sorted, want[i].n, 0.99), want[i].p99));
	}
}

TEST(bench_percentiles_are_given_only_where_five_values_lie_beyond)
{
	struct bench_summary s;
	double v[500];
	for (size_t i = 0; i < ARRAY_LEN(v); i++)
		v[i] = (double)i;
	bench_summarize(&s, v, 49);
	CHECK(isnan(s.percentile[BENCH_P90]));
	bench_summarize(&s, v, 50);
	CHECK(!isnan(s.percentile[BENCH_P90]) && isnan(s.percentile[BENCH_P95]));
	bench_summarize(&s, v, 100);
	CHECK(is_near(s.percentile[BENCH_P95], 94.05) && isnan(s.percentile[BENCH_P99]));
	bench_summarize(&s, v, 499);
	CHECK(isnan(s.percentile[BENCH_P99]));
	bench_summarize(&s, v, 500);
	CHECK(is_near(s.percentile[BENCH_P99], 494.01));
}

TEST(bench_one_value_has_neither_spread_nor_interval)
{
	struct bench_summary s;
	bench_summarize(&s, sample, 1);
	CHECK(s.median == sample[0] && s.mad == 0 && isnan(s.stddev) && isnan(s.interval.low));
	bench_summarize(&s, sample, BENCH_INTERVAL_MIN - 1);
	CHECK(isnan(s.interval.low) && isnan(s.interval.high));
	bench_summarize(&s, sample, BENCH_INTERVAL_MIN);
	CHECK(s.interval.low < s.median && s.median < s.interval.high);
}

/* Values whose median is 0: normal, log-normal, exponential, normal with wild outliers. */
static double draw(struct random *r, int shape)
{
	double z = random_normal(r);
	switch (shape) {
	case 0:
		return z;
	case 1:
		return exp(z / 2) - 1;
	case 2:
		return -log(random_unit(r)) - log(2);
	default:
		return random_unit(r) < 0.9 ? z : 10 * z;
	}
}

TEST(bench_interval_of_the_median_covers_95_percent_of_simulations)
{
	static const size_t sizes[] = {8, 10, 20, 41};
	struct random r = {16};
	for (int shape = 0; shape < 4; shape++)
		for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
			unsigned hits = 0;
			for (int i = 0; i < 10000; i++) {
				double v[41];
				for (size_t j = 0; j < sizes[k]; j++)
					v[j] = draw(&r, shape);
				bench_sort(v, sizes[k]);
				struct stat_interval in = bench_median_interval(v, sizes[k], 0.05);
				hits += in.low <= 0 && in.high >= 0;
			}
			if (hits < 9400 || hits > 9600)
				tap_fail(__FILE__, __LINE__, "shape %d, n %zu: %.2f %%", shape,
					 sizes[k], hits / 100.0);
		}
}

TEST(bench_interval_of_the_ratio_covers_95_percent_of_simulations)
{
	struct random r = {17};
	for (int shape = 0; shape < 4; shape++)
		for (size_t n = 8; n <= 20; n += 6) {
			unsigned hits = 0;
			for (int i = 0; i < 10000; i++) {
				struct bench_block b[20];
				for (size_t j = 0; j < n; j++)
					for (size_t k = 0; k < 2; k++) {
						b[j].base[k] = exp(draw(&r, shape) / 20);
						b[j].other[k] = 1.1 * exp(draw(&r, shape) / 20);
					}
				struct bench_ratio c;
				bench_compare(&c, b, n, 0.05, BENCH_FLOOR);
				double truth = log(1.1);
				hits += c.interval.low <= truth && c.interval.high >= truth;
			}
			if (hits < 9400 || hits > 9600)
				tap_fail(__FILE__, __LINE__, "shape %d, %zu blocks: %.2f %%", shape,
					 n, hits / 100.0);
		}
}

TEST(bench_looks_share_five_percent)
{
	for (size_t n = 1; n < 200; n++) {
		struct bench_plan p;
		bench_plan_init(&p, n, 1);
		double sum = 0;
		CHECK(p.nr_looks >= 1 && p.nr_looks <= BENCH_LOOKS_MAX);
		for (size_t i = 0; i < p.nr_looks; i++) {
			CHECK(p.alpha[i] > 0 && (!i || p.blocks[i] > p.blocks[i - 1]));
			CHECK(p.blocks[i] >= MIN(n, (size_t)BENCH_LOOK_MIN));
			sum += p.alpha[i];
		}
		CHECK(p.blocks[p.nr_looks - 1] == n && is_near(sum, 0.05));
		bench_plan_init(&p, n, 3);
		CHECK(p.alpha[0] <= 0.05 / 3 + 1e-12);
	}
}

/* Blocks whose runs take @base_ns and @other_ns, with noise of the relative size @noise. */
static void fill(struct bench_block *b, size_t n, double other, double noise, uint64_t seed)
{
	struct random r = {seed};
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < 2; k++) {
			b[i].base[k] = exp(noise * random_normal(&r));
			b[i].other[k] = other * exp(noise * random_normal(&r));
		}
}

static enum bench_verdict decide(double other, double noise, struct bench_ratio *c)
{
	struct bench_block b[BENCH_BLOCKS_DEFAULT];
	struct bench_plan p;
	bool is_over;
	fill(b, ARRAY_LEN(b), other, noise, 18);
	bench_plan_init(&p, ARRAY_LEN(b), 1);
	return bench_decide(c, &is_over, &p, b, ARRAY_LEN(b), BENCH_FLOOR);
}

TEST(bench_verdicts_follow_ratio_and_floor)
{
	struct bench_ratio c;
	CHECK(decide(1.1, 0.01, &c) == BENCH_SLOWER && c.nr_blocks == BENCH_LOOK_MIN);
	CHECK(fabs(expm1(c.median) - 0.1) < 0.02);
	CHECK(decide(0.9, 0.01, &c) == BENCH_FASTER);
	CHECK(decide(1, 0.005, &c) == BENCH_SAME);
	CHECK(decide(1.005, 0.0001, &c) == BENCH_SAME); /* surely slower, but by less than 1 % */
	CHECK(c.interval.low > 0 && is_near(c.floor, log1p(0.01)));
	CHECK(decide(1.03, 0.5, &c) == BENCH_INCONCLUSIVE && c.nr_blocks == BENCH_BLOCKS_DEFAULT);
	CHECK(decide(1, 0.5, &c) == BENCH_INCONCLUSIVE); /* the floor is too large to say "same" */
}

TEST(bench_floor_is_on_the_side_of_the_change)
{
	struct bench_ratio faster = {.median = log(0.914), .floor = log(1.09)};
	struct bench_ratio slower = {.median = log(1.1), .floor = log(1.09)};
	CHECK(is_near(bench_floor_pct(&slower), 9));
	CHECK(fabs(bench_floor_pct(&faster) - 8.257) < 0.001); /* below the change of 8.6 % */
	faster.floor = INFINITY;
	CHECK(isinf(bench_floor_pct(&faster)));
}

TEST(bench_few_blocks_give_no_verdict)
{
	struct bench_block b[BENCH_LOOK_MIN];
	struct bench_plan p;
	struct bench_ratio c;
	bool is_over;
	fill(b, ARRAY_LEN(b), 2, 0.001, 19);
	bench_plan_init(&p, 5, 1);
	CHECK(bench_decide(&c, &is_over, &p, b, 5, BENCH_FLOOR) == BENCH_INCONCLUSIVE && is_over);
	CHECK(isnan(c.interval.low) && isinf(c.spread));
	bench_plan_init(&p, BENCH_LOOK_MIN, 1);
	CHECK(bench_decide(&c, &is_over, &p, b, 7, BENCH_FLOOR) == BENCH_INCONCLUSIVE && !is_over);
	CHECK(bench_decide(&c, &is_over, &p, b, 8, BENCH_FLOOR) == BENCH_SLOWER);
}

TEST(bench_a_drift_is_no_difference)
{
	struct bench_block b[BENCH_BLOCKS_DEFAULT];
	struct bench_ratio c;
	for (size_t i = 0; i < ARRAY_LEN(b);
	     i++) { /* each run takes 1 % longer than the last one */
		double t = pow(1.01, (double)(4 * i));
		b[i] = (struct bench_block){{t, t * pow(1.01, 3)}, {t * 1.01, t * pow(1.01, 2)}};
	}
	bench_compare(&c, b, ARRAY_LEN(b), 0.05, BENCH_FLOOR);
	CHECK(fabs(c.median) < 1e-9);
}

TEST(bench_autocorrelation_and_histogram)
{
	static const double up[] = {1, 2, 3, 4, 5, 6, 7, 8};
	size_t bins[4];
	CHECK(is_near(bench_autocorrelation(up, 8), 0.625)); /* by hand: 26.25 / 42 */
	CHECK(bench_autocorrelation((double[]){3, 3, 3, 3}, 4) == 0);
	bench_histogram(bins, 4, 1, 8, up, 8);
	CHECK(bins[0] == 2 && bins[1] == 2 && bins[2] == 2 && bins[3] == 2);
	bench_histogram(bins, 4, 3, 3, up + 2, 1);
	CHECK(bins[0] == 1 && bins[3] == 0);
}

/* ---- counters: rates and ratios as perf stat has them, and sentences ------------------------- */

/* Of a run of 0.5 s CPU time in 1 s. */
static const struct counter_row made[] = {
	{.name = "task-clock", .role = COUNTER_CLOCK, .is_time = true, .value = 0.5e9},
	{.name = "page-faults", .value = 2000},
	{.name = "cycles", .role = COUNTER_CYCLES, .value = 1.5e9},
	{.name = "instructions", .role = COUNTER_INSTRUCTIONS, .value = 1.2e9},
	{.name = "branches", .role = COUNTER_BRANCHES, .value = 2e8},
	{.name = "branch-misses", .role = COUNTER_BRANCH_MISSES, .value = 2e7},
	{.name = "cache-references", .role = COUNTER_CACHE_REFERENCES, .value = 1e7},
	{.name = "cache-misses", .role = COUNTER_CACHE_MISSES, .value = 2.5e6},
	{.name = "L1-dcache-loads", .role = COUNTER_L1D_LOADS, .value = 4e8},
	{.name = "L1-dcache-load-misses", .role = COUNTER_L1D_MISSES, .value = 2e7},
	{.name = "run-queue",
	 .role = COUNTER_RUN_QUEUE,
	 .is_time = true,
	 .is_own = true,
	 .value = 0.5e9,
	 .running_ns = 550000000},
	{.name = "stolen",
	 .role = COUNTER_STOLEN,
	 .is_time = true,
	 .is_own = true,
	 .value = 0.25e9},
};

static void copy(struct counter_row *rows)
{
	memcpy(rows, made, sizeof(made));
	for (size_t i = 0; i < ARRAY_LEN(made); i++)
		rows[i].running_pct = 100;
}

TEST(countermetrics_of_a_run_queue_that_was_not_read_to_the_end_name_their_base)
{
	struct counter_row rows[ARRAY_LEN(made)];
	struct counter_row *queue = &rows[ARRAY_LEN(made) - 2];
	copy(rows);
	queue->running_ns = 300000000; /* of 0.5 s of task-clock */
	counter_metrics(rows, ARRAY_LEN(made), 1e9);
	CHECK(fabs(queue->metric - 62.5) < 1e-9);
	CHECK_STR(queue->metric_unit, "of time running or queued, of the threads read");
}

TEST(countermetrics_are_those_of_perf_stat)
{
	static const struct {
		double metric;
		const char *unit;
	} truth[ARRAY_LEN(made)] = {
		{0.5, "CPUs utilized"},
		{4, "K/sec"},
		{3, "GHz"},
		{0.8, "insn per cycle"},
		{400, "M/sec"},
		{10, "of all branches"},
		{20, "M/sec"},
		{25, "of all cache refs"},
		{800, "M/sec"},
		{5, "of all L1-dcache accesses"},
		{50, "of task-clock + run-queue"},
		{0.25, "CPUs by the hypervisor"},
	};
	struct counter_row rows[ARRAY_LEN(made)];
	copy(rows);
	counter_metrics(rows, ARRAY_LEN(rows), 1e9);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CHECK(fabs(rows[i].metric - truth[i].metric) < 1e-9);
		CHECK_STR(rows[i].metric_unit, truth[i].unit);
	}
}

/* The sentence that begins like this; NULL: there is none. */
static const char *note_of(const struct counter_row *rows, struct arena *a, bool has_pmu,
			   const char *start)
{
	const char *notes[COUNTER_NOTES_MAX];
	size_t nr = counter_notes(notes, a, rows, ARRAY_LEN(made), has_pmu);
	for (size_t i = 0; i < nr; i++)
		if (!strncmp(notes[i], start, strlen(start)))
			return notes[i];
	return NULL;
}

TEST(countermetrics_sentences_follow_the_thresholds)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct counter_row rows[ARRAY_LEN(made)];
	copy(rows);
	CHECK(note_of(rows, &a, true, "0.80 instructions per cycle, below 1"));
	CHECK(note_of(rows, &a, true, "25.00 % of cache references miss"));
	CHECK(note_of(rows, &a, true, "10.00 % of branches"));
	CHECK(!note_of(rows, &a, true, "5.00 % of L1"));
	rows[3].value = 3.3e9;
	CHECK(note_of(rows, &a, true, "2.20 instructions per cycle, above 2"));
	rows[3].value = 2.2e9; /* between: nothing to say */
	CHECK(!note_of(rows, &a, true, "1.47"));
}

TEST(countermetrics_say_what_was_not_counted_and_why)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct counter_row rows[ARRAY_LEN(made)];
	copy(rows);
	rows[8].running_pct = 40;
	rows[8].running_ns = 1;
	CHECK(note_of(rows, &a, true, "more events than counters"));
	rows[2].state = rows[3].state = COUNTER_NOT_SUPPORTED;
	CHECK_STR(note_of(rows, &a, true, "not supported"),
		  "not supported by this machine: cycles, instructions");
	CHECK(note_of(rows, &a, false, "no hardware counters (PMU) on this machine"));
	rows[4].state = COUNTER_NOT_PERMITTED;
	CHECK(note_of(rows, &a, true, "not permitted"));
	rows[5].state = COUNTER_NOT_COUNTED;
	CHECK(note_of(rows, &a, true, "not counted, since"));
	counter_metrics(rows, ARRAY_LEN(rows), 1e9);
	CHECK(isnan(rows[3].metric) && isnan(rows[2].metric));
}

/* ---- phases ------------------------------------------------------------------------------------ */

#define NR_PHASE_RUNS 16

/* Two commands of NR_PHASE_RUNS runs; the phase "run" of the second takes 20 % longer, "load" does not. */
struct bench {
	struct bench_run runs[2][NR_PHASE_RUNS];
	double load[2][NR_PHASE_RUNS];
	double run[2][NR_PHASE_RUNS];
	size_t idx[NR_PHASE_RUNS];
	struct bench_printed phases[2][2];
	struct bench_subject_data subjects[2];
	struct bench_data d;
};

static const struct bench_phase names[] = {{"load", false}, {"run", false}};

static void bench_init(struct bench *b)
{
	*b = (struct bench){0};
	for (size_t i = 0; i < NR_PHASE_RUNS; i++)
		b->idx[i] = i;
	for (size_t s = 0; s < 2; s++) {
		for (size_t i = 0; i < NR_PHASE_RUNS; i++) {
			double noise = (double)((i * 7 + s * 3) % 5) * 1e3;
			b->load[s][i] = 30e6 + noise;
			b->run[s][i] = (s ? 72e6 : 60e6) + noise;
			b->runs[s][i].v[BENCH_WALL] = (uint64_t)(b->load[s][i] + b->run[s][i]);
		}
		b->phases[s][0] = (struct bench_printed){b->load[s], b->idx, NR_PHASE_RUNS};
		b->phases[s][1] = (struct bench_printed){b->run[s], b->idx, NR_PHASE_RUNS};
		b->subjects[s] = (struct bench_subject_data){
			.name = s ? "b" : "a",
			.runs = b->runs[s],
			.nr_runs = NR_PHASE_RUNS,
			.phases = b->phases[s],
		};
	}
	b->d = (struct bench_data){
		.subjects = b->subjects,
		.nr_subjects = 2,
		.phases = names,
		.nr_phases = 2,
		.least = 0.01,
		.nr_blocks = NR_PHASE_RUNS / 2,
	};
}

TEST(bench_phases_have_verdicts_of_their_own)
{
	struct bench b;
	struct bench_outcome o;
	bench_init(&b);
	bench_outcome(&o, &b.d, 1, 0, SIZE_MAX);
	CHECK(o.verdict == BENCH_SAME);
	bench_outcome(&o, &b.d, 1, 1, SIZE_MAX);
	CHECK(o.verdict == BENCH_SLOWER && fabs(expm1(o.ratio.median) - 0.2) < 0.001);
	CHECK(fabs(bench_phase_share(&b.d, 0, 0) - 100.0 / 3) < 0.01);
	CHECK(fabs(bench_phase_share(&b.d, 1, 1) - 100 * 72 / 102.0) < 0.01);
}

TEST(bench_phases_of_more_than_the_run_are_explained)
{
	struct bench b;
	CLEANUP(report_free_p) struct report *r = report_new();
	bench_init(&b);
	for (size_t i = 0; i < NR_PHASE_RUNS; i++)
		b.run[0][i] = 1.5 * (double)b.runs[0][i].v[BENCH_WALL];
	bench_phases(r, &b.d);
	size_t nr = 0;
	for (size_t i = 0; i < r->notes.n; i++)
		nr += strstr(r->notes.p[i], "phase 'run' of 'a' is 150 % of the run: ") != NULL;
	CHECK(nr == 1 && r->notes.n == 1);
}

TEST(bench_phase_verdicts_share_five_percent)
{
	struct bench b;
	struct bench_outcome o;
	double whole;
	bench_init(&b);
	bench_outcome(&o, &b.d, 1, BENCH_WHOLE, SIZE_MAX);
	whole = o.ratio.interval.high - o.ratio.interval.low;
	for (size_t i = 0; i < NR_PHASE_RUNS; i++)
		for (size_t s = 0; s < 2; s++)
			b.run[s][i] = (double)b.runs[s][i].v[BENCH_WALL];
	bench_outcome(&o, &b.d, 1, 1, SIZE_MAX);
	CHECK(o.ratio.interval.high - o.ratio.interval.low > whole);
}

TEST(bench_a_phase_that_a_run_has_twice_takes_the_sum)
{
	static const double v[] = {1e6, 2e6, 5e6};
	static const size_t run[] = {0, 0, 2};
	struct bench b;
	CLEANUP(free_p) double *series = NULL;
	bench_init(&b);
	b.phases[0][0] = (struct bench_printed){v, run, ARRAY_LEN(v)};
	CHECK(bench_series(&series, &b.d, 0, 0) == 2 && series[0] == 3e6 && series[1] == 5e6);
	struct bench_outcome o;
	bench_outcome(&o, &b.d, 1, 0, SIZE_MAX); /* not every run has it */
	CHECK(o.verdict == BENCH_INCONCLUSIVE && !o.ratio.nr_blocks);
}

TEST(bench_phases_of_repeats_leave_out_the_cold_first_one)
{
	static const double blocks[] = {90e6, 60e6, 60e6};
	static const double exec[] = {80e6, 40e6, 41e6};
	static const size_t run[] = {0, 0, 0};
	struct bench b;
	CLEANUP(free_p) double *series = NULL;
	bench_init(&b);
	b.d.has_each = b.d.each_is_time = true;
	b.subjects[0].each = (struct bench_printed){blocks, run, ARRAY_LEN(blocks)};
	b.phases[0][0] = (struct bench_printed){exec, run, ARRAY_LEN(exec)};
	CHECK(bench_series(&series, &b.d, 0, 0) == 2 && series[0] == 40e6);
	CHECK(fabs(bench_phase_share(&b.d, 0, 0) - 67.5) < 0.01);
	b.phases[0][0].n = 1; /* printed once for all repeats: no part of them */
	CHECK(isnan(bench_phase_share(&b.d, 0, 0)));
}

TEST(bench_phases_that_no_line_matches_are_invalid)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct bench b;
	bench_init(&b);
	b.phases[0][1].n = 0;
	CHECK(!bench_phases_invalid(&a, &b.d));
	b.phases[1][1].n = 0;
	CHECK_STR(bench_phases_invalid(&a, &b.d), "no line of a run matches the phase 'run'");
	b.phases[0][0].has_plain = true;
	CHECK_STR(
		bench_phases_invalid(&a, &b.d),
		"phase 'load': 'a' prints a number without a unit of time (ns, us, ms, s, min) behind it");
}
