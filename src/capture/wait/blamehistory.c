/* Recent intervals of all threads; see blamehistory.h. */
#include "base/base.h"
#include "capture/wait/blamehistory.h"

#include <stdlib.h>

#include "base/mem.h"

/* ---- lists --------------------------------------------------------------------------------- */

/* Removes the first element; moves the rest down when half of the memory is unused. */
static void list_drop_first(struct blamehistory_list *l)
{
	l->head++;
	if (l->head < 32 || l->head < l->seqs.n / 2)
		return;
	l->seqs.n -= l->head;
	memmove(l->seqs.p, l->seqs.p + l->head, l->seqs.n * sizeof(*l->seqs.p));
	l->near -= MIN(l->near, l->head);
	l->head = 0;
}

static bool list_is_empty(const struct blamehistory_list *l)
{
	return l->head == l->seqs.n;
}

static void list_clear(struct blamehistory_list *l)
{
	vec_clear(&l->seqs);
	l->head = l->near = 0;
}

/* ---- life cycle ---------------------------------------------------------------------------- */

static bool is_power_of_two(uint64_t n)
{
	return n && !(n & (n - 1));
}

void blamehistory_init(struct blamehistory *h, uint64_t nr_intervals, uint64_t nr_parts)
{
	ASSERT(is_power_of_two(nr_intervals) && is_power_of_two(nr_parts));
	*h = (struct blamehistory){
		.nr_max = nr_intervals, .first = 1, .next = 1, .nr_parts_max = nr_parts};
	h->entries = xcalloc_huge(nr_intervals, sizeof(*h->entries));
	h->parts = xcalloc_huge(nr_parts, sizeof(*h->parts));
}

void blamehistory_release(struct blamehistory *h)
{
	vec_foreach(t, &h->threads)
		vec_release(&t->list.seqs);
	vec_foreach(o, &h->objects)
		vec_release(&o->list.seqs);
	vec_release(&h->threads);
	vec_release(&h->free_threads);
	vec_release(&h->objects);
	vec_release(&h->free_objects);
	map_release(&h->thread_of);
	map_release(&h->object_of);
	free(h->entries);
	free(h->parts);
	*h = (struct blamehistory){0};
}

/* ---- entries ------------------------------------------------------------------------------- */

static struct blamehistory_entry *entry_at(const struct blamehistory *h, uint64_t seq)
{
	return &h->entries[seq & (h->nr_max - 1)];
}

struct blamehistory_entry *blamehistory_get(const struct blamehistory *h, uint64_t seq)
{
	return seq >= h->first && seq < h->next ? entry_at(h, seq) : NULL;
}

struct blamehistory_entry *blamehistory_oldest_if_full(struct blamehistory *h)
{
	return h->next - h->first == h->nr_max ? entry_at(h, h->first) : NULL;
}

static uint32_t thread_put(struct blamehistory *h, int32_t tid)
{
	bool is_new;
	uint32_t *at = map_put(&h->thread_of, (uint32_t)tid, &is_new);
	if (!is_new)
		return *at;
	if (h->free_threads.n) {
		*at = h->free_threads.p[--h->free_threads.n];
	} else {
		*at = (uint32_t)h->threads.n;
		(void)vec_add(&h->threads);
	}
	struct blamehistory_thread *t = &h->threads.p[*at];
	t->tid = tid;
	/* What is known of a thread that was dropped before is that its intervals are old. */
	t->lost_ns = h->lost_ns;
	return *at;
}

static uint32_t object_put(struct blamehistory *h, uint64_t key, int32_t tid)
{
	bool is_new;
	uint32_t *at = map_put(&h->object_of, key, &is_new);
	if (!is_new)
		return *at;
	if (h->free_objects.n) {
		*at = h->free_objects.p[--h->free_objects.n];
	} else {
		*at = (uint32_t)h->objects.n;
		(void)vec_add(&h->objects);
	}
	struct blamehistory_object *o = &h->objects.p[*at];
	o->key = key;
	o->first_tid = tid;
	o->is_shared = false;
	return *at;
}

