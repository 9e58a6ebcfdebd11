/*
 * Open-addressing hash map u64 -> u32 with linear probing and deletion by backward shift.
 * Any key is allowed. Start with {0}. Pointers returned by map_get/map_put stay valid until the
 * next map_put or map_del. map_next iterates in table order, which depends only on the sequence of
 * calls.
 */
#ifndef ASSAY_BASE_MAP_H
#define ASSAY_BASE_MAP_H

#include "base/base.h"

struct map_slot {
	uint64_t key;
	uint32_t value;
	uint32_t is_used;
};

struct map {
	struct map_slot *slots;
	size_t n;
	size_t cap; /* power of two, or 0 */
};

void map_release(struct map *m);
void map_clear(struct map *m);
/* Returns the address of the value, or NULL. */
uint32_t *map_get(const struct map *m, uint64_t key);
/* Finds or adds a key. A new value is 0; *ret_is_new (may be NULL) is set accordingly. */
uint32_t *map_put(struct map *m, uint64_t key, bool *ret_is_new) __attribute__((returns_nonnull));
/* Removes a key. Returns whether it was there. */
bool map_del(struct map *m, uint64_t key);
/* Iteration: start with *it = 0; returns false at the end. */
bool map_next(const struct map *m, size_t *it, uint64_t *ret_key, uint32_t *ret_value);

#endif
