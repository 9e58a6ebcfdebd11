/* The ledger kept in user space; see waitaccount.h. */
#include "base/base.h"
#include "capture/wait/waitaccount.h"

#include "base/clock.h"
#include "base/hash.h"
#include "model/tables.h"

/* A thread that could run when we came does so within this time; else it was waiting. */
#define QUEUE_MAX_NS 20000000u

struct waitaccount_row {
	uint32_t thread; /* index */
	uint32_t next;   /* row of the same thread, index + 1, or 0 */
	bool is_on_cpu;
	uint8_t how; /* enum waitaccount_how */
	uint8_t log2_ns;
	struct why why;
	uint64_t second;
	uint64_t nr;
	uint64_t ns;
	uint64_t longest_ns;
};

void waitaccount_init(struct account *b, uint64_t start_ns, uint64_t short_ns)
{
	*b = (struct account){.start_ns = start_ns, .short_ns = short_ns};
}

void waitaccount_release(struct account *b)
{
	intern_release(&b->objects);
	map_release(&b->thread_by_tid);
	map_release(&b->row_index);
	vec_release(&b->threads);
	vec_release(&b->rows);
}

/* ---- rows --------------------------------------------------------------------------------- */

static uint8_t log2_of(uint64_t ns)
{
	return (uint8_t)(63 - __builtin_clzll(ns | 1));
}

static uint64_t hash_row(const struct waitaccount_row *r)
{
	uint64_t h = hash_mix(r->second << 32 | r->thread, r->why.ref);
	h = hash_mix(h, (uint64_t)r->why.object << 32 | (uint16_t)r->why.syscall);
	return hash_mix(h, (uint64_t)r->why.reason << 32 | (uint64_t)r->why.evidence << 24 |
				   (uint64_t)r->log2_ns << 8 | (uint64_t)r->how << 1 |
				   (uint64_t)r->is_on_cpu);
}

static void add_row(struct account *b, const struct waitaccount_row *add)
{
	if (!add->ns && !add->nr)
		return;
	uint32_t *idx = map_put(&b->row_index, hash_row(add), NULL);
	if (!*idx) {
		vec_push(&b->rows, *add);
		*idx = (uint32_t)b->rows.n;
		vec_last(&b->rows)->next = b->threads.p[add->thread].first_row;
		b->threads.p[add->thread].first_row = *idx;
		return;
	}
	struct waitaccount_row *r = &b->rows.p[*idx - 1];
	r->nr += add->nr;
	r->ns += add->ns;
	r->longest_ns = MAX(r->longest_ns, add->longest_ns);
}

static uint64_t second_of(const struct account *b, uint64_t end_ns)
{
	uint64_t last_ns = end_ns - b->start_ns;
	return (last_ns ? last_ns - 1 : 0) / NS_PER_SEC;
}

static uint32_t idx_of(const struct account *b, const struct waitaccount_thread *t)
{
	return (uint32_t)(t - b->threads.p);
}

void waitaccount_add_on(struct account *b, struct waitaccount_thread *t, uint64_t end_ns,
			uint64_t ns, uint32_t nr)
{
	add_row(b, &(struct waitaccount_row){.thread = idx_of(b, t),
					     .is_on_cpu = true,
					     .log2_ns = LOG2_NONE,
					     .why = {.reason = WAIT_ON_CPU, .syscall = -1},
					     .second = second_of(b, end_ns),
					     .nr = nr,
					     .ns = ns,
					     .longest_ns = ns});
}

/* @whole_ns: length of one interval, of which @ns are booked now. */
static void add_off(struct account *b, struct waitaccount_thread *t, uint64_t end_ns, uint64_t ns,
		    uint64_t whole_ns, uint32_t nr, enum waitaccount_how how, const struct why *why)
{
	struct waitaccount_row r = {.thread = idx_of(b, t),
				    .how = how,
				    .log2_ns = log2_of(whole_ns),
				    .why = *why,
				    .second = second_of(b, end_ns),
				    .nr = nr,
				    .ns = ns,
				    .longest_ns = MIN(whole_ns, ns)};
	if (how != WAITACCOUNT_WAIT) {
		r.why = (struct why){
			.ref = why->ref, .reason = WAIT_RUN_QUEUE, .syscall = why->syscall};
		t->queue_seen_ns += ns;
	}
	add_row(b, &r);
}

