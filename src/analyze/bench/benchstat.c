/* Statistics of repeated runs; see benchstat.h. */
#include "base/base.h"
#include "analyze/bench/benchstat.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

static int compare_doubles(const void *a, const void *b)
{
	return COMPARE(*(const double *)a, *(const double *)b);
}

void bench_sort(double *v, size_t n)
{
	if (n)
		qsort(v, n, sizeof(*v), compare_doubles);
}

double bench_quantile_sorted(const double *v, size_t n, double q)
{
	ASSERT(n);
	double at = MIN(MAX(q, 0.0), 1.0) * (double)(n - 1);
	size_t i = (size_t)at;
	return i + 1 >= n ? v[n - 1] : v[i] + (at - (double)i) * (v[i + 1] - v[i]);
}

/*
 * The pair of the k-th values from both ends covers the median unless fewer than k of n values are on
 * one of its sides: probability 1 - 2 P(B < k), B binomial (n, 1/2). *ret_next: of the pair k + 1.
 * Returns the largest k whose coverage is at least @want, 0: none.
 */
static size_t find_pair(size_t n, double want, double *ret_covered, double *ret_next)
{
	double ln_half = -(double)n * log(2);
	double below = 0; /* P(B < k) */
	for (size_t k = 0; k <= n / 2; k++) {
		double ln_ways =
			lgamma((double)n + 1) - lgamma((double)k + 1) - lgamma((double)(n - k) + 1);
		double next = below + exp(ln_ways + ln_half);
		if (1 - 2 * next < want) {
			*ret_covered = 1 - 2 * below;
			*ret_next = MAX(1 - 2 * next, 0.0);
			return k;
		}
		below = next;
	}
	BUG("no pair of %zu values", n); /* the middle pair covers nothing */
}

struct stat_interval bench_median_interval(const double *v, size_t n, double alpha)
{
	double covered;
	double next;
	size_t k = n ? find_pair(n, 1 - alpha, &covered, &next) : 0;
	if (!k)
		return (struct stat_interval){NAN, NAN};
	double part = (covered - (1 - alpha)) / (covered - next);
	double inner = (double)(n - k) * part / ((double)k + ((double)n - 2 * (double)k) * part);
	size_t in = MIN(k, n - 1);
	return (struct stat_interval){
		(1 - inner) * v[k - 1] + inner * v[in],
		(1 - inner) * v[n - k] + inner * v[n - 1 - in],
	};
}

static double median_distance(double *scratch, const double *v, size_t n, double median)
{
	for (size_t i = 0; i < n; i++)
		scratch[i] = fabs(v[i] - median);
	bench_sort(scratch, n);
	return bench_quantile_sorted(scratch, n, 0.5);
}

void bench_summarize(struct bench_summary *ret, const double *v, size_t n)
{
	static const double percents[BENCH_PERCENTILE_NR] = {90, 95, 99};
	ASSERT(n);
	CLEANUP(free_p) double *sorted = xmemdup(v, n * sizeof(*v));
	CLEANUP(free_p) double *scratch = xmalloc(n * sizeof(*v));
	bench_sort(sorted, n);
	struct stat_run run = {0};
	for (size_t i = 0; i < n; i++)
		stat_add(&run, v[i]);
	double median = bench_quantile_sorted(sorted, n, 0.5);
	*ret = (struct bench_summary){
		.n = n,
		.mean = run.mean,
		.stddev = n > 1 ? stat_stddev(&run) : NAN,
		.min = run.min,
		.max = run.max,
		.q1 = bench_quantile_sorted(sorted, n, 0.25),
		.median = median,
		.q3 = bench_quantile_sorted(sorted, n, 0.75),
		.mad = median_distance(scratch, v, n, median),
		.interval = bench_median_interval(sorted, n, 0.05),
	};
	for (size_t p = 0; p < BENCH_PERCENTILE_NR; p++) {
		bool has_enough = (double)n * (100 - percents[p]) >= 100 * BENCH_BEYOND_MIN;
		ret->percentile[p] =
			has_enough ? bench_quantile_sorted(sorted, n, percents[p] / 100) : NAN;
	}
}

double bench_autocorrelation(const double *v, size_t n)
{
	struct stat_run run = {0};
	for (size_t i = 0; i < n; i++)
		stat_add(&run, v[i]);
	if (n < 3 || !(run.m2 > 0))
		return 0;
	double products = 0;
	for (size_t i = 1; i < n; i++)
		products += (v[i] - run.mean) * (v[i - 1] - run.mean);
	return products / run.m2;
}

void bench_histogram(size_t *counts, size_t nr_bins, double low, double high, const double *v,
		     size_t n)
{
	ASSERT(nr_bins);
	memset(counts, 0, nr_bins * sizeof(*counts));
	for (size_t i = 0; i < n; i++) {
		double at = high > low ? (v[i] - low) / (high - low) * (double)nr_bins : 0;
		counts[MIN((size_t)MAX(at, 0.0), nr_bins - 1)]++;
	}
}
