/*
 * Rules that call one program slower than another, replayed on recorded runs of one program on a shared
 * machine: how often each finds a difference where there is none, and one that was added. A window of
 * 80 runs is a comparison with 40 runs of each command. docs/accuracy.md has the table, which
 * BENCH_REPLAY=1 prints.
 */
#include "base/base.h"
#include "tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyze/bench/benchagainst.h"
#include "analyze/bench/benchcompare.h"
#include "analyze/bench/benchstat.h"
#include "base/buf.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "base/sv.h"
#include "random.h"

#define NR_RUNS    40 /* of each command */
#define NR_WINDOWS 300

/* ---- rules: -1 faster, 0 no difference, 1 slower ------------------------------------------- */

struct runs {
	double v[NR_RUNS];
};

struct moments {
	double mean;
	double variance; /* of a sample */
};

static struct moments moments_of(const double *v, size_t n)
{
	struct stat_run r = {0};
	for (size_t i = 0; i < n; i++)
		stat_add(&r, v[i]);
	return (struct moments){r.mean, stat_stddev(&r) * stat_stddev(&r)};
}

static int sign_of(double v)
{
	return COMPARE(v, 0);
}

/* poop 0.5: interval of the difference of means by pooled variances; all of it beyond 1 %. */
static int rule_poop(const struct runs *a, const struct runs *b, struct random *r)
{
	(void)r;
	struct moments x = moments_of(a->v, NR_RUNS);
	struct moments y = moments_of(b->v, NR_RUNS);
	double half = stat_t95(2 * NR_RUNS - 2) * sqrt((x.variance + y.variance) / NR_RUNS);
	double change = y.mean - x.mean;
	return fabs(change) - half >= 0.01 * x.mean ? sign_of(change) : 0;
}

static int rule_welch(const struct runs *a, const struct runs *b, struct random *r)
{
	(void)r;
	struct moments x = moments_of(a->v, NR_RUNS);
	struct moments y = moments_of(b->v, NR_RUNS);
	double vx = x.variance / NR_RUNS;
	double vy = y.variance / NR_RUNS;
	double degrees = (vx + vy) * (vx + vy) / ((vx * vx + vy * vy) / (NR_RUNS - 1));
	double t = (y.mean - x.mean) / sqrt(vx + vy);
	return fabs(t) > stat_t95((size_t)degrees) ? sign_of(t) : 0;
}

/* Mann and Whitney's test, by the normal approximation. */
static int rule_ranks(const struct runs *a, const struct runs *b, struct random *r)
{
	(void)r;
	double u = 0;
	double n = NR_RUNS;
	for (size_t i = 0; i < NR_RUNS; i++)
		for (size_t k = 0; k < NR_RUNS; k++)
			u += b->v[k] > a->v[i] ? 1 : b->v[k] == a->v[i] ? 0.5 : 0;
	double z = (u - n * n / 2) / sqrt(n * n * (2 * n + 1) / 12);
	return fabs(z) > STAT_Z95 ? sign_of(z) : 0;
}

/* What hyperfine prints: ratio of the means +- its propagated standard deviation. */
static int rule_sigma(const struct runs *a, const struct runs *b, struct random *r)
{
	(void)r;
	struct moments x = moments_of(a->v, NR_RUNS);
	struct moments y = moments_of(b->v, NR_RUNS);
	double ratio = y.mean / x.mean;
	double sigma =
		ratio * sqrt(x.variance / (x.mean * x.mean) + y.variance / (y.mean * y.mean));
	return fabs(ratio - 1) > sigma ? sign_of(ratio - 1) : 0;
}

static void resample(double *to, const double *from, size_t n, struct random *r)
{
	for (size_t i = 0; i < NR_RUNS; i++)
		to[i] = from[MIN((size_t)(random_unit(r) * (double)n), n - 1)];
}

