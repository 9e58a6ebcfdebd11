/*
 * Who has which part of an array that is filled piece by piece (the maps that our programs read):
 * ranges of elements, first fit, freed ones merge with their neighbours.
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
	VEC(struct rangepool_gap) gaps; /* by start, none touches the next */
	uint32_t nr_used;
};

/* All of [start, start + n) is free. */
void rangepool_init(struct rangepool *p, uint32_t start, uint32_t n);
void rangepool_release(struct rangepool *p);
/* False when no gap is long enough. @n == 0 gives a range without elements. */
bool rangepool_take(struct rangepool *p, uint32_t n, uint32_t *ret_start);
void rangepool_give(struct rangepool *p, uint32_t start, uint32_t n);

#endif