static void drop_from_thread(struct blamehistory *h, const struct blamehistory_entry *e)
{
	struct blamehistory_thread *t = &h->threads.p[e->thread];
	ASSERT(!list_is_empty(&t->list) && t->list.seqs.p[t->list.head] == h->first);
	list_drop_first(&t->list);
	t->lost_ns = MAX(t->lost_ns, e->v.on_ns);
	if (!list_is_empty(&t->list))
		return;
	list_clear(&t->list);
	vec_push(&h->free_threads, e->thread);
	(void)map_del(&h->thread_of, (uint32_t)e->v.tid);
}

/* The list is in the order of woken_ns, so an entry that was dropped need not be the first one. */
static void drop_from_object(struct blamehistory *h, const struct blamehistory_entry *e)
{
	struct blamehistory_object *o = &h->objects.p[e->object];
	while (!list_is_empty(&o->list) && o->list.seqs.p[o->list.head] <= h->first)
		list_drop_first(&o->list);
	if (!list_is_empty(&o->list) || o->key != e->object_key)
		return;
	list_clear(&o->list);
	vec_push(&h->free_objects, e->object);
	(void)map_del(&h->object_of, e->object_key);
	o->key = 0;
}

static void drop_first(struct blamehistory *h)
{
	struct blamehistory_entry *e = entry_at(h, h->first);
	h->lost_ns = MAX(h->lost_ns, e->v.on_ns);
	drop_from_thread(h, e);
	if (e->object_key)
		drop_from_object(h, e);
	h->first++;
}

/* Inserts by woken_ns: the order of entries is that of on_ns, which differs by wake-up latencies. */
static void add_wake(struct blamehistory *h, struct blamehistory_entry *e, uint64_t seq)
{
	e->object = object_put(h, e->object_key, e->v.tid);
	struct blamehistory_object *o = &h->objects.p[e->object];
	o->is_shared |= o->first_tid != e->v.tid;
	vec_push(&o->list.seqs, seq);
	uint64_t *p = o->list.seqs.p;
	for (size_t i = o->list.seqs.n - 1; i > o->list.head; i--) {
		const struct blamehistory_entry *before = blamehistory_get(h, p[i - 1]);
		if (!before || before->v.woken_ns <= e->v.woken_ns)
			break;
		p[i] = p[i - 1];
		p[i - 1] = seq;
	}
}

struct blamehistory_entry *blamehistory_add(struct blamehistory *h, const struct wait_interval *v,
					    uint64_t object_key)
{
	if (blamehistory_oldest_if_full(h))
		drop_first(h);
	uint64_t seq = h->next++;
	struct blamehistory_entry *e = entry_at(h, seq);
	*e = (struct blamehistory_entry){.v = *v, .object_key = object_key};
	e->thread = thread_put(h, v->tid);
	struct blamehistory_list *l = &h->threads.p[e->thread].list;
	e->prev = list_is_empty(l) ? 0 : *vec_last(&l->seqs);
	vec_push(&l->seqs, seq);
	if (object_key)
		add_wake(h, e, seq);
	return e;
}

/* ---- look-up ------------------------------------------------------------------------------- */

struct blamehistory_thread *blamehistory_thread(const struct blamehistory *h, int32_t tid)
{
	uint32_t *at = map_get(&h->thread_of, (uint32_t)tid);
	return at ? &h->threads.p[*at] : NULL;
}

uint64_t blamehistory_lost_ns(const struct blamehistory *h, const struct blamehistory_thread *t)
{
	return t ? t->lost_ns : h->lost_ns;
}

struct blamehistory_entry *blamehistory_before(const struct blamehistory *h,
					       const struct blamehistory_entry *e)
{
	return blamehistory_get(h, e->prev);
}

static uint64_t seq_of(const struct blamehistory *h, const struct blamehistory_entry *e)
{
	uint64_t at = (uint64_t)(e - h->entries);
	return h->first + ((at - h->first) & (h->nr_max - 1));
}

