/*
 * Durations by log2 class: counts and sums per class, quantiles interpolated within the class.
 *
 * Class k holds durations of [2^k, 2^(k+1)) ns. Within a class durations are taken to be spread so
 * that their mean is the class's own (its sum over its count): a class whose mean is near its lower
 * end bends towards it.
 */
#ifndef ASSAY_ANALYZE_WAIT_QUANTILE_H
#define ASSAY_ANALYZE_WAIT_QUANTILE_H

#include "base/base.h"

#define QUANTILE_CLASSES 64

struct quantile {
	uint64_t nr[QUANTILE_CLASSES];
	uint64_t ns[QUANTILE_CLASSES];
	uint64_t nr_all;
	uint64_t ns_all;
	uint64_t longest_ns;
};

/* @log2_ns LOG2_NONE: the class of the mean. longest_ns may be 0 where it is not known. */
void quantile_add(struct quantile *q, unsigned log2_ns, uint64_t nr, uint64_t ns,
		  uint64_t longest_ns);
void quantile_merge(struct quantile *to, const struct quantile *from);
uint64_t quantile_mean(const struct quantile *q);
/* @share 0..1; 0 for nothing. */
uint64_t quantile_at(const struct quantile *q, double share);

#endif
