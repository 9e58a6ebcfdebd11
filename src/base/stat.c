/* Statistics; see stat.h. */
#include "base/base.h"
#include "base/stat.h"

#include <math.h>
#include <stdlib.h>

void stat_add(struct stat_run *r, double v)
{
	r->n++;
	double delta = v - r->mean;
	r->mean += delta / (double)r->n;
	r->m2 += delta * (v - r->mean);
	if (r->n == 1 || v < r->min)
		r->min = v;
	if (r->n == 1 || v > r->max)
		r->max = v;
}

double stat_stddev(const struct stat_run *r)
{
	return r->n < 2 ? 0 : sqrt(r->m2 / (double)(r->n - 1));
}

double stat_mean(const double *v, size_t n)
{
	struct stat_run r = {0};
	for (size_t i = 0; i < n; i++)
		stat_add(&r, v[i]);
	return n ? r.mean : NAN;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;
	return (x > y) - (x < y);
}

double stat_quantile(double *v, size_t n, double q)
{
	if (!n)
		return NAN;
	qsort(v, n, sizeof(*v), compare_doubles);
	double at = MIN(MAX(q, 0.0), 1.0) * (double)(n - 1);
	size_t i = (size_t)at;
	if (i + 1 >= n)
		return v[n - 1];
	return v[i] + (at - (double)i) * (v[i + 1] - v[i]);
}

double stat_median(double *v, size_t n)
{
	return stat_quantile(v, n, 0.5);
}

struct stat_interval stat_wilson(double hits, double n, double z)
{
	if (!(n > 0))
		return (struct stat_interval){0, 1};
	double p = MIN(MAX(hits / n, 0.0), 1.0);
	double z2 = z * z;
	double mid = (p + z2 / (2 * n)) / (1 + z2 / n);
	double half = z / (1 + z2 / n) * sqrt(p * (1 - p) / n + z2 / (4 * n * n));
	return (struct stat_interval){MAX(mid - half, 0.0), MIN(mid + half, 1.0)};
}

double stat_share_pct_error(double hits, double n)
{
	struct stat_interval i = stat_wilson(hits, n, STAT_Z95);
	return (i.high - i.low) * 50;
}
