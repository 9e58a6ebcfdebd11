/*
 * Histogram of durations with power-of-two buckets: count and sum per bucket, quantiles
 * interpolated within a bucket.
 *
 * Bucket k holds durations of [2^k, 2^(k+1)) ns. Within a bucket, durations are assumed to be
 * distributed so that their mean is that of the bucket (its sum over its count): if the mean is
 * near the lower end, the interpolation is skewed towards it.
 */
#ifndef ASSAY_ANALYZE_WAIT_QUANTILE_H
#define ASSAY_ANALYZE_WAIT_QUANTILE_H

#include "base/base.h"

#define QUANTILE_BUCKETS 64

struct quantile {
	uint64_t nr[QUANTILE_BUCKETS];
	uint64_t ns[QUANTILE_BUCKETS];
	uint64_t nr_all;
	uint64_t ns_all;
	uint64_t longest_ns;
};

/* @log2_ns: the bucket; LOG2_NONE: that of the mean. @longest_ns: 0 if not known. */
void quantile_add(struct quantile *q, unsigned log2_ns, uint64_t nr, uint64_t ns,
		  uint64_t longest_ns);
void quantile_merge(struct quantile *to, const struct quantile *from);
uint64_t quantile_mean(const struct quantile *q);
/* Returns the quantile of @share, 0..1; 0 if the histogram is empty. */
uint64_t quantile_at(const struct quantile *q, double share);

#endif
