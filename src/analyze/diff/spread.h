/*
 * How much amounts vary between runs of the same program, beyond what sampling explains.
 *
 * A few runs estimate the variance of one function badly: with three runs on each side it has four
 * degrees of freedom, and intervals that shall hold for hundreds of functions together become
 * useless. But functions of one program vary alike: the ratio of the variance between runs to that
 * of sampling is distributed around a common value. As in G. K. Smyth, "Linear models and empirical
 * Bayes methods" (2004), that distribution is fitted (its mean and its degrees of freedom) and the
 * variance of each function is the weighted mean of its own and the common one. It is never taken
 * to be less than sampling explains.
 *
 *	struct spread s;
 *	spread_fit(&s, rows, n, 4);
 *	t = stat_t_of_family(n, spread_degrees(&s));
 *	half = t * sqrt(spread_variance(&s, &rows[i]) * (1.0 / 3 + 1.0 / 3))
 */
#ifndef ASSAY_ANALYZE_DIFF_SPREAD_H
#define ASSAY_ANALYZE_DIFF_SPREAD_H

#include "base/base.h"

struct spread_row {
	double between;    /* variance between runs, within each side */
	double sampling;   /* variance of one run that sampling causes; 0: exact numbers */
	double nr_samples; /* of all runs */
};

struct spread {
	double degrees;       /* of the runs: their number less one for each side */
	double prior_degrees; /* of the common ratio; 0: none */
	double prior_ratio;
};

/* @degrees: at least 1. */
void spread_fit(struct spread *ret_s, const struct spread_row *rows, size_t n, size_t degrees);
/* Degrees of freedom of the variances. */
double spread_degrees(const struct spread *s);
/* Variance of the amount of one run. */
double spread_variance(const struct spread *s, const struct spread_row *row);

#endif
