/*
 * Sampling by bytes, and the set of sampled blocks, by which their frees are told from others.
 *
 * Points are strewn over the bytes that a thread allocates, at random, one every interval on
 * average; a block is sampled if it has a point in it. So P(sampled) = 1 - exp(-size / interval),
 * whatever came before. Blocks of an interval or more are all sampled.
 */
#ifndef ASSAY_INJECT_HEAP_SAMPLE_H
#define ASSAY_INJECT_HEAP_SAMPLE_H

#include "heap_inner.h"

/* Bytes to the next point, at least 1. */
int64_t sample_draw(struct heap_memo *m, uint64_t interval_bytes);
bool sample_crosses(struct heap_memo *m, uint64_t interval_bytes);

/* Whether a block is recorded. */
static inline bool sample_takes(struct heap_memo *m, uint64_t interval_bytes, uint64_t size)
{
	if (size >= m->always)
		return true;
	m->countdown -= (int64_t)size;
	return m->countdown <= 0 && sample_crosses(m, interval_bytes);
}

/* False: no room. */
bool blocks_add(const struct heap_local *l, uint64_t block);
/* Whether it was in the set; it is not any more. */
bool blocks_take(const struct heap_local *l, uint64_t block);

/* The upper bits, in which blocks at multiples of a large distance differ, too. */
static inline uint32_t blocks_hash(const struct heap_local *l, uint64_t block)
{
	return ((uint32_t)(block >> 4) * HASH_32 >> 16) & (l->nr_blocks - 1);
}

/* False: certainly not in the set. One look at a few kilobytes that stay in the nearest cache. */
static inline bool blocks_may_have(const struct heap_local *l, uint64_t block)
{
	uint32_t bit = blocks_hash(l, block);
	uint64_t blocks = ONCE(l->blocks);

	return blocks && ((const uint8_t *)blocks)[bit / 8] >> bit % 8 & 1;
}

#endif
