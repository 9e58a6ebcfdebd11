/*
 * Kept intervals; see keptwaits.h.
 *
 *	older            recent: a ring by sequence number           now
 *	chains  <──  [first_seq ........................ next_seq)
 *	 (marked)      prev/next: the same thread   waker_seq: the waker's last one
 *
 * Links are sequence numbers, which wrap; a link is valid if it lies in the ring and the interval there
 * is one of the expected thread.
 */
#include "base/base.h"
#include "capture/wait/keptwaits.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "model/wait.h"

#define DEPTH_MAX 16 /* threads of a chain */
/* How many intervals one wait or span keeps. */
#define STEPS_OF_WAIT 512u
#define STEPS_OF_SPAN 8192u
#define WINDOWS_MAX   65536u

struct kept {
	struct wait_interval interval;
	uint64_t ran_ns;
	uint32_t prev;      /* of the thread; 0: none */
	uint32_t next;      /* of the thread; 0: none yet */
	uint32_t waker_seq; /* the waker's last interval when this one ended; 0: none */
	bool is_marked;
};

/* A long wait or a slow span, whose chain was not marked yet. */
struct window {
	uint64_t from_ns;
	uint64_t to_ns;
	int32_t tid;
	uint32_t seq; /* an interval of the thread near the end; 0: none */
	uint32_t steps_max;
};

struct keptwaits {
	struct keptwaits_options o;
	struct kept *ring; /* of o.nr_recent elements, a power of two */
	uint32_t first_seq;
	uint32_t n;
	struct map last; /* TID -> sequence number of its last interval */
	VEC(struct window) windows;
	uint64_t windows_from_ns; /* the earliest of them */
	VEC(struct kept) chains;  /* marked intervals that left the ring */
	struct keptwaits_counts counts;
};

struct keptwaits *keptwaits_new(const struct keptwaits_options *o)
{
	struct keptwaits *k = xcalloc(1, sizeof(*k));
	k->o = *o;
	k->o.nr_recent = o->nr_recent ? o->nr_recent : KEPTWAITS_RECENT;
	k->o.nr_chains = o->nr_chains ? o->nr_chains : KEPTWAITS_CHAINS;
	k->o.recent_ns = o->recent_ns ? o->recent_ns : KEPTWAITS_SECONDS * NS_PER_SEC;
	k->ring = xcalloc_huge(k->o.nr_recent, sizeof(*k->ring));
	k->first_seq = 1;
	k->windows_from_ns = UINT64_MAX;
	return k;
}

void keptwaits_free(struct keptwaits *k)
{
	if (!k)
		return;
	free(k->ring);
	map_release(&k->last);
	vec_release(&k->windows);
	vec_release(&k->chains);
	free(k);
}

static struct kept *at(const struct keptwaits *k, uint32_t seq)
{
	return &k->ring[seq & (k->o.nr_recent - 1)];
}

/* The interval with a sequence number if it is still there and of that thread, else NULL. */
static struct kept *find(const struct keptwaits *k, uint32_t seq, int32_t tid)
{
	if (!seq || seq - k->first_seq >= k->n)
		return NULL;
	struct kept *e = at(k, seq);
	return e->interval.tid == tid ? e : NULL;
}

/* ---- chains ------------------------------------------------------------------------------- */

struct walk {
	struct keptwaits *k;
	uint32_t nr_left; /* intervals that it may still mark */
};

/*
 * Marks the intervals of a thread in [@from_ns, @to_ns], one more, since it has the time of the run
 * before it, and those of its wakers. @seq: an interval that ended near @to_ns.
 */
static void mark(struct walk *w, int32_t tid, uint32_t seq, uint64_t from_ns, uint64_t to_ns,
		 unsigned depth)
{
	struct kept *e = find(w->k, seq, tid);
	struct kept *next;
	while (e && e->interval.off_ns < to_ns && (next = find(w->k, e->next, tid)))
		e = next;
	while (e && w->nr_left && e->interval.on_ns > from_ns) {
		const struct wait_interval *i = &e->interval;
		uint64_t wait_from = MAX(i->off_ns, from_ns);
		uint64_t wait_to = MIN(i->woken_ns, to_ns);
		e->is_marked = true;
		w->nr_left--;
		if (wait_from < wait_to && i->waker_tid && i->waker_tid != tid && depth < DEPTH_MAX)
			mark(w, i->waker_tid, e->waker_seq, wait_from, wait_to, depth + 1);
		e = find(w->k, e->prev, tid);
	}
}

