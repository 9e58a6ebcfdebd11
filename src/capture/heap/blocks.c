/* The hash table of live blocks; see blocks.h. */
#include "base/base.h"
#include "capture/heap/blocks.h"

#include "base/hash.h"
#include "base/mem.h"

#define FIRST_LOG2 4
#define LOG2_MAX   26

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

/* Blocks are at least 8 bytes apart; adjacent blocks are in different parts. */
uint64_t heapblocks_hash(const struct heapblocks *t, uint64_t addr)
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

void heapblocks_prefetch(const struct heapblocks *t, uint64_t hash)
{
	const struct heapblocks_part *p = &t->parts[part_idx(hash)];
	if (p->slots) {
		const struct heapblock *b = &p->slots[slot_idx(p, hash)];
		__builtin_prefetch(b, 1);
		__builtin_prefetch(b + 2, 1);
	}
}

/* The slot of that address, or the free slot that ends the probing; there always is one. */
static struct heapblock *look_for(const struct heapblocks_part *p, uint64_t addr, uint64_t hash)
{
	uint32_t mask = (1u << p->log2) - 1;
	for (uint32_t i = slot_idx(p, hash);; i = (i + 1) & mask) {
		struct heapblock *b = &p->slots[i];
		if (heapblock_addr(b) == addr || !b->word0)
			return b;
	}
}

static bool is_live(const struct heapblock *b)
{
	return b->word0 && b->site != HEAPBLOCK_GONE;
}

struct heapblock *heapblocks_find(const struct heapblocks *t, uint64_t addr, uint64_t hash)
{
	const struct heapblocks_part *p = &t->parts[part_idx(hash)];
	if (!p->slots || !addr)
		return NULL;
	struct heapblock *b = look_for(p, addr, hash);
	return is_live(b) ? b : NULL;
}

static uint64_t part_bytes(uint32_t log2)
{
	return (uint64_t)sizeof(struct heapblock) << log2;
}

static void rebuild(struct heapblocks *t, struct heapblocks_part *p, uint32_t log2)
{
	struct heapblocks_part fresh = {.nr_live = p->nr_live, .log2 = log2 & 31};
	fresh.slots = xcalloc((size_t)1 << log2, sizeof(struct heapblock));
	for (size_t i = 0; p->slots && i < (size_t)1 << p->log2; i++) {
		const struct heapblock *b = &p->slots[i];
		if (!is_live(b))
			continue;
		uint64_t addr = heapblock_addr(b);
		*look_for(&fresh, addr, heapblocks_hash(t, addr)) = *b;
		fresh.nr_used++;
	}
	t->nr_bytes += part_bytes(log2) - (p->slots ? part_bytes(p->log2) : 0);
	free(p->slots);
	*p = fresh;
}

/* Makes room for one more block: rebuilds the part without removed ones, or larger. */
static bool make_room(struct heapblocks *t, struct heapblocks_part *p)
{
	uint64_t cap = p->slots ? (uint64_t)1 << p->log2 : 0;
	uint32_t log2 = p->slots ? p->log2 + 1 : FIRST_LOG2;
	uint64_t more = part_bytes(log2) - (p->slots ? part_bytes(p->log2) : 0);
	bool can_grow = log2 <= LOG2_MAX && t->nr_bytes + more <= t->max_bytes;
	if (can_grow && p->nr_live >= cap / 2)
		rebuild(t, p, log2);
	else if (p->slots && p->nr_used - p->nr_live >= cap / 16)
		rebuild(t, p, p->log2);
	return p->slots && p->nr_used + 1 <= ((uint64_t)1 << p->log2) / 8 * 7;
}

struct heapblock *heapblocks_put(struct heapblocks *t, uint64_t addr, uint64_t hash,
				 bool *ret_is_new)
{
	struct heapblocks_part *p = &t->parts[part_idx(hash)];
	struct heapblock *b = p->slots ? look_for(p, addr, hash) : NULL;
	*ret_is_new = !b || !is_live(b);
	if (!*ret_is_new)
		return b;
	if (b && b->word0) {
		p->nr_live++;
		t->n++;
		return b;
	}
	uint64_t cap = p->slots ? (uint64_t)1 << p->log2 : 0;
	if (UNLIKELY(p->nr_used + 1 > cap / 4 * 3)) {
		if (!make_room(t, p))
			return NULL;
		b = look_for(p, addr, hash);
	}
	p->nr_used++;
	p->nr_live++;
	t->n++;
	return b;
}

void heapblocks_remove(struct heapblocks *t, struct heapblock *b, uint64_t hash)
{
	t->parts[part_idx(hash)].nr_live--;
	b->site = HEAPBLOCK_GONE;
	t->n--;
}

const struct heapblock *heapblocks_next(const struct heapblocks *t, uint64_t *it)
{
	size_t part = (size_t)(*it >> 32);
	uint64_t i = *it & UINT32_MAX;
	for (; part < HEAPBLOCKS_PARTS; part++, i = 0) {
		const struct heapblocks_part *p = &t->parts[part];
		for (; p->slots && i < (uint64_t)1 << p->log2; i++) {
			if (!is_live(&p->slots[i]))
				continue;
			*it = (uint64_t)part << 32 | (i + 1);
			return &p->slots[i];
		}
	}
	*it = (uint64_t)HEAPBLOCKS_PARTS << 32;
	return NULL;
}
