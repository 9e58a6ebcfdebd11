/*
 * A hash table of live blocks, by address. Open addressing with linear probing, in 1024 parts that
 * grow independently, so that growing one takes less time than a ring takes to fill. 24 bytes per
 * block, at most three quarters full.
 *
 * Removing a block keeps its address in the table, because allocators reuse addresses: the next
 * block there is found in the same slot. When a part is full, it is rebuilt without the addresses
 * that were not reused.
 *
 * Most of the time to match frees with allocations is spent on cache misses of these lookups. So
 * call heapblocks_prefetch some records ahead.
 */
#ifndef ASSAY_CAPTURE_HEAP_BLOCKS_H
#define ASSAY_CAPTURE_HEAP_BLOCKS_H

#include "base/base.h"

#define HEAPBLOCKS_PARTS_LOG2 10
#define HEAPBLOCKS_PARTS      (1u << HEAPBLOCKS_PARTS_LOG2)

struct heapblock {
	uint64_t word0; /* address (48 bits) | high 16 bits of the tick << 48; 0 = free slot */
	uint64_t word1; /* bytes (48 bits) | low 16 bits of the tick << 48 */
	uint32_t site;  /* allocation site; HEAPBLOCK_GONE: removed, only the address is valid */
	uint32_t stamp; /* low bits of the allocation time */
};

#define HEAPBLOCK_GONE UINT32_MAX
#define HEAPBLOCK_MASK (((uint64_t)1 << 48) - 1)

static inline uint64_t heapblock_addr(const struct heapblock *b)
{
	return b->word0 & HEAPBLOCK_MASK;
}
static inline uint64_t heapblock_bytes(const struct heapblock *b)
{
	return b->word1 & HEAPBLOCK_MASK;
}
/* Tick (HEAP_TICK_NS) of the allocation, since the start of the capture. */
static inline uint32_t heapblock_tick(const struct heapblock *b)
{
	return (uint32_t)(b->word0 >> 48) << 16 | (uint32_t)(b->word1 >> 48);
}
/* Inline: avoids a store-forwarding stall when the block is copied. */
static inline void heapblock_set(struct heapblock *b, uint64_t addr, uint64_t nr_bytes,
				 uint32_t tick)
{
	b->word0 = (addr & HEAPBLOCK_MASK) | (uint64_t)(tick >> 16) << 48;
	b->word1 = (nr_bytes & HEAPBLOCK_MASK) | (uint64_t)tick << 48;
}

struct heapblocks_part {
	struct heapblock *slots; /* NULL while empty */
	uint32_t nr_used;        /* includes removed ones */
	uint32_t nr_live : 27;
	uint32_t log2 : 5;
};

struct heapblocks {
	struct heapblocks_part parts[HEAPBLOCKS_PARTS];
	uint64_t n;        /* live blocks */
	uint64_t nr_bytes; /* memory used by the table */
	uint64_t max_bytes;
	uint64_t seed;
};

/*
 * @max_bytes: limit of nr_bytes. @seed: of the hash; random, so that a target cannot choose
 * addresses that collide.
 */
void heapblocks_init(struct heapblocks *t, uint64_t max_bytes, uint64_t seed);
void heapblocks_release(struct heapblocks *t);
/* The hash of @addr, for calls that take both. */
uint64_t heapblocks_hash(const struct heapblocks *t, uint64_t addr);
void heapblocks_prefetch(const struct heapblocks *t, uint64_t hash);
/* Finds a live block; NULL: none. Valid until the next call that changes the table. @addr not 0. */
struct heapblock *heapblocks_find(const struct heapblocks *t, uint64_t addr, uint64_t hash);
/*
 * Finds or adds the block at @addr. If *ret_is_new, the caller fills it. NULL: the block is new,
 * but the table cannot grow beyond max_bytes.
 */
struct heapblock *heapblocks_put(struct heapblocks *t, uint64_t addr, uint64_t hash,
				 bool *ret_is_new);
void heapblocks_remove(struct heapblocks *t, struct heapblock *b, uint64_t hash);
/* Iterates over live blocks: start with *it = 0; NULL at the end. */
const struct heapblock *heapblocks_next(const struct heapblocks *t, uint64_t *it);

#endif
