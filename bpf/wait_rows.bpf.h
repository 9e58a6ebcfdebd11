/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Stores intervals: in a cached row of the thread, and from there in the map that is active
 * (wait_clock.active_map), or singly in the ring. The verifier checks a global (not static)
 * function once, apart from its callers, so it cannot have a task_struct as argument.
 */
#ifndef ASSAY_BPF_WAIT_ROWS_H
#define ASSAY_BPF_WAIT_ROWS_H

/* Adds a row to another, except for the histogram `queued`. */
static __always_inline void row_sum(struct wait_row *to, const struct wait_row *r)
{
	to->ns += r->ns;
	to->queue_ns += r->queue_ns;
	to->count += r->count;
	raise_to(&to->max_ns, r->max_ns);
	raise_to(&to->max_queue_ns, r->max_queue_ns);
}

/* Adds to a row of the map; false: the map is full. */
static __always_inline bool row_add(void *map, const struct wait_key *k, const struct wait_row *r)
{
	struct wait_row *have = bpf_map_lookup_elem(map, k);
	if (!have)
		return bpf_map_update_elem(map, k, r, BPF_NOEXIST) == 0;
	/* A row has one writer at a time, like the thread's state, so additions are not atomic. */
	row_sum(have, r);
	for (__u32 i = 0; i < WAIT_QUEUE_CLASSES; i++)
		have->queued[i] += r->queued[i];
	return true;
}

__noinline bool rows_add(const struct wait_key *k, const struct wait_row *r)
{
	if (!k || !r)
		return false;
	if (wait_clock.active_map & 1)
		return row_add(&wait_rows1, k, r);
	return row_add(&wait_rows0, k, r);
}

/* The map is full: the time is kept in the thread's state until it can be sent. */
static __always_inline void unaccounted_add(struct wait_state *w, const struct wait_key *k,
					    const struct wait_row *r)
{
	if (k->account == WAITACCOUNT_ON_CPU) {
		w->unaccounted_run_ns += r->ns;
		w->unaccounted_runs += r->count;
	} else if (k->account == WAITACCOUNT_OFF_CPU) {
		w->unaccounted_ns += r->ns + r->queue_ns;
		w->unaccounted += r->count;
	}
	count_loss(KLOSS_MAP_FULL);
}

/* Writes a cached row to the map and empties it. */
static __always_inline void cached_row_flush(struct wait_state *w, struct wait_cached_row *m)
{
	if (m->key.account && !rows_add(&m->key, &m->row))
		unaccounted_add(w, &m->key, &m->row);
	m->key.account = 0;
}

static __always_inline bool is_same_key(const struct wait_key *a, const struct wait_key *b)
{
	const __u64 *x = (const __u64 *)a;
	const __u64 *y = (const __u64 *)b;
	__u64 diff = 0;
#pragma unroll
	for (unsigned i = 0; i < sizeof(*a) / sizeof(*x); i++)
		diff |= x[i] ^ y[i];
	return !diff;
}

/* Class of a time in the run queue: index into wait_row.queued. */
static __always_inline __u32 queue_class(__u64 ns)
{
	__u64 class = log2_of(ns);
	class = class < WAIT_QUEUE_LOG2_FIRST ? 0 : class - WAIT_QUEUE_LOG2_FIRST;
	if (class >= WAIT_QUEUE_CLASSES)
		class = WAIT_QUEUE_CLASSES - 1;
	asm volatile("" : "+r"(class));
	return class < WAIT_QUEUE_CLASSES ? class : 0;
}

/* Adds to a cached row. If the row has another key, it is written to the map first. */
__noinline int cached_row_add(struct wait_state *w, struct wait_cached_row *m,
			      const struct wait_key *k, const struct wait_row *r)
{
	if (!w || !m || !k || !r)
		return 0;
	if (!is_same_key(&m->key, k)) {
		cached_row_flush(w, m);
		m->key = *k;
		m->row = *r;
		m->row.queued[queue_class(r->queue_ns)] = k->how == HOW_BLOCKED;
		return 0;
	}
	row_sum(&m->row, r);
	m->row.queued[queue_class(r->queue_ns)] += k->how == HOW_BLOCKED;
	RETURN_NOTHING();
}

/* Adds an interval to the cached row that its stack and duration select. */
static __always_inline void account(struct wait_state *w, const struct wait_key *k,
				    const struct wait_row *r)
{
	__u32 idx = (__u32)(k->user_ref ^ k->other_ref) + k->log2_ns;
	cached_row_add(w, &w->cached_rows[idx & (WAIT_CACHED_ROWS - 1)], k, r);
}

static __always_inline void key_of_thread(struct wait_key *k, __u64 ids, __u8 which)
{
	__builtin_memset(k, 0, sizeof(*k));
	k->tgid = (__s32)(ids >> 32);
	k->tid = (__s32)ids;
	k->fd = WAIT_NO_FD;
	k->syscall = -1;
	k->account = which;
	k->log2_ns = LOG2_NONE;
}

/* Sends one interval through the ring; false: no room. */
__noinline bool single_send(const struct wait_key *k, const struct wait_row *r, __u64 start_ns,
			    __u64 woken_ns, __u64 end_ns)
{
	if (!k || !r)
		return false;
	struct wait_single *s = bpf_ringbuf_reserve(&ring, sizeof(*s), 0);
	if (!s)
		return false;
	record_head_at(&s->head, RECORD_WAIT, sizeof(*s), bpf_ktime_get_ns(), k->tgid, k->tid);
	s->key = *k;
	s->start_ns = start_ns;
	s->woken_ns = woken_ns;
	s->end_ns = end_ns;
	s->kernel_ref = r->kernel_ref;
	s->other_tgid = r->other_tgid;
	s->dev = r->dev;
	ring_submit(s);
	return true;
}

/* Sends time for which the map had no room as one interval; dev: number of intervals in it. */
static __always_inline bool unaccounted_send_one(__u64 ids, __u8 which, __u64 ns, __u32 count)
{
	struct wait_key k;
	struct wait_row r = {.dev = count};

	key_of_thread(&k, ids, which);
	k.reason = which == WAITACCOUNT_ON_CPU ? WAIT_ON_CPU : WAIT_UNKNOWN;
	k.how = HOW_UNACCOUNTED;
	__u64 now = bpf_ktime_get_ns();
	return single_send(&k, &r, now - ns, now, now);
}

static __always_inline void unaccounted_send(struct wait_state *w, __u64 ids)
{
	if (w->unaccounted &&
	    unaccounted_send_one(ids, WAITACCOUNT_OFF_CPU, w->unaccounted_ns, w->unaccounted))
		w->unaccounted_ns = w->unaccounted = 0;
	if (w->unaccounted_runs && unaccounted_send_one(ids, WAITACCOUNT_ON_CPU,
							w->unaccounted_run_ns, w->unaccounted_runs))
		w->unaccounted_run_ns = w->unaccounted_runs = 0;
}

#endif
