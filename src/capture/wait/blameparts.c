/* Parts of waits; see blameparts.h. */
#include "base/base.h"
#include "capture/wait/blameparts.h"

#include <stdlib.h>

/* More parts than this of one wait are merged by cause. */
#define PARTS_MAX  192
#define CAUSES_MAX (PARTS_MAX / 2)

void blameparts_release(struct blameparts *p)
{
	vec_release(&p->v);
}

void blameparts_clear(struct blameparts *p)
{
	vec_clear(&p->v);
	p->is_merged = false;
}

static bool is_exact(const struct blame_part *p)
{
	return p->ns == p->end_ns - p->start_ns;
}

void blameparts_add(struct blameparts *to, const struct blame_culprit *c, uint64_t start_ns,
		    uint64_t end_ns, enum wait_reason doing, uint64_t ref)
{
	if (start_ns >= end_ns)
		return;
	vec_push(&to->v, (struct blame_part){start_ns, end_ns, end_ns - start_ns, ref, c->tgid,
					     c->tid, (uint8_t)doing, 1});
}

/* Makes the time of the parts from @first on @want_ns, by changing the longest ones. */
static void fit(struct blameparts *to, size_t first, uint64_t want_ns)
{
	uint64_t ns = 0;
	for (size_t i = first; i < to->v.n; i++)
		ns += to->v.p[i].ns;
	while (ns != want_ns) {
		struct blame_part *longest = &to->v.p[first];
		for (size_t i = first; i < to->v.n; i++)
			if (to->v.p[i].ns > longest->ns)
				longest = &to->v.p[i];
		uint64_t change = ns < want_ns ? want_ns - ns : MIN(ns - want_ns, longest->ns);
		longest->ns = ns < want_ns ? longest->ns + change : longest->ns - change;
		ns = ns < want_ns ? ns + change : ns - change;
	}
}

/* Cuts a part to [start, end); returns false if nothing is left. */
static bool clip(struct blame_part *p, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t whole_ns = p->end_ns - p->start_ns;
	bool was_exact = is_exact(p);
	if (p->start_ns >= end_ns || p->end_ns <= start_ns)
		return false;
	p->start_ns = MAX(p->start_ns, start_ns);
	p->end_ns = MIN(p->end_ns, end_ns);
	uint64_t some_ns = p->end_ns - p->start_ns;
	if (was_exact)
		p->ns = some_ns;
	else if (some_ns != whole_ns)
		p->ns = (uint64_t)((unsigned __int128)p->ns * some_ns / whole_ns);
	return true;
}

/* Adds what the parts have in [start, end), with @nr_steps more steps; their sum is exact. */
void blameparts_add_clipped(struct blameparts *to, const struct blame_part *from, uint32_t nr,
			    bool is_merged, uint64_t start_ns, uint64_t end_ns, unsigned nr_steps)
{
	size_t first = to->v.n;
	size_t i = is_merged ? 0 : upper_bound(from, nr, end_ns, start_ns);
	if (start_ns >= end_ns)
		return;
	to->is_merged |= is_merged;
	for (; i < nr && from[i].start_ns < end_ns; i++) {
		struct blame_part p = from[i];
		if (!clip(&p, start_ns, end_ns))
			continue;
		p.nr_steps = (uint8_t)MIN(p.nr_steps + nr_steps, UINT8_MAX);
		vec_push(&to->v, p);
	}
	struct blame_culprit unknown = {0};
	if (to->v.n > first)
		fit(to, first, end_ns - start_ns);
	else
		blameparts_add(to, &unknown, start_ns, end_ns, WAIT_UNKNOWN, 0);
}

static int by_cause(const void *x, const void *y)
{
	const struct blame_part *a = x;
	const struct blame_part *b = y;
	return COMPARE(a->tid, b->tid)
		       ?: COMPARE(a->doing, b->doing)
		       ?: COMPARE(a->ref, b->ref)
		       ?: COMPARE(a->nr_steps, b->nr_steps);
}

static int by_cause_and_start(const void *x, const void *y)
{
	const struct blame_part *a = x;
	const struct blame_part *b = y;
	return by_cause(x, y) ?: COMPARE(a->start_ns, b->start_ns);
}

static int by_start(const void *x, const void *y)
{
	const struct blame_part *a = x;
	const struct blame_part *b = y;
	return COMPARE(a->start_ns, b->start_ns) ?: by_cause(x, y);
}

static int by_longest(const void *x, const void *y)
{
	const struct blame_part *a = x;
	const struct blame_part *b = y;
	return COMPARE(b->ns, a->ns) ?: by_cause_and_start(x, y);
}

/* Merges parts of equal cause, wherever they are; of too many causes, the shortest are unknown. */
void blameparts_merge(struct blameparts *parts)
{
	struct blame_part *v = parts->v.p;
	size_t n = 0;
	if (parts->v.n < 2)
		return;
	qsort(v, parts->v.n, sizeof(*v), by_cause_and_start);
	for (size_t i = 0; i < parts->v.n; i++) {
		struct blame_part p = v[i];
		if (n && !by_cause(&v[n - 1], &p)) {
			v[n - 1].end_ns = MAX(v[n - 1].end_ns, p.end_ns);
			v[n - 1].ns += p.ns;
			continue;
		}
		v[n++] = p;
	}
	qsort(v, n, sizeof(*v), by_longest);
	for (size_t i = CAUSES_MAX; i < n; i++) {
		struct blame_part *rest = &v[CAUSES_MAX - 1];
		rest->start_ns = MIN(rest->start_ns, v[i].start_ns);
		rest->end_ns = MAX(rest->end_ns, v[i].end_ns);
		rest->ns += v[i].ns;
		rest->ref = 0;
		rest->tid = rest->tgid = 0;
		rest->doing = WAIT_UNKNOWN;
	}
	parts->v.n = MIN(n, CAUSES_MAX);
	parts->is_merged = true;
}

/* Merges neighbours of equal cause, and everything by cause if there are too many parts. */
void blameparts_shorten(struct blameparts *parts)
{
	struct blame_part *v = parts->v.p;
	size_t n = 0;
	for (size_t i = 0; i < parts->v.n; i++) {
		struct blame_part *last = n ? &v[n - 1] : NULL;
		if (last && !by_cause(last, &v[i]) && last->end_ns == v[i].start_ns &&
		    is_exact(last) && is_exact(&v[i])) {
			last->end_ns = v[i].end_ns;
			last->ns += v[i].ns;
			continue;
		}
		v[n++] = v[i];
	}
	parts->v.n = n;
	if (n <= PARTS_MAX)
		return;
	blameparts_merge(parts);
	qsort(v, parts->v.n, sizeof(*v), by_start);
}