void waitaccount_add(struct account *b, struct waitaccount_thread *t, uint64_t end_ns, uint64_t ns,
		     uint32_t nr, enum waitaccount_how how, const struct why *why)
{
	add_off(b, t, end_ns, ns, nr ? ns / nr : ns, nr, how, why);
}

/* ---- threads ------------------------------------------------------------------------------ */

struct waitaccount_thread *waitaccount_find(struct account *b, int32_t tid)
{
	const uint32_t *idx = map_get(&b->thread_by_tid, (uint32_t)tid);
	return idx ? &b->threads.p[*idx - 1] : NULL;
}

struct waitaccount_thread *waitaccount_thread(struct account *b, int32_t pid, int32_t tid,
					      uint64_t time_ns)
{
	struct waitaccount_thread *t = waitaccount_find(b, tid);
	if (t && t->state != THREAD_GONE)
		return t;
	time_ns = MAX(time_ns, b->start_ns);
	vec_push(&b->threads, (struct waitaccount_thread){.pid = pid,
							  .tid = tid,
							  .began_ns = time_ns,
							  .since_ns = time_ns,
							  .queue_total_ns = UINT64_MAX});
	*map_put(&b->thread_by_tid, (uint32_t)tid, NULL) = (uint32_t)b->threads.n;
	return vec_last(&b->threads);
}

static const struct why unknown = {.reason = WAIT_UNKNOWN, .syscall = -1};

static bool is_same(const struct why *a, const struct why *b)
{
	return a->ref == b->ref && a->reason == b->reason && a->syscall == b->syscall &&
	       a->object == b->object;
}

/* What short intervals of this thread are for, as far as looks hit some. */
static void note_seen(struct waitaccount_thread *t, const struct why *why)
{
	unsigned least = 0;
	for (unsigned i = 0; i < WAITACCOUNT_SEEN; i++) {
		if (t->seen[i].hits && is_same(&t->seen[i].why, why)) {
			t->seen[i].hits++;
			return;
		}
		if (t->seen[i].hits < t->seen[least].hits)
			least = i;
	}
	t->seen[least].why = *why;
	t->seen[least].hits = 1;
}

static void waitaccount_open(struct account *b, struct waitaccount_thread *t, uint64_t time_ns,
			     bool is_end)
{
	uint64_t ns = time_ns > t->since_ns ? time_ns - t->since_ns : 0;
	uint64_t whole_ns = time_ns > t->began_ns ? time_ns - t->began_ns : 0;
	t->since_ns = MAX(t->since_ns, time_ns);
	if (t->state == THREAD_ON) {
		waitaccount_add_on(b, t, time_ns, ns, is_end);
	} else if (t->state == THREAD_OFF && t->how != WAITACCOUNT_WAIT) {
		add_off(b, t, time_ns, ns, whole_ns, is_end, t->how, &t->why);
	} else if (t->has_why) {
		add_off(b, t, time_ns, ns, whole_ns, is_end, WAITACCOUNT_WAIT, &t->why);
		if (is_end && whole_ns < b->short_ns && (t->why.evidence & EVIDENCE_POLLED))
			note_seen(t, &t->why);
	} else if (t->state == THREAD_OFF && whole_ns < b->short_ns) {
		t->pool_ns += ns;
		t->nr_pool += is_end;
		t->pool_longest_ns = MAX(t->pool_longest_ns, ns);
	} else {
		add_off(b, t, time_ns, ns, whole_ns, is_end, WAITACCOUNT_WAIT, &unknown);
	}
}

static void begin_interval(struct waitaccount_thread *t, uint64_t time_ns)
{
	t->began_ns = t->since_ns = MAX(time_ns, t->since_ns);
	t->has_why = false;
}

