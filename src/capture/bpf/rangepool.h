/*
 * Allocator of index ranges in an array (the arrays of kerneltables.h): first fit; a freed range
 * merges with its free neighbours.
 */
#ifndef ASSAY_CAPTURE_BPF_RANGEPOOL_H
#define ASSAY_CAPTURE_BPF_RANGEPOOL_H

#include "base/base.h"
#include "base/vec.h"

struct rangepool_gap {
	uint32_t start;
	uint32_t n;
};

struct rangepool {
	VEC(struct rangepool_gap) gaps; /* free ranges, sorted by start, not adjacent */
	uint32_t nr_used;
};

/* Initializes a pool in which all of [start, start + n) is free. */
void rangepool_init(struct rangepool *p, uint32_t start, uint32_t n);
void rangepool_release(struct rangepool *p);
/* Allocates @n elements; false: no free range is long enough. @n may be 0: an empty range. */
bool rangepool_alloc(struct rangepool *p, uint32_t n, uint32_t *ret_start);
/* Frees a range. */
void rangepool_free(struct rangepool *p, uint32_t start, uint32_t n);

#endif
