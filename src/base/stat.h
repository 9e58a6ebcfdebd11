/*
 * Statistics over small sets of numbers, and the uncertainty of sampled shares.
 *
 * A share of n independent samples is binomial. Its 95 % interval is Wilson's score interval
 * (E. B. Wilson, JASA 22, 1927): unlike p +- 1.96 sqrt(p(1-p)/n) it stays inside [0, 1] and is
 * honest for few samples and shares near 0. Samples that a clock takes from one thread are less
 * random than that for periodic work; docs/accuracy.md says when.
 */
#ifndef ASSAY_BASE_STAT_H
#define ASSAY_BASE_STAT_H

#include "base/base.h"

#define STAT_Z95 1.959963984540054 /* two-sided 95 % quantile of the normal distribution */

/* Running mean and variance (Welford), for any number of values. Start with {0}. */
struct stat_run {
	uint64_t n;
	double mean;
	double m2; /* sum of squared distances from the mean */
	double min;
	double max;
};

void stat_add(struct stat_run *r, double v);
/* Sample standard deviation (n - 1); 0 for fewer than two values. */
double stat_stddev(const struct stat_run *r);

/* NaN when n is 0. The array of the last two is sorted in place. */
double stat_mean(const double *v, size_t n);
double stat_median(double *v, size_t n);
/* @q in 0..1, linear between the neighbours (type 7 of Hyndman and Fan). */
double stat_quantile(double *v, size_t n, double q);

struct stat_interval {
	double low; /* 0..1 */
	double high;
};

/* Of the share hits / n, at @z (STAT_Z95); n = 0 gives [0, 1]. */
struct stat_interval stat_wilson(double hits, double n, double z);
/* Half the width of the 95 % interval, in percentage points: what is printed after +-. */
double stat_share_pct_error(double hits, double n);

#endif
