/*
 * See heap_sample.h.
 *
 * The set: 8-byte words in buckets of one cache line, found by a hash; when a bucket is full, its
 * neighbour is used. The filter has one bit per hash, set while a block with that hash is in the
 * set. A thread that removes the last such block clears the bit and then searches the set again,
 * because another thread may have added one meanwhile.
 */
#include "heap_sample.h"

#define BUCKET_WORDS 8u
#define LN2_32       2977044472u /* ln 2 * 2^32 */
#define LOG_BITS     32

__extension__ typedef unsigned __int128 u128;

/* -log2(u / 2^64) * 2^32 for u > 0; each squaring gives one binary digit of the logarithm. */
static uint64_t minus_log2(uint64_t u)
{
	uint32_t nr_zeros = (uint32_t)__builtin_clzll(u);
	uint64_t x = u << nr_zeros; /* [1, 2) * 2^63 */
	uint64_t frac = 0;

	for (int i = 0; i < LOG_BITS; i++) {
		x = (uint64_t)((u128)x * x >> 64);
		uint64_t bit = x >> 63;
		frac = frac << 1 | bit;
		x <<= 1 - bit;
	}
	return ((uint64_t)(nr_zeros + 1) << LOG_BITS) - frac;
}

int64_t sample_draw(struct heap_thread_state *m, uint64_t interval_bytes)
{
	m->rng += 0x9e3779b97f4a7c15u;
	uint64_t z = m->rng;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	z ^= z >> 31;
	uint64_t ln = (uint64_t)((u128)minus_log2(z | 1) * LN2_32 >> 32);
	uint64_t bytes = (uint64_t)((u128)ln * interval_bytes >> LOG_BITS);
	return bytes < INT64_MAX ? (int64_t)bytes + 1 : INT64_MAX;
}

NOINLINE bool sample_next_point(struct heap_thread_state *m, uint64_t interval_bytes)
{
	/* The distribution is memoryless: the rest of this block after the point is ignored. */
	m->countdown = sample_draw(m, interval_bytes);
	return true;
}

static uint64_t *bucket(const struct heap_local *l, uint32_t hash, uint32_t which)
{
	uint64_t *words = (uint64_t *)(l->blocks + l->nr_blocks / 8);
	return words + ((hash & ~(BUCKET_WORDS - 1)) ^ which * BUCKET_WORDS);
}

static bool has_hash(const struct heap_local *l, uint32_t hash)
{
	for (uint32_t which = 0; which < 2; which++) {
		uint64_t *b = bucket(l, hash, which);
		for (uint32_t i = 0; i < BUCKET_WORDS; i++) {
			uint64_t v = __atomic_load_n(&b[i], __ATOMIC_RELAXED);
			if (v && blocks_hash(l, v) == hash)
				return true;
		}
	}
	return false;
}

static void set_bit(const struct heap_local *l, uint32_t hash)
{
	__atomic_fetch_or(&((uint8_t *)l->blocks)[hash / 8], (uint8_t)(1u << hash % 8),
			  __ATOMIC_SEQ_CST);
}

bool blocks_add(const struct heap_local *l, uint64_t block)
{
	uint32_t hash = blocks_hash(l, block);

	for (uint32_t which = 0; which < 2; which++) {
		uint64_t *b = bucket(l, hash, which);
		for (uint32_t i = 0; i < BUCKET_WORDS; i++) {
			uint64_t v = __atomic_load_n(&b[i], __ATOMIC_RELAXED);
			if (v != block &&
			    (v || !__atomic_compare_exchange_n(&b[i], &v, block, false,
							       __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)))
				continue;
			set_bit(l, hash);
			return true;
		}
	}
	return false;
}

static bool remove_word(const struct heap_local *l, uint32_t hash, uint64_t block)
{
	for (uint32_t which = 0; which < 2; which++) {
		uint64_t *b = bucket(l, hash, which);
		for (uint32_t i = 0; i < BUCKET_WORDS; i++) {
			uint64_t v = __atomic_load_n(&b[i], __ATOMIC_RELAXED);
			if (v == block &&
			    __atomic_compare_exchange_n(&b[i], &v, 0, false, __ATOMIC_SEQ_CST,
							__ATOMIC_RELAXED))
				return true;
		}
	}
	return false;
}

bool blocks_remove(const struct heap_local *l, uint64_t block)
{
	uint32_t hash = blocks_hash(l, block);

	if (!remove_word(l, hash, block))
		return false;
	if (has_hash(l, hash))
		return true;
	__atomic_fetch_and(&((uint8_t *)l->blocks)[hash / 8], (uint8_t) ~(1u << hash % 8),
			   __ATOMIC_SEQ_CST);
	if (has_hash(l, hash))
		set_bit(l, hash);
	return true;
}
