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

double stat_z_of_family(size_t nr)
{
	double tails = 0.05 / (double)MAX(nr, (size_t)1);
	double low = STAT_Z95;
	double high = 38; /* erfc(38 / sqrt(2)) is the smallest that a double holds */
	for (int i = 0; nr > 1 && i < 64; i++) {
		double mid = (low + high) / 2;
		*(erfc(mid / sqrt(2)) > tails ? &low : &high) = mid;
	}
	return low;
}

struct stat_interval stat_wilson(double hits, double n)
{
	return stat_wilson_at(hits, n, STAT_Z95);
}

struct stat_interval stat_wilson_at(double hits, double n, double z)
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
	struct stat_interval i = stat_wilson(hits, n);
	return (i.high - i.low) * 50;
}

struct stat_interval stat_estimate(double sum, double variance)
{
	return stat_estimate_at(sum, variance, STAT_Z95);
}

/* Exact quantiles of a Poisson count lie within 1 % of these from a count of 1 on. */
struct stat_interval stat_estimate_at(double sum, double variance, double z)
{
	if (!(sum > 0) || !(variance > 0))
		return (struct stat_interval){sum, sum};
	double n = sum * sum / variance;
	double down = 1 - 1 / (9 * n) - z / (3 * sqrt(n));
	double up = 1 - 1 / (9 * (n + 1)) + z / (3 * sqrt(n + 1));
	double low = down > 0 ? n * down * down * down : 0;
	double high = (n + 1) * up * up * up;
	return (struct stat_interval){sum * low / n, sum * high / n};
}

double stat_estimate_error(double sum, double variance)
{
	struct stat_interval r = stat_estimate(sum, variance);
	return MAX(r.high - sum, sum - r.low);
}

double stat_t95(size_t degrees)
{
	static const double few[] = {INFINITY, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447,
				     2.365,    2.306,  2.262, 2.228, 2.201, 2.179, 2.160,
				     2.145,    2.131,  2.120, 2.110, 2.101, 2.093, 2.086};
	if (degrees < ARRAY_LEN(few))
		return few[degrees];
	/* Cornish and Fisher's expansion: right to three digits from 10 on. */
	double z = STAT_Z95;
	double v = (double)degrees;
	double z3 = z * z * z;
	return z + (z3 + z) / (4 * v) + (5 * z3 * z * z + 16 * z3 + 3 * z) / (96 * v * v);
}

/* Asymptotic series (NIST DLMF 5.11.2, 5.15.8), whose argument is raised by recurrence first. */
double stat_digamma(double x)
{
	double sum = 0;
	for (; x < 10; x += 1)
		sum -= 1 / x;
	double r2 = 1 / (x * x);
	return sum + log(x) - 1 / (2 * x) - r2 * (1.0 / 12 - r2 * (1.0 / 120 - r2 / 252));
}

double stat_trigamma(double x)
{
	double sum = 0;
	for (; x < 10; x += 1)
		sum += 1 / (x * x);
	double r2 = 1 / (x * x);
	return sum + 1 / x + r2 / 2 + r2 / x * (1.0 / 6 - r2 * (1.0 / 30 - r2 / 42));
}

/* Continued fraction of the incomplete beta function (NIST DLMF 8.17.22), by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
	const double tiny = 1e-300;
	double c = 1;
	double d = 1 - (a + b) * x / (a + 1);
	d = 1 / (fabs(d) < tiny ? tiny : d);
	double f = d;
	for (int m = 1; m < 1000; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		for (int k = 0; k < 2; k++) {
			double term = k ? odd : even;
			d = 1 + term * d;
			c = 1 + term / c;
			d = 1 / (fabs(d) < tiny ? tiny : d);
			c = fabs(c) < tiny ? tiny : c;
			f *= c * d;
		}
		if (fabs(c * d - 1) < 1e-12)
			break;
	}
	return f;
}

/* The probability of |T| > t: the regularised incomplete beta function I_x(v/2, 1/2). */
static double t_tails(double t, double v)
{
	double x = v / (v + t * t);
	double a = v / 2;
	double front =
		exp(lgamma(a + 0.5) - lgamma(a) - lgamma(0.5) + a * log(x) + 0.5 * log1p(-x));
	if (x < (a + 1) / (a + 2.5))
		return front * beta_fraction(a, 0.5, x) / a;
	return 1 - front * beta_fraction(0.5, a, 1 - x) / 0.5;
}

double stat_t_of_family(size_t nr, double degrees)
{
	double tails = 0.05 / (double)MAX(nr, (size_t)1);
	double low = 1;
	double high = 1e9; /* searched by its logarithm */
	for (int i = 0; i < 100; i++) {
		double mid = sqrt(low * high);
		*(t_tails(mid, degrees) > tails ? &low : &high) = mid;
	}
	return low;
}
