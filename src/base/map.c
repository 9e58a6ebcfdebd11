/* Hash map; see map.h. */
#include "base/base.h"
#include "base/map.h"

#include "base/hash.h"
#include "base/mem.h"

void map_release(struct map *m)
{
	free(m->slots);
	*m = (struct map){0};
}

void map_clear(struct map *m)
{
	if (m->cap)
		memset(m->slots, 0, m->cap * sizeof(*m->slots));
	m->n = 0;
}

static size_t find(const struct map *m, uint64_t key)
{
	size_t i = hash_u64(key) & (m->cap - 1);
	while (m->slots[i].is_used && m->slots[i].key != key)
		i = (i + 1) & (m->cap - 1);
	return i;
}

static void grow(struct map *m)
{
	struct map old = *m;
	m->cap = old.cap ? old.cap * 2 : 16;
	m->slots = xcalloc(m->cap, sizeof(*m->slots));
	for (size_t i = 0; i < old.cap; i++)
		if (old.slots[i].is_used)
			m->slots[find(m, old.slots[i].key)] = old.slots[i];
	free(old.slots);
}

uint32_t *map_get(const struct map *m, uint64_t key)
{
	if (!m->n)
		return NULL;
	size_t i = find(m, key);
	return m->slots[i].is_used ? &m->slots[i].value : NULL;
}

uint32_t *map_put(struct map *m, uint64_t key, bool *ret_is_new)
{
	if ((m->n + 1) * 4 > m->cap * 3)
		grow(m);
	size_t i = find(m, key);
	bool is_new = !m->slots[i].is_used;
	if (is_new) {
		m->slots[i] = (struct map_slot){key, 0, 1};
		m->n++;
	}
	if (ret_is_new)
		*ret_is_new = is_new;
	return &m->slots[i].value;
}

bool map_del(struct map *m, uint64_t key)
{
	if (!m->n)
		return false;
	size_t hole = find(m, key);
	if (!m->slots[hole].is_used)
		return false;
	size_t mask = m->cap - 1;
	for (size_t i = (hole + 1) & mask; m->slots[i].is_used; i = (i + 1) & mask) {
		size_t home = hash_u64(m->slots[i].key) & mask;
		/* Move an entry back unless its preferred slot lies after the hole. */
		if (((i - home) & mask) >= ((i - hole) & mask)) {
			m->slots[hole] = m->slots[i];
			hole = i;
		}
	}
	m->slots[hole].is_used = 0;
	m->n--;
	return true;
}

bool map_next(const struct map *m, size_t *it, uint64_t *ret_key, uint32_t *ret_value)
{
	for (; *it < m->cap; (*it)++) {
		if (m->slots[*it].is_used) {
			*ret_key = m->slots[*it].key;
			*ret_value = m->slots[*it].value;
			(*it)++;
			return true;
		}
	}
	return false;
}
