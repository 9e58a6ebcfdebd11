/* Guesses of values from what was seen before; see pagerow.h. */
#include "base/base.h"
#include "format/page/pagerow.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"

#define VALUES_MAX 64 /* of a key */

void guess_release(struct guess *g)
{
	map_release(&g->first);
	vec_release(&g->entries);
	free(g->recent);
}

static uint32_t first_of(const struct guess *g, uint64_t key)
{
	const uint32_t *at = map_get(&g->first, key);
	return at ? *at : 0;
}

uint32_t guess_code(struct guess *g, uint64_t key, uint32_t value, bool *ret_is_new)
{
	uint32_t code = 0;
	if (!g->recent)
		g->recent = xcalloc(GUESS_RECENT, sizeof(*g->recent));
	struct guess_recent *recent = &g->recent[key & (GUESS_RECENT - 1)];
	if (LIKELY(recent->key == key && recent->value == value && recent->code)) {
		*ret_is_new = false;
		return recent->code - 1;
	}
	for (uint32_t at = first_of(g, key); at; at = g->entries.p[at - 1].next, code++) {
		if (g->entries.p[at - 1].value != value)
			continue;
		*recent = (struct guess_recent){key, value, code + 1};
		*ret_is_new = false;
		return code;
	}
	*ret_is_new = true;
	guess_add(g, key, value);
	return code;
}

bool guess_value(const struct guess *g, uint64_t key, uint32_t code, uint32_t *ret_value)
{
	uint32_t at = first_of(g, key);
	while (at && code--)
		at = g->entries.p[at - 1].next;
	if (at)
		*ret_value = g->entries.p[at - 1].value;
	return at != 0;
}

void guess_add(struct guess *g, uint64_t key, uint32_t value)
{
	uint32_t at = first_of(g, key);
	uint32_t last = 0;
	unsigned nr = 0;
	for (; at; at = g->entries.p[at - 1].next, nr++)
		last = at;
	if (nr >= VALUES_MAX)
		return;
	vec_push(&g->entries, (struct guess_entry){.value = value});
	if (last)
		g->entries.p[last - 1].next = (uint32_t)g->entries.n;
	else
		*map_put(&g->first, key, NULL) = (uint32_t)g->entries.n;
}

void pagerow_keys_release(struct pagerow_keys *k)
{
	map_release(&k->objects);
	map_release(&k->wakers);
}

static uint64_t number_of(struct map *numbers, uint32_t id)
{
	bool is_new;
	uint32_t *nr = map_put(numbers, id, &is_new);
	if (is_new)
		*nr = (uint32_t)numbers->n;
	return *nr;
}

uint64_t pagerow_tag_key(struct pagerow_keys *k, const struct pagefile_stream *s, size_t i)
{
	if (!s->state)
		return 0;
	uint64_t texts =
		number_of(&k->objects, s->object[i]) << 32 | number_of(&k->wakers, s->waker[i]);
	return hash_mix(texts, (uint64_t)s->state[i] << 8 | s->log2_ns[i]);
}

int64_t pagerow_predicted(const struct table *t, uint32_t column, const struct pagefile_stream *s,
			  size_t i)
{
	if (!column)
		return (int64_t)s->count[i];
	if (t->columns[column].is_level)
		return (int64_t)(s->weight[i] / MAX(s->count[i], (uint64_t)1));
	return column == t->weight_column ? (int64_t)s->weight[i] : 0;
}