static double t_of(const double *a, const double *b)
{
	struct moments x = moments_of(a, NR_RUNS);
	struct moments y = moments_of(b, NR_RUNS);
	return (y.mean - x.mean) / sqrt((x.variance + y.variance) / NR_RUNS);
}

/*
 * As criterion.rs: p < 5 % by resampling t from the pooled runs, and the bootstrap interval of the change
 * of the mean all beyond 1 %.
 */
static int rule_resampled(const struct runs *a, const struct runs *b, struct random *r)
{
	enum { NR = 200 };
	double pool[2 * NR_RUNS];
	double change[NR];
	unsigned nr_beyond = 0;
	double t = fabs(t_of(a->v, b->v));
	memcpy(pool, a->v, sizeof(a->v));
	memcpy(pool + NR_RUNS, b->v, sizeof(b->v));
	for (size_t i = 0; i < NR; i++) {
		double x[NR_RUNS];
		double y[NR_RUNS];
		resample(x, pool, 2 * NR_RUNS, r);
		resample(y, pool, 2 * NR_RUNS, r);
		nr_beyond += fabs(t_of(x, y)) >= t;
		resample(x, a->v, NR_RUNS, r);
		resample(y, b->v, NR_RUNS, r);
		change[i] = moments_of(y, NR_RUNS).mean / moments_of(x, NR_RUNS).mean - 1;
	}
	if (nr_beyond >= NR / 20)
		return 0;
	bench_sort(change, NR);
	double low = bench_quantile_sorted(change, NR, 0.025);
	return low > 0.01 ? 1 : bench_quantile_sorted(change, NR, 0.975) < -0.01 ? -1 : 0;
}

/* ---- the series ---------------------------------------------------------------------------- */

struct series {
	double *v;
	size_t n;
};

static void series_release(struct series *s)
{
	free(s->v);
}

static void read_series(struct series *s, const char *path)
{
	CLEANUP(buf_release) struct buf text = {0};
	CHECK(!file_read(&text, path, 1 << 20, NULL));
	s->v = xmalloc((text.n + 1) * sizeof(*s->v));
	for (struct sv left = buf_sv(&text); left.n;) {
		uint64_t us;
		if (sv_to_u64(sv_split(&left, '\n'), &us))
			s->v[s->n++] = (double)us;
	}
	CHECK(s->n >= 1200);
}

enum { RULE_POOP, RULE_RESAMPLED, RULE_WELCH, RULE_RANKS, RULE_SIGMA, RULE_OURS, RULE_NR };

struct counts {
	unsigned nr_found[RULE_NR]; /* any difference */
	unsigned nr_slower[RULE_NR];
	double runs; /* of ours: mean share of the blocks until the verdict */
};

/* The runs of a window in blocks, base first or other first by chance; other takes @factor as long. */
static void make_blocks(struct bench_block *b, const double *v, double factor, struct random *r)
{
	for (size_t i = 0; i < NR_RUNS / 2; i++, v += 4) {
		bool is_reversed = random_unit(r) < 0.5;
		double outer = is_reversed ? factor : 1;
		double inner = is_reversed ? 1 : factor;
		double first[2] = {v[0] * outer, v[3] * outer};
		double second[2] = {v[1] * inner, v[2] * inner};
		memcpy(b[i].base, is_reversed ? second : first, sizeof(first));
		memcpy(b[i].other, is_reversed ? first : second, sizeof(first));
	}
}

static int rule_ours(const double *v, double factor, struct random *r, double *runs)
{
	struct bench_block blocks[NR_RUNS / 2];
	struct bench_plan plan;
	struct bench_ratio c;
	bool is_over;
	make_blocks(blocks, v, factor, r);
	bench_plan_init(&plan, NR_RUNS / 2, 1);
	enum bench_verdict verdict =
		bench_decide(&c, &is_over, &plan, blocks, NR_RUNS / 2, BENCH_FLOOR);
	*runs += (double)c.nr_blocks / (NR_RUNS / 2);
	return verdict == BENCH_SLOWER ? 1 : verdict == BENCH_FASTER ? -1 : 0;
}

