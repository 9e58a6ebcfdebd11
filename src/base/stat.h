/*
 * Statistics over small sets of numbers, and confidence intervals of sampled shares.
 *
 * A share of n independent samples is binomial. Its 95 % interval is Wilson's score interval
 * (E. B. Wilson, JASA 22, 1927): unlike p +- 1.96 sqrt(p(1-p)/n) it stays inside [0, 1] and keeps
 * its coverage for few samples and shares near 0. Periodic samples of one thread with periodic
 * work are not independent; docs/accuracy.md describes when that matters.
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

/* NaN when n is 0. stat_median and stat_quantile sort the array in place. */
double stat_mean(const double *v, size_t n);
double stat_median(double *v, size_t n);
/* @q in 0..1; interpolated linearly between neighbours (type 7 of Hyndman and Fan). */
double stat_quantile(double *v, size_t n, double q);

struct stat_interval {
	double low;
	double high;
};

/*
 * Two-sided quantile of the normal distribution for @nr intervals that shall all hold together with
 * 95 % (Bonferroni's correction); STAT_Z95 for one.
 */
double stat_z_of_family(size_t nr);

/* Interval of the share hits / n, within 0..1; n = 0 gives [0, 1]. @hits: samples of the row. */
struct stat_interval stat_wilson(double hits, double n);
struct stat_interval stat_wilson_at(double hits, double n, double z);
/* Half the width of the 95 % interval in percentage points, for printing after "+-". */
double stat_share_pct_error(double hits, double n);

/*
 * The 95 % interval of a sum that was estimated from samples, where @variance is the estimate of
 * its variance. Sums of few samples are skewed, so the interval is that of a Poisson count with the
 * same relative variance (sum^2 / variance samples; Byar's approximation), scaled: one sample of
 * weight w gives 0.02 w .. 5.6 w, many give sum +- 1.96 sqrt(variance). variance 0: exact.
 */
struct stat_interval stat_estimate(double sum, double variance);
struct stat_interval stat_estimate_at(double sum, double variance, double z);
/* The larger half of that interval: sum +- this holds in at least 95 % of all cases. */
double stat_estimate_error(double sum, double variance);
/* Two-sided 95 % quantile of Student's t distribution; infinite for 0 degrees of freedom. */
double stat_t95(size_t degrees);
/* As stat_z_of_family, of Student's t distribution with @degrees > 0 degrees of freedom. */
double stat_t_of_family(size_t nr, double degrees);

/* Logarithmic derivative of the gamma function, and the derivative of that; @x > 0. */
double stat_digamma(double x);
double stat_trigamma(double x);

#endif