static void mark_windows(struct keptwaits *k)
{
	vec_foreach(v, &k->windows) {
		struct walk w = {k, v->steps_max};
		const uint32_t *last = v->seq ? &v->seq : map_get(&k->last, (uint32_t)v->tid);
		mark(&w, v->tid, last ? *last : 0, v->from_ns, v->to_ns, 0);
		k->counts.nr_cut += !w.nr_left;
	}
	vec_clear(&k->windows);
	k->windows_from_ns = UINT64_MAX;
}

static void add_window(struct keptwaits *k, const struct window *v)
{
	if (k->windows.n == WINDOWS_MAX)
		mark_windows(k);
	vec_push(&k->windows, *v);
	k->windows_from_ns = MIN(k->windows_from_ns, v->from_ns);
}

void keptwaits_add_span(struct keptwaits *k, int32_t tid, uint64_t from_ns, uint64_t to_ns)
{
	const uint32_t *seq = map_get(&k->last, (uint32_t)tid);
	add_window(k, &(struct window){from_ns, to_ns, tid, seq ? *seq : 0, STEPS_OF_SPAN});
}

/* Long waits may use half of the room for chains; the rest is for slow spans. */
static bool is_long_wait(const struct keptwaits *k, const struct kept *e)
{
	const struct wait_interval *i = &e->interval;
	if (i->woken_ns - i->off_ns < KEPTWAITS_LONG_NS || k->chains.n > k->o.nr_chains / 2)
		return false;
	return e->waker_seq || (!wait_is_idle(i->reason) && i->reason != WAIT_SYNC);
}

/* ---- the ring ----------------------------------------------------------------------------- */

static void drop_first(struct keptwaits *k)
{
	if (at(k, k->first_seq)->interval.on_ns >= k->windows_from_ns)
		mark_windows(k);
	const struct kept *e = at(k, k->first_seq);
	k->counts.complete_from_ns = e->interval.on_ns;
	if (e->is_marked && k->chains.n < k->o.nr_chains) {
		vec_push(&k->chains, *e);
	} else {
		k->counts.nr_cut += e->is_marked;
		k->counts.nr_dropped++;
	}
	uint32_t *last = map_get(&k->last, (uint32_t)e->interval.tid);
	if (last && *last == k->first_seq)
		(void)map_del(&k->last, (uint32_t)e->interval.tid);
	k->first_seq++;
	k->n--;
}

void keptwaits_add(struct keptwaits *k, const struct wait_interval *i, uint64_t ran_ns)
{
	while (k->n && (k->n == k->o.nr_recent ||
			at(k, k->first_seq)->interval.on_ns + k->o.recent_ns < i->on_ns))
		drop_first(k);
	uint32_t seq = k->first_seq + k->n++;
	struct kept *e = at(k, seq);
	*e = (struct kept){.interval = *i, .ran_ns = ran_ns};
	const uint32_t *waker = i->waker_tid ? map_get(&k->last, (uint32_t)i->waker_tid) : NULL;
	e->waker_seq = waker ? *waker : 0;
	uint32_t *last = map_put(&k->last, (uint32_t)i->tid, NULL);
	struct kept *prev = find(k, *last, i->tid);
	if (prev) {
		e->prev = *last;
		prev->next = seq;
	}
	*last = seq;
	k->counts.nr++;
	if (is_long_wait(k, e))
		add_window(k, &(struct window){i->off_ns, i->on_ns, i->tid, seq, STEPS_OF_WAIT});
}

int keptwaits_emit(struct keptwaits *k, keptwaits_fn *fn, void *ctx, struct err *err)
{
	vec_foreach(e, &k->chains)
		TRY(fn(ctx, &e->interval, e->ran_ns, err));
	for (uint32_t i = 0; i < k->n; i++) {
		const struct kept *e = at(k, k->first_seq + i);
		TRY(fn(ctx, &e->interval, e->ran_ns, err));
	}
	return 0;
}

struct keptwaits_counts keptwaits_counts(const struct keptwaits *k)
{
	return k->counts;
}
