/* Variance between runs; see spread.h. */
#include "base/base.h"
#include "analyze/diff/spread.h"

#include <math.h>

#include "base/stat.h"

#define PRIOR_DEGREES_MAX 1000.0
#define NR_SAMPLES_MIN    30 /* the logarithm of a variance of few samples is far from normal */
#define NR_ROWS_MIN       5

/* The argument for which the trigamma function, which decreases, has value @y. */
static double inverse_trigamma(double y)
{
	double low = 1e-3;
	double high = PRIOR_DEGREES_MAX;
	for (int i = 0; i < 60; i++) {
		double mid = (low + high) / 2;
		*(stat_trigamma(mid) > y ? &low : &high) = mid;
	}
	return (low + high) / 2;
}

/* Moments of the logarithm of the ratios: mean and variance of Fisher's z distribution. */
static void fit_prior(struct spread *s, const struct spread_row *rows, size_t n)
{
	struct stat_run logs = {0};
	for (size_t i = 0; i < n; i++) {
		const struct spread_row *row = &rows[i];
		if (row->sampling > 0 && row->between > 0 && row->nr_samples >= NR_SAMPLES_MIN)
			stat_add(&logs, log(row->between / row->sampling));
	}
	if (logs.n < NR_ROWS_MIN)
		return;
	double half = s->degrees / 2;
	double mean = logs.mean - stat_digamma(half) + log(half);
	double sd = stat_stddev(&logs);
	double excess = sd * sd - stat_trigamma(half);
	double prior = excess > 0 ? 2 * inverse_trigamma(excess) : PRIOR_DEGREES_MAX;
	s->prior_degrees = MIN(prior, PRIOR_DEGREES_MAX);
	double prior_half = s->prior_degrees / 2;
	s->prior_ratio = exp(mean + stat_digamma(prior_half) - log(prior_half));
}

void spread_fit(struct spread *ret_s, const struct spread_row *rows, size_t n, size_t degrees)
{
	ASSERT(degrees);
	struct spread s = {.degrees = (double)degrees};
	fit_prior(&s, rows, n);
	*ret_s = s;
}

double spread_degrees(const struct spread *s)
{
	return s->degrees + s->prior_degrees;
}

double spread_variance(const struct spread *s, const struct spread_row *row)
{
	double sum = s->degrees * row->between + s->prior_degrees * s->prior_ratio * row->sampling;
	return MAX(sum / spread_degrees(s), row->sampling);
}