/* The peers measure all runs of one command, then all of the other. */
static void replay(struct counts *c, const struct series *s, double factor)
{
	static int (*const rules[])(const struct runs *, const struct runs *, struct random *) = {
		rule_poop, rule_resampled, rule_welch, rule_ranks, rule_sigma};
	struct random r = {161};
	*c = (struct counts){0};
	for (size_t w = 0; w < NR_WINDOWS; w++) {
		const double *v = s->v + (s->n - 2 * NR_RUNS) * w / (NR_WINDOWS - 1);
		struct runs a;
		struct runs b;
		int found[RULE_NR];
		for (size_t i = 0; i < NR_RUNS; i++) {
			a.v[i] = v[i];
			b.v[i] = v[NR_RUNS + i] * factor;
		}
		for (size_t k = 0; k < ARRAY_LEN(rules); k++)
			found[k] = rules[k](&a, &b, &r);
		found[RULE_OURS] = rule_ours(v, factor, &r, &c->runs);
		for (size_t k = 0; k < RULE_NR; k++) {
			c->nr_found[k] += found[k] != 0;
			c->nr_slower[k] += found[k] > 0;
		}
	}
	c->runs /= NR_WINDOWS;
}

static double pct(unsigned nr)
{
	return nr * 100.0 / NR_WINDOWS;
}

static void print_table(const struct counts *none, const struct counts *three,
			const struct counts *ten)
{
	static const char *const names[RULE_NR] = {"poop: t interval beyond 1 %",
						   "as criterion.rs",
						   "Welch's t test",
						   "Mann-Whitney",
						   "ratio +- sigma",
						   "assay"};
	for (size_t k = 0; getenv("BENCH_REPLAY") && k < RULE_NR; k++)
		fprintf(stderr, "| %s | %.1f %% | %.1f %% | %.1f %% |\n", names[k],
			pct(none->nr_found[k]), pct(three->nr_slower[k]), pct(ten->nr_slower[k]));
	if (getenv("BENCH_REPLAY"))
		fprintf(stderr, "runs: %.2f %.2f %.2f\n", none->runs, three->runs, ten->runs);
}

/* @ret: for +3 % and +10 %. */
static void check_series(const char *path, struct counts *ret_three, struct counts *ret_ten)
{
	CLEANUP(series_release) struct series s = {0};
	struct counts none;
	read_series(&s, path);
	if (s.n < 2 * NR_RUNS)
		return;
	replay(&none, &s, 1);
	replay(ret_three, &s, 1.03);
	replay(ret_ten, &s, 1.10);
	print_table(&none, ret_three, ret_ten);
	CHECK(pct(none.nr_found[RULE_OURS]) <= 5);
	for (size_t k = 0; k < RULE_OURS; k++) /* no peer that keeps 5 % finds more */
		CHECK(pct(none.nr_found[k]) > 5 ||
		      ret_three->nr_slower[RULE_OURS] >= ret_three->nr_slower[k]);
}

TEST(bench_rule_keeps_five_percent_on_runs_of_a_busy_machine)
{
	struct counts three;
	struct counts ten;
	check_series("tests/fixtures/bench/busy.us", &three, &ten);
	CHECK(pct(three.nr_slower[RULE_OURS]) >= 15 && pct(ten.nr_slower[RULE_OURS]) >= 30);
}

TEST(bench_rule_finds_three_percent_in_half_of_the_runs_at_real_time_priority)
{
	struct counts three;
	struct counts ten;
	check_series("tests/fixtures/bench/realtime.us", &three, &ten);
	CHECK(pct(three.nr_slower[RULE_OURS]) >= 95);
	CHECK(ten.runs <= 0.6);
}

/* ---- baselines: two series of runs at different times -------------------------------------- */

