/* The table of live blocks; see heapblocks.h. */
#include "base/base.h"
#include "capture/heapblocks.h"

#include "base/hash.h"
#include "base/mem.h"

#define FIRST_LOG2 4
#define ADDR_MASK  (((uint64_t)1 << 48) - 1)

struct heapblock heapblock_make(uint64_t addr, uint64_t nr_bytes, uint32_t second)
{
	return (struct heapblock){
		.word0 = (addr & ADDR_MASK) | (uint64_t)(second >> 16) << 48,
		.word1 = (nr_bytes & ADDR_MASK) | (uint64_t)(second & 0xffff) << 48,
	};
}

void heapblocks_init(struct heapblocks *t, uint64_t max_bytes, uint64_t seed)
{
	*t = (struct heapblocks){.max_bytes = max_bytes, .seed = seed};
}

void heapblocks_release(struct heapblocks *t)
{
	for (size_t i = 0; i < HEAPBLOCKS_PARTS; i++)
		free(t->parts[i].slots);
	*t = (struct heapblocks){0};
}

/* Blocks are 8 bytes or more apart; neighbours go to different parts. */
static uint64_t hash_of(const struct heapblocks *t, uint64_t addr)
{
	return hash_mix(addr >> 3, t->seed);
}

static size_t part_idx(uint64_t hash)
{
	return hash >> (64 - HEAPBLOCKS_PARTS_LOG2);
}

static uint32_t slot_idx(const struct heapblocks_part *p, uint64_t hash)
{
	return (uint32_t)(hash << HEAPBLOCKS_PARTS_LOG2 >> (64 - p->log2));
}

void heapblocks_prefetch(const struct heapblocks *t, uint64_t addr)
{
	uint64_t hash = hash_of(t, addr);
	const struct heapblocks_part *p = &t->parts[part_idx(hash)];
	if (p->slots)
		__builtin_prefetch(&p->slots[slot_idx(p, hash)], 1);
}

struct heapblock *heapblocks_find(const struct heapblocks *t, uint64_t addr)
{
	uint64_t hash = hash_of(t, addr);
	const struct heapblocks_part *p = &t->parts[part_idx(hash)];
	if (!p->n || !addr)
		return NULL;
	uint32_t mask = (1u << p->log2) - 1;
	for (uint32_t i = slot_idx(p, hash);; i = (i + 1) & mask) {
		struct heapblock *b = &p->slots[i];
		if (heapblock_addr(b) == addr)
			return b;
		if (!b->word0)
			return NULL;
	}
}

static struct heapblock *place(const struct heapblocks *t, struct heapblocks_part *p, uint64_t addr)
{
	uint32_t mask = (1u << p->log2) - 1;
	uint32_t i = slot_idx(p, hash_of(t, addr));
	while (p->slots[i].word0)
		i = (i + 1) & mask;
	return &p->slots[i];
}

static bool grow(struct heapblocks *t, struct heapblocks_part *p)
{
	uint32_t log2 = p->slots ? p->log2 + 1 : FIRST_LOG2;
	uint64_t more = ((uint64_t)sizeof(struct heapblock) << log2);
	uint64_t less = p->slots ? (uint64_t)sizeof(struct heapblock) << p->log2 : 0;
	if (log2 > 31 || t->nr_bytes + more - less > t->max_bytes)
		return false;
	struct heapblocks_part bigger = {.n = p->n, .log2 = log2};
	bigger.slots = xcalloc((size_t)1 << log2, sizeof(struct heapblock));
	for (size_t i = 0; p->slots && i < (size_t)1 << p->log2; i++)
		if (p->slots[i].word0)
			*place(t, &bigger, heapblock_addr(&p->slots[i])) = p->slots[i];
	free(p->slots);
	*p = bigger;
	t->nr_bytes += more - less;
	return true;
}

struct heapblock *heapblocks_add(struct heapblocks *t, uint64_t addr)
{
	struct heapblocks_part *p = &t->parts[part_idx(hash_of(t, addr))];
	uint64_t cap = p->slots ? (uint64_t)1 << p->log2 : 0;
	if (p->n + 1 > cap / 4 * 3 && !grow(t, p) && p->n + 1 >= cap)
		return NULL;
	struct heapblock *b = place(t, p, addr);
	*b = heapblock_make(addr, 0, 0);
	p->n++;
	t->n++;
	return b;
}

void heapblocks_remove(struct heapblocks *t, struct heapblock *b)
{
	struct heapblocks_part *p = &t->parts[part_idx(hash_of(t, heapblock_addr(b)))];
	uint32_t mask = (1u << p->log2) - 1;
	uint32_t hole = (uint32_t)(b - p->slots);
	for (uint32_t i = (hole + 1) & mask; p->slots[i].word0; i = (i + 1) & mask) {
		uint32_t home = slot_idx(p, hash_of(t, heapblock_addr(&p->slots[i])));
		if (((i - home) & mask) >= ((i - hole) & mask)) {
			p->slots[hole] = p->slots[i];
			hole = i;
		}
	}
	p->slots[hole] = (struct heapblock){0};
	p->n--;
	t->n--;
}

const struct heapblock *heapblocks_next(const struct heapblocks *t, uint64_t *it)
{
	size_t part = (size_t)(*it >> 32);
	uint64_t i = *it & UINT32_MAX;
	for (; part < HEAPBLOCKS_PARTS; part++, i = 0) {
		const struct heapblocks_part *p = &t->parts[part];
		for (; p->slots && i < (uint64_t)1 << p->log2; i++) {
			if (!p->slots[i].word0)
				continue;
			*it = (uint64_t)part << 32 | (i + 1);
			return &p->slots[i];
		}
	}
	*it = (uint64_t)HEAPBLOCKS_PARTS << 32;
	return NULL;
}
