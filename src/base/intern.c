/* String interning; see intern.h. */
#include "base/base.h"
#include "base/intern.h"

#include "base/hash.h"

void intern_release(struct intern *t)
{
	arena_release(&t->text);
	vec_release(&t->strings);
	free(t->slots);
	*t = (struct intern){0};
}

static size_t find_slot(const struct intern *t, const char *p, size_t n)
{
	size_t i = hash_bytes(p, n) & (t->cap - 1);
	for (; t->slots[i]; i = (i + 1) & (t->cap - 1)) {
		struct sv s = t->strings.p[t->slots[i] - 1];
		if (s.n == n && !memcmp(s.p, p, n))
			break;
	}
	return i;
}

static void grow(struct intern *t)
{
	t->cap = t->cap ? t->cap * 2 : 64;
	free(t->slots);
	t->slots = xcalloc(t->cap, sizeof(*t->slots));
	for (size_t id = 1; id < t->strings.n; id++)
		t->slots[find_slot(t, t->strings.p[id].p, t->strings.p[id].n)] = (uint32_t)id + 1;
}

uint32_t intern_add(struct intern *t, const char *p, size_t n)
{
	if (!t->strings.n)
		vec_push(&t->strings, sv_from("", 0));
	if (!n)
		return 0;
	if ((t->strings.n + 1) * 4 > t->cap * 3)
		grow(t);
	size_t i = find_slot(t, p, n);
	if (!t->slots[i]) {
		ASSERT(t->strings.n < UINT32_MAX - 1);
		vec_push(&t->strings, sv_from(arena_strndup(&t->text, p, n), n));
		t->slots[i] = (uint32_t)t->strings.n;
	}
	return t->slots[i] - 1;
}

uint32_t intern_add_str(struct intern *t, const char *s)
{
	return intern_add(t, s, s ? strlen(s) : 0);
}

struct sv intern_get(const struct intern *t, uint32_t id)
{
	if (!id)
		return sv_from("", 0);
	ASSERT(id < t->strings.n);
	return t->strings.p[id];
}

const char *intern_str(const struct intern *t, uint32_t id)
{
	return intern_get(t, id).p;
}

size_t intern_count(const struct intern *t)
{
	return MAX(t->strings.n, 1);
}
