/*
 * Statistics of repeated runs: one set of values, most often times in nanoseconds.
 *
 * Quantiles interpolate linearly between neighbours (type 7 of Hyndman and Fan: the default of R and
 * numpy). The standard deviation is that of a sample (n - 1). The interval of the median is made of
 * order statistics, interpolated between the two pairs of them whose exact (binomial) coverage lies
 * above and below the wanted one (T. P. Hettmansperger and S. J. Sheather, Statistics & Probability
 * Letters 4, 1986): it assumes no distribution, and its coverage is within a point of the wanted one.
 */
#ifndef ASSAY_ANALYZE_BENCH_BENCHSTAT_H
#define ASSAY_ANALYZE_BENCH_BENCHSTAT_H

#include "base/base.h"
#include "base/stat.h"

/* Fewer values have no 95 % interval of the median: all of them together cover 93.75 %. */
#define BENCH_INTERVAL_MIN 6
/* A percentile is given if at least this number of values is expected beyond it. */
#define BENCH_BEYOND_MIN 5

enum bench_percentile { BENCH_P90, BENCH_P95, BENCH_P99, BENCH_PERCENTILE_NR };

struct bench_summary {
	size_t n;
	double mean;
	double stddev; /* of a sample; NAN for one value */
	double min;
	double max;
	double q1;
	double median;
	double q3;
	double mad; /* median distance from the median, not scaled */
	/* 95 % interval of the median; NAN for fewer than BENCH_INTERVAL_MIN values. */
	struct stat_interval interval;
	double percentile[BENCH_PERCENTILE_NR]; /* NAN: too few values */
};

/* @v is not changed. n > 0. */
void bench_summarize(struct bench_summary *ret, const double *v, size_t n);

/* Quantile @q in 0..1 of values in ascending order; n > 0. */
double bench_quantile_sorted(const double *v, size_t n, double q);
/* Interval of the median of ascending values with the coverage 1 - @alpha; NAN: n is too small. */
struct stat_interval bench_median_interval(const double *v, size_t n, double alpha);
void bench_sort(double *v, size_t n);

/* Correlation of each value with its predecessor; 0 for fewer than three values. */
double bench_autocorrelation(const double *v, size_t n);

/* Counts values in @nr_bins bins of equal width between @low and @high, which must be all in. */
void bench_histogram(size_t *counts, size_t nr_bins, double low, double high, const double *v,
		     size_t n);

#endif