struct blamehistory_entry *blamehistory_after(const struct blamehistory *h,
					      const struct blamehistory_entry *e)
{
	const struct blamehistory_list *l = &h->threads.p[e->thread].list;
	size_t at =
		l->head + u64_lower_bound(l->seqs.p + l->head, l->seqs.n - l->head, seq_of(h, e));
	return at + 1 < l->seqs.n ? blamehistory_get(h, l->seqs.p[at + 1]) : NULL;
}

void blamehistory_lose(struct blamehistory *h, int32_t tid, uint64_t until_ns)
{
	uint32_t *at = map_get(&h->thread_of, (uint32_t)tid);
	if (at)
		h->threads.p[*at].lost_ns = MAX(h->threads.p[*at].lost_ns, until_ns);
}

enum time_of { TIME_ON, TIME_WOKEN };

/* Whether an element is dropped, which is before everything, or its time is not after @ns. */
static inline bool is_before(const struct blamehistory *h, uint64_t seq, enum time_of what,
			     uint64_t ns)
{
	const struct blamehistory_entry *e = blamehistory_get(h, seq);
	return !e || (what == TIME_ON ? e->v.on_ns : e->v.woken_ns) <= ns;
}

/*
 * Index of the first element whose time is after @ns. Searches from the last result outwards, since
 * waits are attributed in about the order of the lists.
 */
static inline size_t list_first_after(const struct blamehistory *h, struct blamehistory_list *l,
				      enum time_of what, uint64_t ns)
{
	const uint64_t *p = l->seqs.p;
	size_t lo = l->head;
	size_t hi = l->seqs.n;
	size_t at = MIN(MAX(l->near, lo), hi);
	if (at < hi && is_before(h, p[at], what, ns)) {
		lo = at + 1;
		for (size_t step = 1; lo < hi; step *= 2) {
			at = MIN(lo + step, hi) - 1;
			if (!is_before(h, p[at], what, ns)) {
				hi = at;
				break;
			}
			lo = at + 1;
		}
	} else {
		hi = at;
		for (size_t step = 1; lo < hi; step *= 2) {
			at = hi - MIN(step, hi - lo);
			if (is_before(h, p[at], what, ns)) {
				lo = at + 1;
				break;
			}
			hi = at;
		}
	}
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (is_before(h, p[mid], what, ns))
			lo = mid + 1;
		else
			hi = mid;
	}
	l->near = lo;
	return lo;
}

size_t blamehistory_first_after(const struct blamehistory *h, struct blamehistory_thread *t,
				uint64_t ns)
{
	return list_first_after(h, &t->list, TIME_ON, ns);
}

struct blamehistory_object *blamehistory_object(const struct blamehistory *h, uint64_t key)
{
	uint32_t *at = map_get(&h->object_of, key);
	return at ? &h->objects.p[*at] : NULL;
}

size_t blamehistory_first_wake_after(const struct blamehistory *h, struct blamehistory_object *o,
				     uint64_t ns)
{
	return list_first_after(h, &o->list, TIME_WOKEN, ns);
}

/* ---- parts --------------------------------------------------------------------------------- */

void blamehistory_set_parts(struct blamehistory *h, struct blamehistory_entry *e,
			    const struct blame_part *parts, uint32_t nr)
{
	uint64_t at = h->next_part & (h->nr_parts_max - 1);
	ASSERT(nr <= h->nr_parts_max);
	if (at + nr > h->nr_parts_max) { /* the parts of an entry are contiguous */
		h->next_part += h->nr_parts_max - at;
		at = 0;
	}
	e->parts = h->next_part;
	e->nr_parts = nr;
	h->next_part += nr;
	if (nr)
		memcpy(&h->parts[at], parts, nr * sizeof(*parts));
}

const struct blame_part *blamehistory_parts(const struct blamehistory *h,
					    const struct blamehistory_entry *e)
{
	if (e->parts + h->nr_parts_max < h->next_part)
		return NULL;
	return &h->parts[e->parts & (h->nr_parts_max - 1)];
}
