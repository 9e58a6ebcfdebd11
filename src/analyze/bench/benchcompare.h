/*
 * Whether one command is slower than another, from runs in blocks of four: base, other, other, base
 * (or the reverse, by chance), so that a drift of the machine's speed within a block adds nothing to
 * their sum. Each block gives two paired log-ratios, ln(other / base), of neighbouring runs.
 *
 *   ratio     of a block: the mean of both; of all: the median of the blocks
 *   interval  of that median, from order statistics of the blocks (benchstat.h), since runs of a block
 *             depend on each other. A percentile bootstrap of whole blocks covers the true ratio in 84 %
 *             (8 blocks) to 93 % (20) of cases instead of 95 %.
 *   spread    half the width of the 95 % interval of the median ln(second base / first base) of the
 *             blocks: what the machine makes of a program compared with itself, without extra runs
 *   floor     max(what the user calls too small, 1 % by default; spread): no smaller change is stated
 *
 * A change is stated if the interval excludes "no change" and the ratio is beyond the floor.
 *
 * The data are looked at no more than five times, at block counts fixed beforehand. Each look uses up
 * a part of the 5 % (alpha spending: K. K. G. Lan, D. L. DeMets, Biometrika 70, 1983), more of it the
 * later it is, so that stopping at the first verdict does not raise the rate of false ones.
 * docs/accuracy.md has the rates on recorded series.
 */
#ifndef ASSAY_ANALYZE_BENCH_BENCHCOMPARE_H
#define ASSAY_ANALYZE_BENCH_BENCHCOMPARE_H

#include "base/base.h"
#include "base/stat.h"

#define BENCH_LOOKS_MAX      5
#define BENCH_FLOOR          0.01 /* default of the smallest change of interest */
#define BENCH_SAME_MAX       0.05 /* with a larger floor "same" would say nothing */
#define BENCH_LOOK_MIN       8    /* blocks: with fewer, signs alone agree by chance too often */
#define BENCH_BLOCKS_DEFAULT 20

/* Times of a block; base[i] and other[i] ran one after the other. All above 0. */
struct bench_block {
	double base[2];
	double other[2];
};

/* All as log-ratios; expm1(x) is the relative change. */
struct bench_ratio {
	size_t nr_blocks;
	double median;
	struct stat_interval interval; /* with the coverage 1 - alpha; NAN: too few blocks */
	double spread;                 /* INFINITY: too few blocks */
	double floor;
};

void bench_compare(struct bench_ratio *ret, const struct bench_block *blocks, size_t nr_blocks,
		   double alpha, double least);

/*
 * The floor in percent on the side of the change: 0.086 is 9.0 % of an increase, 8.3 % of a decrease.
 */
double bench_floor_pct(const struct bench_ratio *r);

/* When the blocks are looked at, and with which alpha. */
struct bench_plan {
	size_t nr_looks;
	size_t blocks[BENCH_LOOKS_MAX]; /* ascending; the last one is all */
	double alpha[BENCH_LOOKS_MAX];  /* their sum is 5 %, shared by @nr_comparisons */
};

/* @nr_comparisons: commands that are compared with the base (Bonferroni's correction). */
void bench_plan_init(struct bench_plan *ret, size_t nr_blocks, size_t nr_comparisons);

enum bench_verdict {
	BENCH_INCONCLUSIVE,
	BENCH_SAME,   /* the interval lies within the floor */
	BENCH_FASTER, /* the ratio is beyond the floor, and the interval excludes 0 */
	BENCH_SLOWER,
	BENCH_VERDICT_NR,
};

/*
 * The verdict at a look. Before the last one BENCH_INCONCLUSIVE means: go on; "same" then needs an
 * interval within @least, since the spread of a few blocks is too wide a margin.
 */
enum bench_verdict bench_judge(const struct bench_ratio *r, double least, bool is_last);

/*
 * Looks at all planned block counts up to @nr_blocks, the first verdict is the result. *ret: of the
 * look that decided, or of the last one; *ret_is_over: no look is left.
 */
enum bench_verdict bench_decide(struct bench_ratio *ret, bool *ret_is_over,
				const struct bench_plan *plan, const struct bench_block *blocks,
				size_t nr_blocks, double least);

#endif
