/* Duration histogram with power-of-two buckets; see quantile.h. */
#include "base/base.h"
#include "analyze/wait/quantile.h"

#include <math.h>

static unsigned class_of(uint64_t ns)
{
	return ns ? 63u - (unsigned)__builtin_clzll(ns) : 0;
}

void quantile_add(struct quantile *q, unsigned log2_ns, uint64_t nr, uint64_t ns,
		  uint64_t longest_ns)
{
	q->nr_all += nr;
	q->ns_all += ns;
	/*
	 * A wait that was split at seconds is recorded in parts: it lasted longer than its longest
	 * part.
	 */
	if (longest_ns && nr)
		longest_ns = MAX(longest_ns, ns / nr);
	q->longest_ns = MAX(q->longest_ns, longest_ns);
	unsigned k = log2_ns < QUANTILE_BUCKETS ? log2_ns : class_of(nr ? ns / nr : ns);
	q->nr[k] += nr;
	q->ns[k] += ns;
}

void quantile_merge(struct quantile *to, const struct quantile *from)
{
	for (unsigned k = 0; k < QUANTILE_BUCKETS; k++) {
		to->nr[k] += from->nr[k];
		to->ns[k] += from->ns[k];
	}
	to->nr_all += from->nr_all;
	to->ns_all += from->ns_all;
	to->longest_ns = MAX(to->longest_ns, from->longest_ns);
}

uint64_t quantile_mean(const struct quantile *q)
{
	return q->nr_all ? q->ns_all / q->nr_all : 0;
}

/*
 * Within [lo, hi) the distribution is u -> lo + (hi - lo) * u^e with e chosen so that its mean,
 * lo + (hi - lo) / (e + 1), is the class's mean: uniform for a mean in the middle.
 */
static double within(double lo, double hi, double mean, double u)
{
	double m = (mean - lo) / (hi - lo);
	m = MIN(MAX(m, 0.0005), 0.9995);
	return lo + (hi - lo) * pow(u, 1 / m - 1);
}

uint64_t quantile_at(const struct quantile *q, double share)
{
	if (!q->nr_all)
		return 0;
	/* The rank-th of the sorted values; the values of a class are in the middle of their ranks. */
	double rank = MAX(ceil(share * (double)q->nr_all), 1);
	double below = 0;
	if (rank >= (double)q->nr_all && q->longest_ns)
		return q->longest_ns;
	for (unsigned k = 0; k < QUANTILE_BUCKETS; k++) {
		double nr = (double)q->nr[k];
		if (!q->nr[k] || below + nr < rank) {
			below += nr;
			continue;
		}
		if (q->nr[k] == 1) /* its value is known */
			return q->ns[k];
		double lo = k ? ldexp(1, (int)k) : 0;
		double hi = ldexp(1, (int)k + 1);
		if (q->longest_ns && (double)q->longest_ns < hi)
			hi = MAX((double)q->longest_ns, lo + 1);
		double v = within(lo, hi, (double)q->ns[k] / nr, (rank - below - 0.5) / nr);
		return q->longest_ns ? MIN((uint64_t)v, q->longest_ns) : (uint64_t)v;
	}
	return q->longest_ns;
}
