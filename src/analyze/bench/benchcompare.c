/* Compares two commands by their runs; see benchcompare.h. */
#include "base/base.h"
#include "analyze/bench/benchcompare.h"

#include <math.h>

#include "analyze/bench/benchstat.h"
#include "base/mem.h"

void bench_compare(struct bench_ratio *ret, const struct bench_block *blocks, size_t nr_blocks,
		   double alpha, double least)
{
	ASSERT(nr_blocks);
	CLEANUP(free_p) double *ratio = xmalloc(nr_blocks * sizeof(*ratio));
	CLEANUP(free_p) double *alone = xmalloc(nr_blocks * sizeof(*alone));
	for (size_t i = 0; i < nr_blocks; i++) {
		const struct bench_block *b = &blocks[i];
		ratio[i] = (log(b->other[0] / b->base[0]) + log(b->other[1] / b->base[1])) / 2;
		alone[i] = log(b->base[1] / b->base[0]);
	}
	bench_sort(ratio, nr_blocks);
	bench_sort(alone, nr_blocks);
	struct stat_interval same = bench_median_interval(alone, nr_blocks, 0.05);
	double spread = isnan(same.low) ? INFINITY : (same.high - same.low) / 2;
	*ret = (struct bench_ratio){
		.nr_blocks = nr_blocks,
		.median = bench_quantile_sorted(ratio, nr_blocks, 0.5),
		.interval = bench_median_interval(ratio, nr_blocks, alpha),
		.spread = spread,
		.floor = MAX(log1p(least), spread),
	};
}

double bench_floor_pct(const struct bench_ratio *r)
{
	if (!isfinite(r->floor))
		return INFINITY;
	return 100 * (r->median < 0 ? -expm1(-r->floor) : expm1(r->floor));
}

/* Spent up to the share @t of the blocks: 5 % t^2. */
void bench_plan_init(struct bench_plan *ret, size_t nr_blocks, size_t nr_comparisons)
{
	static const double at[BENCH_LOOKS_MAX] = {0.4, 0.55, 0.7, 0.85, 1};
	*ret = (struct bench_plan){0};
	double spent = 0;
	for (size_t i = 0; i < BENCH_LOOKS_MAX; i++) {
		bool is_last = i + 1 == BENCH_LOOKS_MAX;
		size_t n = (size_t)ceil(at[i] * (double)nr_blocks - 1e-9);
		n = MIN(MAX(n, (size_t)BENCH_LOOK_MIN), nr_blocks);
		if (!is_last && (n == nr_blocks || (i && n == ret->blocks[ret->nr_looks - 1])))
			continue;
		double part = (double)n / (double)nr_blocks;
		double until = 0.05 * part * part;
		ret->blocks[ret->nr_looks] = n;
		ret->alpha[ret->nr_looks++] =
			(until - spent) / (double)MAX(nr_comparisons, (size_t)1);
		spent = until;
	}
}

enum bench_verdict bench_judge(const struct bench_ratio *r, double least, bool is_last)
{
	if (r->interval.low > 0 && r->median > r->floor)
		return BENCH_SLOWER;
	if (r->interval.high < 0 && r->median < -r->floor)
		return BENCH_FASTER;
	double margin = is_last ? r->floor : log1p(least);
	bool is_within = r->interval.low > -margin && r->interval.high < margin;
	return is_within && margin <= MAX(log1p(least), BENCH_SAME_MAX) ? BENCH_SAME
									: BENCH_INCONCLUSIVE;
}

enum bench_verdict bench_decide(struct bench_ratio *ret, bool *ret_is_over,
				const struct bench_plan *plan, const struct bench_block *blocks,
				size_t nr_blocks, double least)
{
	enum bench_verdict verdict = BENCH_INCONCLUSIVE;
	*ret_is_over = false;
	for (size_t i = 0; i < plan->nr_looks && plan->blocks[i] <= nr_blocks && !verdict; i++) {
		bool is_last = i + 1 == plan->nr_looks;
		bench_compare(ret, blocks, plan->blocks[i], plan->alpha[i], least);
		verdict = bench_judge(ret, least, is_last);
		*ret_is_over = is_last;
	}
	return verdict;
}
