/* Parts of waits; see blameparts.h. */
#include "base/base.h"
#include "capture/wait/blameparts.h"

#include <stdlib.h>

#include "base/hash.h"

/* More parts than this of one wait are merged by cause. */
#define PARTS_MAX  192
#define CAUSES_MAX (PARTS_MAX / 2)

/* ---- causes -------------------------------------------------------------------------------- */

void blamecauses_release(struct blamecauses *c)
{
	vec_release(&c->all);
	vec_release(&c->seen);
	map_release(&c->number_of);
	*c = (struct blamecauses){0};
}

static bool is_same(const struct blame_cause *a, const struct blame_cause *b)
{
	return a->ref == b->ref && a->tid == b->tid && a->doing == b->doing && a->tgid == b->tgid &&
	       a->direct_ref == b->direct_ref && a->direct_tid == b->direct_tid &&
	       a->direct_tgid == b->direct_tgid;
}

static uint32_t add_cause(struct blamecauses *c, const struct blame_cause *cause)
{
	vec_push(&c->all, *cause);
	(void)vec_add(&c->seen);
	return (uint32_t)c->all.n - 1;
}

uint32_t blamecauses_number(struct blamecauses *c, const struct blame_cause *cause)
{
	if (!c->all.n)
		(void)add_cause(c, &(struct blame_cause){.doing = WAIT_UNKNOWN});
	uint64_t hash = hash_mix(cause->ref, (uint64_t)(uint32_t)cause->tid << 8 | cause->doing);
	if (cause->direct_tid)
		hash = hash_mix(hash ^ cause->direct_ref, (uint32_t)cause->direct_tid);
	for (;; hash++) {
		bool is_new;
		uint32_t *at = map_put(&c->number_of, hash, &is_new);
		if (is_new)
			*at = add_cause(c, cause);
		if (is_same(&c->all.p[*at], cause))
			return *at;
	}
}

/* ---- parts --------------------------------------------------------------------------------- */

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
	struct blame_cause cause = {
		.ref = ref, .tgid = c->tgid, .tid = c->tid, .doing = (uint8_t)doing};
	vec_push(&to->v, (struct blame_part){start_ns, end_ns, end_ns - start_ns,
					     blamecauses_number(to->causes, &cause), 1});
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

/* Makes the part one of a thread that waited for @direct, which waited for the part's thread. */
static void add_step(struct blameparts *to, struct blame_part *p,
		     const struct blame_culprit *direct)
{
	struct blame_cause cause = to->causes->all.p[p->cause];
	cause.direct_ref = direct->ref;
	cause.direct_tgid = direct->tgid;
	cause.direct_tid = direct->tid;
	p->cause = blamecauses_number(to->causes, &cause);
	p->nr_steps = (uint8_t)MIN(p->nr_steps + 1, UINT8_MAX);
}

/* Adds what the parts have in [start, end); their sum is exact. */
void blameparts_add_clipped(struct blameparts *to, const struct blame_part *from, uint32_t nr,
			    bool is_merged, uint64_t start_ns, uint64_t end_ns,
			    const struct blame_culprit *direct)
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
		if (direct)
			add_step(to, &p, direct);
		vec_push(&to->v, p);
	}
	struct blame_culprit unknown = {0};
	if (to->v.n > first)
		fit(to, first, end_ns - start_ns);
	else
		blameparts_add(to, &unknown, start_ns, end_ns, WAIT_UNKNOWN, 0);
}

static int by_start(const void *x, const void *y)
{
	const struct blame_part *a = x;
	const struct blame_part *b = y;
	return COMPARE(a->start_ns, b->start_ns) ?: COMPARE(a->cause, b->cause);
}

static int by_longest(const void *x, const void *y)
{
	const struct blame_part *a = x;
	const struct blame_part *b = y;
	return COMPARE(b->ns, a->ns) ?: by_start(x, y);
}

static void merge_into(struct blame_part *to, const struct blame_part *p)
{
	to->start_ns = MIN(to->start_ns, p->start_ns);
	to->end_ns = MAX(to->end_ns, p->end_ns);
	to->ns += p->ns;
	to->nr_steps = MIN(to->nr_steps, p->nr_steps);
}

/* Of too many causes, keeps the longest. */
static void limit_causes(struct blameparts *parts)
{
	struct blame_part *v = parts->v.p;
	qsort(v, parts->v.n, sizeof(*v), by_longest);
	for (size_t i = CAUSES_MAX; i < parts->v.n; i++)
		merge_into(&v[CAUSES_MAX - 1], &v[i]);
	v[CAUSES_MAX - 1].cause = 0;
	parts->v.n = CAUSES_MAX;
}

void blameparts_merge(struct blameparts *parts)
{
	struct blame_part *v = parts->v.p;
	struct blamecauses *c = parts->causes;
	size_t n = 0;
	size_t longest = 0;
	if (parts->v.n < 2)
		return;
	c->nr_merges++;
	for (size_t i = 0; i < parts->v.n; i++) {
		struct blamecauses_seen *seen = &c->seen.p[v[i].cause];
		if (seen->merge != c->nr_merges) {
			*seen = (struct blamecauses_seen){c->nr_merges, (uint32_t)n};
			v[n++] = v[i];
		} else {
			merge_into(&v[seen->part], &v[i]);
		}
		if (v[seen->part].ns > v[longest].ns)
			longest = seen->part;
	}
	struct blame_part first = v[0];
	v[0] = v[longest];
	v[longest] = first;
	parts->v.n = n;
	parts->is_merged = true;
	if (n > CAUSES_MAX)
		limit_causes(parts);
}

void blameparts_shorten(struct blameparts *parts)
{
	struct blame_part *v = parts->v.p;
	size_t n = 0;
	for (size_t i = 0; i < parts->v.n; i++) {
		struct blame_part *last = n ? &v[n - 1] : NULL;
		if (last && last->cause == v[i].cause && last->end_ns == v[i].start_ns &&
		    is_exact(last) && is_exact(&v[i])) {
			merge_into(last, &v[i]);
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