/* Share of pairs of series of 20 runs, some seconds apart, that are called slower or faster. */
static double share_found(const struct series *s, size_t gap, double factor)
{
	enum { NR = 20 };
	size_t nr = 0;
	size_t nr_found = 0;
	for (size_t i = 0; i + 2 * NR + gap <= s->n; i += NR) {
		double later[NR];
		struct bench_against a;
		struct bench_session base = {s->v + i, NR, 0, NAN, BENCH_MACHINE_UNKNOWN};
		struct bench_session now = {later, NR, 0, NAN, BENCH_MACHINE_UNKNOWN};
		for (size_t k = 0; k < NR; k++)
			later[k] = s->v[i + NR + gap + k] * factor;
		bench_against(&a, &base, &now, 0.01);
		nr_found += a.verdict == BENCH_SLOWER || a.verdict == BENCH_FASTER;
		nr++;
	}
	return (double)nr_found / (double)MAX(nr, (size_t)1);
}

TEST(bench_against_a_baseline_keeps_five_percent_on_a_machine_whose_runs_do_not_wait)
{
	CLEANUP(series_release) struct series s = {0};
	read_series(&s, "tests/fixtures/bench/realtime.us");
	for (size_t gap = 0; gap <= 1600 && s.n; gap += 400) {
		CHECK(share_found(&s, gap, 1) <= 0.05);
		CHECK(share_found(&s, gap, 1.1) >= 0.9);
		if (getenv("BENCH_REPLAY"))
			fprintf(stderr, "gap %zu: %.3f, +10 %%: %.3f, +3 %%: %.3f\n", gap,
				share_found(&s, gap, 1), share_found(&s, gap, 1.1),
				share_found(&s, gap, 1.03));
	}
}

TEST(bench_against_a_baseline_takes_waiting_into_the_floor)
{
	const double fast[] = {10, 10.1, 10.2, 9.9, 10, 10.1, 10, 9.9};
	double slow[ARRAY_LEN(fast)];
	struct bench_session base = {fast, ARRAY_LEN(fast), 0, NAN, BENCH_MACHINE_UNKNOWN};
	struct bench_session now = {slow, ARRAY_LEN(fast), 0, NAN, BENCH_MACHINE_UNKNOWN};
	struct bench_against a;
	for (size_t i = 0; i < ARRAY_LEN(fast); i++)
		slow[i] = fast[i] * 1.3;
	bench_against(&a, &base, &now, 0.01);
	CHECK(a.verdict == BENCH_SLOWER);
	CHECK(fabs(expm1(a.ratio.median) - 0.3) < 1e-9);
	now.busy = 0.25; /* which alone makes a run 1.33 times as long */
	bench_against(&a, &base, &now, 0.01);
	CHECK(a.verdict == BENCH_INCONCLUSIVE);
	now.busy = 0.1;
	bench_against(&a, &base, &now, 0.01);
	CHECK(a.verdict == BENCH_SLOWER);
	now.machine.cpu = "another";
	bench_against(&a, &base, &now, 0.01);
	CHECK(a.verdict == BENCH_INCONCLUSIVE && a.reason);
	now = base;
	bench_against(&a, &base, &now, 0.01);
	CHECK(a.verdict == BENCH_SAME);
}

TEST(against_unknown_waiting_for_a_cpu_is_at_most_the_time_without_one)
{
	struct bench_sums s = {.wall = 100, .cpu = 40, .stolen = 10, .queue = 5};
	CHECK(fabs(bench_busy(&s) - 0.15) < 1e-12);
	s.queue = NAN; /* of children of a shell */
	CHECK(fabs(bench_busy(&s) - 0.6) < 1e-12);
	s.cpu = 250; /* of several threads at once */
	CHECK(fabs(bench_busy(&s) - 0.1) < 1e-12);
	CHECK(bench_busy(&(struct bench_sums){0}) == 0);
}
