#include "base/base.h"
#include "unwind/space.h"

#include <stdlib.h>

#include "base/mem.h"

/* 0 is never used: it marks empty cache entries. */
static void new_generation(struct spaces *s, struct space *sp)
{
	if (++s->next_generation == 0)
		s->next_generation = 1;
	sp->generation = s->next_generation;
	sp->last_idx = 0;
}

static void drop_maps(struct space *sp)
{
	if (!sp->nr_sharers) {
		vec_release(&sp->maps);
	} else if (--*sp->nr_sharers == 0) {
		free(sp->nr_sharers);
		vec_release(&sp->maps);
	}
	sp->nr_sharers = NULL;
	sp->maps.p = NULL;
	sp->maps.n = sp->maps.cap = 0;
}

/* Copies a shared list of mappings before it is changed. */
static void unshare(struct space *sp)
{
	if (!sp->nr_sharers)
		return;
	if (*sp->nr_sharers == 1) {
		free(sp->nr_sharers);
		sp->nr_sharers = NULL;
		return;
	}
	size_t n = sp->maps.n;
	struct space_map *copy = xreallocarray(NULL, n + 1, sizeof(*copy));
	if (n)
		memcpy(copy, sp->maps.p, n * sizeof(*copy));
	drop_maps(sp);
	sp->maps.p = copy;
	sp->maps.n = n;
	sp->maps.cap = n + 1;
}

static void share(struct space *to, struct space *from)
{
	if (!from->nr_sharers) {
		from->nr_sharers = xmalloc(sizeof(*from->nr_sharers));
		*from->nr_sharers = 1;
	}
	drop_maps(to);
	to->maps.p = from->maps.p;
	to->maps.n = from->maps.n;
	to->maps.cap = from->maps.cap;
	to->nr_sharers = from->nr_sharers;
	++*to->nr_sharers;
	to->generation = from->generation;
	to->last_idx = from->last_idx;
}

static void space_free(struct space *sp)
{
	if (!sp)
		return;
	drop_maps(sp);
	free(sp);
}

void spaces_release(struct spaces *s)
{
	vec_foreach(sp, &s->list)
		space_free(*sp);
	vec_release(&s->list);
	vec_release(&s->free_slots);
	map_release(&s->by_pid);
}

struct space *spaces_find(struct spaces *s, int32_t pid)
{
	uint32_t *idx = map_get(&s->by_pid, (uint32_t)pid);
	return idx ? s->list.p[*idx] : NULL;
}

struct space *spaces_get(struct spaces *s, int32_t pid)
{
	bool is_new;
	uint32_t *idx = map_put(&s->by_pid, (uint32_t)pid, &is_new);

	if (!is_new)
		return s->list.p[*idx];
	struct space *sp = xcalloc(1, sizeof(*sp));
	new_generation(s, sp);
	if (s->free_slots.n) {
		*idx = s->free_slots.p[--s->free_slots.n];
		s->list.p[*idx] = sp;
	} else {
		*idx = (uint32_t)s->list.n;
		vec_push(&s->list, sp);
	}
	return sp;
}

void spaces_fork(struct spaces *s, int32_t pid, int32_t ppid)
{
	struct space *from = spaces_find(s, ppid);

	if (pid == ppid)
		return;
	struct space *to = spaces_get(s, pid); /* replaces old mappings of a reused pid */
	if (from)
		share(to, from);
	else
		spaces_exec(s, pid);
}

void spaces_exec(struct spaces *s, int32_t pid)
{
	struct space *sp = spaces_get(s, pid);
	drop_maps(sp);
	new_generation(s, sp);
}

void spaces_exit(struct spaces *s, int32_t pid)
{
	uint32_t *idx = map_get(&s->by_pid, (uint32_t)pid);

	if (!idx)
		return;
	uint32_t slot = *idx;
	space_free(s->list.p[slot]);
	s->list.p[slot] = NULL;
	vec_push(&s->free_slots, slot);
	(void)map_del(&s->by_pid, (uint32_t)pid);
}

/* Returns the index of the first mapping that ends after @addr. */
static size_t first_after(const struct space *sp, uint64_t addr)
{
	return upper_bound(sp->maps.p, sp->maps.n, end, addr);
}

static void insert(struct space *sp, size_t at, const struct space_map *m)
{
	vec_reserve(&sp->maps, sp->maps.n + 1);
	memmove(&sp->maps.p[at + 1], &sp->maps.p[at], (sp->maps.n - at) * sizeof(*m));
	sp->maps.p[at] = *m;
	sp->maps.n++;
}

static void move_start(struct space_map *m, uint64_t start)
{
	m->pgoff += start - m->start;
	m->start = start;
}

/* Removes a range from the list; returns the index at which a mapping for it is inserted. */
static size_t clear_range(struct space *sp, uint64_t start, uint64_t end)
{
	size_t at = first_after(sp, start);

	if (at == sp->maps.n || sp->maps.p[at].start >= end)
		return at;
	struct space_map *m = &sp->maps.p[at];
	if (m->start < start && m->end > end) { /* in the middle: two parts remain */
		struct space_map right = *m;
		m->end = start;
		move_start(&right, end);
		insert(sp, at + 1, &right);
		return at + 1;
	}
	if (m->start < start) {
		m->end = start;
		at++;
	}
	size_t last = at;
	while (last < sp->maps.n && sp->maps.p[last].end <= end)
		last++;
	memmove(&sp->maps.p[at], &sp->maps.p[last], (sp->maps.n - last) * sizeof(*m));
	sp->maps.n -= last - at;
	if (at < sp->maps.n && sp->maps.p[at].start < end)
		move_start(&sp->maps.p[at], end);
	return at;
}

void space_add(struct spaces *s, struct space *sp, const struct space_map *m)
{
	if (m->start >= m->end)
		return;
	/* A mapping that is already there (reported by a snapshot and by an event) keeps the
	 * generation, so cache entries stay valid. */
	size_t at = first_after(sp, m->start);
	if (at < sp->maps.n) {
		const struct space_map *old = &sp->maps.p[at];
		if (old->start == m->start && old->end == m->end && old->pgoff == m->pgoff &&
		    old->bias == m->bias && old->module == m->module)
			return;
	}
	unshare(sp);
	at = clear_range(sp, m->start, m->end);
	if (sp->maps.n < SPACE_MAPS_MAX)
		insert(sp, at, m);
	else
		sp->nr_dropped++;
	new_generation(s, sp);
}

bool space_set_bias(struct spaces *s, struct space *sp, const struct unwind_module *module,
		    uint64_t (*bias)(const void *ctx, const struct space_map *m), const void *ctx)
{
	bool has_any = false;
	for (size_t i = 0; i < sp->maps.n; i++) {
		if (sp->maps.p[i].module != module)
			continue;
		if (!has_any)
			unshare(sp);
		has_any = true;
		sp->maps.p[i].bias = bias(ctx, &sp->maps.p[i]);
	}
	if (has_any)
		new_generation(s, sp);
	return has_any;
}

const struct space_map *space_find(struct space *sp, uint64_t addr)
{
	if (LIKELY(sp->last_idx < sp->maps.n)) {
		const struct space_map *m = &sp->maps.p[sp->last_idx];
		if (addr >= m->start && addr < m->end)
			return m;
	}
	size_t at = first_after(sp, addr);
	if (at == sp->maps.n || addr < sp->maps.p[at].start)
		return NULL;
	sp->last_idx = (uint32_t)at;
	return &sp->maps.p[at];
}