/* A thread whose state was not known turns out to have been off, or on, all the time. */
void waitaccount_on(struct account *b, struct waitaccount_thread *t, uint64_t time_ns)
{
	if (t->state == THREAD_GONE)
		return;
	if (t->state == THREAD_UNSURE) {
		bool is_queue = !t->has_why && time_ns - t->began_ns < QUEUE_MAX_NS;
		t->state = THREAD_OFF;
		t->how = is_queue ? WAITACCOUNT_WOKEN : WAITACCOUNT_WAIT;
	}
	waitaccount_open(b, t, time_ns, t->state == THREAD_OFF);
	begin_interval(t, time_ns);
	t->state = THREAD_ON;
}

void waitaccount_off(struct account *b, struct waitaccount_thread *t, uint64_t time_ns,
		     enum waitaccount_how how, const struct why *why)
{
	if (t->state == THREAD_GONE)
		return;
	if (t->state == THREAD_UNSURE)
		t->state = THREAD_ON;
	waitaccount_open(b, t, time_ns, true);
	begin_interval(t, time_ns);
	t->state = THREAD_OFF;
	t->how = (uint8_t)how;
	t->has_why = why != NULL;
	t->why = why ? *why : unknown;
}

void waitaccount_gone(struct account *b, struct waitaccount_thread *t, uint64_t time_ns)
{
	if (t->state == THREAD_UNSURE)
		t->state = THREAD_ON;
	if (t->state != THREAD_GONE)
		waitaccount_open(b, t, time_ns, true);
	t->state = THREAD_GONE;
}

void waitaccount_look(struct account *b, struct waitaccount_thread *t, uint64_t from_ns,
		      uint64_t to_ns, const struct why *why)
{
	(void)b;
	bool is_off =
		t->state == THREAD_UNSURE || (t->state == THREAD_OFF && t->how == WAITACCOUNT_WAIT);
	if (t->state == THREAD_GONE || (is_off && t->has_why && t->began_ns <= from_ns))
		return;
	if (!is_off || t->began_ns > from_ns || to_ns < from_ns) {
		note_seen(t, why);
		return;
	}
	t->why = *why;
	t->has_why = true;
	t->state = THREAD_OFF;
	t->how = WAITACCOUNT_WAIT;
}

/* ---- borders ------------------------------------------------------------------------------ */

static void share_pool(struct account *b, struct waitaccount_thread *t, uint64_t time_ns)
{
	if (!t->pool_ns && !t->nr_pool)
		return;
	uint32_t hits = 0;
	for (unsigned i = 0; i < WAITACCOUNT_SEEN; i++)
		hits += t->seen[i].hits;
	uint64_t left_ns = t->pool_ns;
	uint32_t nr_left = t->nr_pool;
	uint64_t each_ns = t->nr_pool ? t->pool_ns / t->nr_pool : t->pool_ns;
	for (unsigned i = 0; i < WAITACCOUNT_SEEN && hits; i++) {
		if (!t->seen[i].hits)
			continue;
		uint64_t ns = (uint64_t)((double)left_ns * t->seen[i].hits / hits);
		uint32_t nr = (uint32_t)((uint64_t)nr_left * t->seen[i].hits / hits);
		hits -= t->seen[i].hits; /* of the rest, so that the last one takes all */
		add_off(b, t, time_ns, ns, each_ns, nr, WAITACCOUNT_WAIT, &t->seen[i].why);
		left_ns -= ns;
		nr_left -= nr;
	}
	if (left_ns || nr_left)
		add_off(b, t, time_ns, left_ns, each_ns, nr_left, WAITACCOUNT_WAIT, &unknown);
	t->pool_ns = t->pool_longest_ns = t->nr_pool = 0;
	for (unsigned i = 0; i < WAITACCOUNT_SEEN; i++) /* what was seen lately counts more */
		t->seen[i].hits = (t->seen[i].hits + 1) / 2;
}

void waitaccount_cut(struct account *b, uint64_t time_ns, bool is_end)
{
	vec_foreach(t, &b->threads) {
		if (t->state == THREAD_UNSURE) /* no switch so far */
			t->state = t->has_why ? THREAD_OFF : THREAD_ON;
		if (is_end && t->state == THREAD_OFF)
			t->why.evidence |= EVIDENCE_OPEN;
		if (t->state == THREAD_ON || t->state == THREAD_OFF)
			waitaccount_open(b, t, time_ns, false);
		share_pool(b, t, time_ns);
	}
}

