/*
 * Sampling by allocated bytes, and the set of sampled blocks: a free is recorded if its block is in
 * the set.
 *
 * Each thread draws sample points in the sequence of bytes that it allocates, with exponentially
 * distributed distances of interval_bytes on average. A block smaller than interval_bytes is sampled
 * if a point falls into it, so P(sampled) = 1 - exp(-size / interval_bytes), independent of earlier
 * allocations. Larger blocks are always sampled.
 */
#ifndef ASSAY_INJECT_HEAP_SAMPLE_H
#define ASSAY_INJECT_HEAP_SAMPLE_H

#include "heap_recorder.h"

/* Draws the distance in bytes to the next sample point, at least 1. */
int64_t sample_draw(struct heap_thread_state *m, uint64_t interval_bytes);
/* Called when a block reached the sample point: draws the next one. Returns true. */
bool sample_next_point(struct heap_thread_state *m, uint64_t interval_bytes);

/* Returns whether a block of @size bytes is sampled; advances the countdown. */
static inline bool sample_is_chosen(struct heap_thread_state *m, uint64_t interval_bytes,
				    uint64_t size)
{
	if (size >= m->always_bytes)
		return true;
	m->countdown -= (int64_t)size;
	return m->countdown <= 0 && sample_next_point(m, interval_bytes);
}

/* Adds a block to the set. False: the set is full. */
bool blocks_add(const struct heap_local *l, uint64_t block);
/* Removes a block; returns whether it was in the set. */
bool blocks_remove(const struct heap_local *l, uint64_t block);

/* Uses the high bits of the product: blocks at multiples of a large power of two differ there. */
static inline uint32_t blocks_hash(const struct heap_local *l, uint64_t block)
{
	return ((uint32_t)(block >> 4) * HASH_32 >> 16) & (l->nr_blocks - 1);
}

/* False: the block is not in the set. Reads one bit of a filter small enough to stay in L1. */
static inline bool blocks_may_have(const struct heap_local *l, uint64_t block)
{
	uint32_t bit = blocks_hash(l, block);
	uint64_t blocks = ONCE(l->blocks);

	return blocks && ((const uint8_t *)blocks)[bit / 8] >> bit % 8 & 1;
}

#endif
