/*
 * The table of live blocks: address -> what is known of it. Open addressing with linear probing, in
 * a thousand parts that grow singly, so that no growth takes longer than a ring lasts. 24 bytes a
 * block, at most three quarters full.
 *
 * A block that goes leaves its address behind, as allocators give out the same ones again: then it
 * is found where it was. A part that is full is made anew without those that stayed away.
 *
 * Looking blocks up is what pairing costs; heapblocks_prefetch some records ahead hides most of it.
 */
#ifndef ASSAY_CAPTURE_HEAP_BLOCKS_H
#define ASSAY_CAPTURE_HEAP_BLOCKS_H

#include "base/base.h"

#define HEAPBLOCKS_PARTS_LOG2 10
#define HEAPBLOCKS_PARTS      (1u << HEAPBLOCKS_PARTS_LOG2)

struct heapblock {
	uint64_t word0; /* address (48 bits), high bits of the second (16); 0 = free */
	uint64_t word1; /* bytes (48), low bits of the second (16) */
	uint32_t site;  /* HEAPBLOCK_GONE: the address alone */
	uint32_t stamp; /* a part of the time at which it was allocated */
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
/* Of the allocation, since the start. */
static inline uint32_t heapblock_second(const struct heapblock *b)
{
	return (uint32_t)(b->word0 >> 48) << 16 | (uint32_t)(b->word1 >> 48);
}
/* Inline: a copy of what another function wrote just now waits for it. */
static inline void heapblock_set(struct heapblock *b, uint64_t addr, uint64_t nr_bytes,
				 uint32_t second)
{
	b->word0 = (addr & HEAPBLOCK_MASK) | (uint64_t)(second >> 16) << 48;
	b->word1 = (nr_bytes & HEAPBLOCK_MASK) | (uint64_t)second << 48;
}

struct heapblocks_part {
	struct heapblock *slots; /* NULL until the first one */
	uint32_t nr_used;        /* gone ones too */
	uint32_t nr_live : 27;
	uint32_t log2 : 5;
};

struct heapblocks {
	struct heapblocks_part parts[HEAPBLOCKS_PARTS];
	uint64_t n;        /* live */
	uint64_t nr_bytes; /* of memory */
	uint64_t max_bytes;
	uint64_t seed;
};

/* @seed: of hashes; where addresses may be chosen by somebody, one that he does not know. */
void heapblocks_init(struct heapblocks *t, uint64_t max_bytes, uint64_t seed);
void heapblocks_release(struct heapblocks *t);
/* Of an address; the calls that take both are given what this says. */
uint64_t heapblocks_hash(const struct heapblocks *t, uint64_t addr);
void heapblocks_prefetch(const struct heapblocks *t, uint64_t hash);
/* Valid until the next call that is not a find; NULL: none. Address 0 is nobody's. */
struct heapblock *heapblocks_find(const struct heapblocks *t, uint64_t addr, uint64_t hash);
/*
 * The block of that address; if *ret_is_new, the caller is to fill it. NULL: it is new, and
 * max_bytes are used up.
 */
struct heapblock *heapblocks_put(struct heapblocks *t, uint64_t addr, uint64_t hash,
				 bool *ret_is_new);
void heapblocks_remove(struct heapblocks *t, struct heapblock *b, uint64_t hash);
/* Start with *it = 0; NULL at the end. */
const struct heapblock *heapblocks_next(const struct heapblocks *t, uint64_t *it);

#endif