/* The part of a row's waits that passed between the wake and the CPU becomes a row of its own. */
static void split_row(struct account *b, size_t row, uint64_t queue_ns)
{
	struct waitaccount_row *r = &b->rows.p[row];
	queue_ns = MIN(queue_ns, r->ns);
	if (!queue_ns)
		return;
	r->ns -= queue_ns;
	r->longest_ns = MIN(r->longest_ns, r->ns);
	struct waitaccount_row queue = *r;
	queue.how = WAITACCOUNT_WOKEN;
	queue.ns = queue_ns;
	queue.longest_ns = queue_ns / queue.nr;
	queue.log2_ns = log2_of(queue.longest_ns);
	queue.why = (struct why){
		.ref = r->why.ref, .reason = WAIT_RUN_QUEUE, .syscall = r->why.syscall};
	add_row(b, &queue);
}

static bool has_wakes(const struct waitaccount_row *r)
{
	return !r->is_on_cpu && r->how == WAITACCOUNT_WAIT && r->nr;
}

void waitaccount_share_queue(struct account *b, struct waitaccount_thread *t, uint64_t ns)
{
	uint64_t nr = 0;
	uint32_t first = t->first_row;
	for (uint32_t i = first; i; i = b->rows.p[i - 1].next)
		nr += has_wakes(&b->rows.p[i - 1]) ? b->rows.p[i - 1].nr : 0;
	for (uint32_t i = first; i && nr && ns; i = b->rows.p[i - 1].next) {
		const struct waitaccount_row *r = &b->rows.p[i - 1];
		if (!has_wakes(r))
			continue;
		uint64_t part_ns = (uint64_t)((double)ns * (double)r->nr / (double)nr);
		nr -= r->nr;
		ns -= part_ns;
		split_row(b, i - 1, part_ns);
	}
}

static void forget_gone(struct account *b)
{
	size_t n = 0;
	for (size_t i = 0; i < b->threads.n; i++) {
		struct waitaccount_thread *t = &b->threads.p[i];
		if (t->state == THREAD_GONE) {
			const uint32_t *idx = map_get(&b->thread_by_tid, (uint32_t)t->tid);
			if (idx && *idx == i + 1)
				(void)map_del(&b->thread_by_tid, (uint32_t)t->tid);
			continue;
		}
		t->first_row = 0;
		b->threads.p[n++] = *t;
		*map_put(&b->thread_by_tid, (uint32_t)t->tid, NULL) = (uint32_t)n;
	}
	b->threads.n = n;
}

int waitaccount_flush(struct account *b, const struct event_sink *sink, struct err *err)
{
	static const char *const details[] = {NULL, "preempted", "yielded", "woken"};
	int rc = 0;
	for (size_t i = 0; !rc && i < b->rows.n; i++) {
		const struct waitaccount_row *r = &b->rows.p[i];
		const struct waitaccount_thread *t = &b->threads.p[r->thread];
		int64_t values[] = {(int64_t)r->nr, (int64_t)r->ns, (int64_t)r->longest_ns};
		struct event ev =
			event_aggregate(r->is_on_cpu ? TABLE_ON_CPU : TABLE_OFF_CPU, t->pid, t->tid,
					b->start_ns + r->second * NS_PER_SEC, values);
		ev.aggregate.user_ref = r->why.ref;
		ev.aggregate.reason = r->why.reason;
		ev.aggregate.evidence = r->why.evidence;
		ev.aggregate.log2_ns = r->log2_ns;
		ev.aggregate.syscall = r->why.syscall;
		ev.aggregate.object = r->why.object ? intern_str(&b->objects, r->why.object) : NULL;
		ev.aggregate.detail = details[r->how];
		rc = sink->event(sink->ctx, &ev, err);
	}
	vec_clear(&b->rows);
	map_clear(&b->row_index);
	forget_gone(b);
	return rc;
}
