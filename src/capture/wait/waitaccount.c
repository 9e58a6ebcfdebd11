/* Off-CPU accounting in user space; see waitaccount.h. */
#include "base/base.h"
#include "capture/wait/waitaccount.h"

#include "base/clock.h"
#include "base/hash.h"
#include "capture/wait/interval.h"
#include "model/tables.h"

/*
 * A thread that is first switched in within this time of its first appearance is taken to have been
 * on the run queue; one that is switched in later is taken to have waited.
 */
#define QUEUE_MAX_NS 20000000u

struct waitaccount_row {
	uint32_t thread; /* index */
	uint32_t next;   /* row of the same thread, index + 1, or 0 */
	bool is_on_cpu;
	uint8_t kind; /* enum offcpu_kind */
	uint8_t log2_ns;
	struct wait_cause cause;
	uint64_t second;
	uint64_t nr;
	uint64_t ns;
	uint64_t longest_ns;
};

void waitaccount_init(struct waitaccount *a, uint64_t start_ns, uint64_t short_ns)
{
	*a = (struct waitaccount){.start_ns = start_ns, .short_ns = short_ns};
}

void waitaccount_release(struct waitaccount *a)
{
	intern_release(&a->objects);
	map_release(&a->thread_by_tid);
	map_release(&a->row_index);
	vec_release(&a->threads);
	vec_release(&a->rows);
}

/* ---- rows --------------------------------------------------------------------------------- */

static uint64_t hash_row(const struct waitaccount_row *r)
{
	uint64_t h = hash_mix(r->second << 32 | r->thread, r->cause.ref);
	h = hash_mix(h, (uint64_t)r->cause.object << 32 | (uint16_t)r->cause.syscall);
	return hash_mix(h, (uint64_t)r->cause.reason << 32 | (uint64_t)r->cause.evidence << 24 |
				   (uint64_t)r->log2_ns << 8 | (uint64_t)r->kind << 1 |
				   (uint64_t)r->is_on_cpu);
}

static void add_row(struct waitaccount *a, const struct waitaccount_row *add)
{
	if (!add->ns && !add->nr)
		return;
	uint32_t *idx = map_put(&a->row_index, hash_row(add), NULL);
	if (!*idx) {
		vec_push(&a->rows, *add);
		*idx = (uint32_t)a->rows.n;
		vec_last(&a->rows)->next = a->threads.p[add->thread].first_row;
		a->threads.p[add->thread].first_row = *idx;
		return;
	}
	struct waitaccount_row *r = &a->rows.p[*idx - 1];
	r->nr += add->nr;
	r->ns += add->ns;
	r->longest_ns = MAX(r->longest_ns, add->longest_ns);
}

static uint64_t second_of(const struct waitaccount *a, uint64_t end_ns)
{
	uint64_t last_ns = end_ns - a->start_ns;
	return (last_ns ? last_ns - 1 : 0) / NS_PER_SEC;
}

static uint32_t idx_of(const struct waitaccount *a, const struct waitaccount_thread *t)
{
	return (uint32_t)(t - a->threads.p);
}

void waitaccount_add_on(struct waitaccount *a, struct waitaccount_thread *t, uint64_t end_ns,
			uint64_t ns, uint32_t nr)
{
	add_row(a, &(struct waitaccount_row){.thread = idx_of(a, t),
					     .is_on_cpu = true,
					     .log2_ns = LOG2_NONE,
					     .cause = {.reason = WAIT_ON_CPU, .syscall = -1},
					     .second = second_of(a, end_ns),
					     .nr = nr,
					     .ns = ns,
					     .longest_ns = ns});
}

/* Adds @ns of an interval whose length so far is @whole_ns. */
static void add_off(struct waitaccount *a, struct waitaccount_thread *t, uint64_t end_ns,
		    uint64_t ns, uint64_t whole_ns, uint32_t nr, enum offcpu_kind kind,
		    const struct wait_cause *cause)
{
	struct waitaccount_row r = {.thread = idx_of(a, t),
				    .kind = kind,
				    .log2_ns = interval_log2_of(whole_ns),
				    .cause = *cause,
				    .second = second_of(a, end_ns),
				    .nr = nr,
				    .ns = ns,
				    .longest_ns = whole_ns};
	if (kind != OFFCPU_WAIT) {
		r.cause = (struct wait_cause){
			.ref = cause->ref, .reason = WAIT_RUN_QUEUE, .syscall = cause->syscall};
		t->queue_accounted_ns += ns;
	}
	add_row(a, &r);
}

void waitaccount_add_off(struct waitaccount *a, struct waitaccount_thread *t, uint64_t end_ns,
			 uint64_t ns, uint64_t whole_ns, uint32_t nr, enum offcpu_kind kind,
			 const struct wait_cause *cause)
{
	add_off(a, t, end_ns, ns, whole_ns, nr, kind, cause);
}

/* ---- threads ------------------------------------------------------------------------------ */

struct waitaccount_thread *waitaccount_find(struct waitaccount *a, int32_t tid)
{
	const uint32_t *idx = map_get(&a->thread_by_tid, (uint32_t)tid);
	return idx ? &a->threads.p[*idx - 1] : NULL;
}

struct waitaccount_thread *waitaccount_thread(struct waitaccount *a, int32_t pid, int32_t tid,
					      uint64_t time_ns)
{
	struct waitaccount_thread *t = waitaccount_find(a, tid);
	if (t && t->state != THREAD_EXITED)
		return t;
	time_ns = MAX(time_ns, a->start_ns);
	vec_push(&a->threads, (struct waitaccount_thread){.pid = pid,
							  .tid = tid,
							  .start_ns = time_ns,
							  .accounted_ns = time_ns,
							  .queue_schedstat_ns = UINT64_MAX});
	*map_put(&a->thread_by_tid, (uint32_t)tid, NULL) = (uint32_t)a->threads.n;
	return vec_last(&a->threads);
}

static const struct wait_cause unknown = {.reason = WAIT_UNKNOWN, .syscall = -1};

static bool is_same(const struct wait_cause *x, const struct wait_cause *y)
{
	return x->ref == y->ref && x->reason == y->reason && x->syscall == y->syscall &&
	       x->object == y->object;
}

/* Counts a cause that a poll found in a short wait; replaces the rarest one if there is no room. */
static void add_polled_cause(struct waitaccount_thread *t, const struct wait_cause *cause)
{
	unsigned least = 0;
	for (unsigned i = 0; i < POLLED_CAUSES_MAX; i++) {
		if (t->polled[i].nr_polls && is_same(&t->polled[i].cause, cause)) {
			t->polled[i].nr_polls++;
			return;
		}
		if (t->polled[i].nr_polls < t->polled[least].nr_polls)
			least = i;
	}
	t->polled[least].cause = *cause;
	t->polled[least].nr_polls = 1;
}

/* Adds the open interval up to @time_ns to the rows. @is_end: the interval ends there. */
static void account_interval(struct waitaccount *a, struct waitaccount_thread *t, uint64_t time_ns,
			     bool is_end)
{
	uint64_t ns = time_ns > t->accounted_ns ? time_ns - t->accounted_ns : 0;
	uint64_t whole_ns = time_ns > t->start_ns ? time_ns - t->start_ns : 0;
	t->accounted_ns = MAX(t->accounted_ns, time_ns);
	if (t->state == THREAD_ON_CPU) {
		waitaccount_add_on(a, t, time_ns, ns, is_end);
	} else if (t->state == THREAD_OFF_CPU && t->kind != OFFCPU_WAIT) {
		add_off(a, t, time_ns, ns, whole_ns, is_end, t->kind, &t->cause);
	} else if (t->has_cause) {
		add_off(a, t, time_ns, ns, whole_ns, is_end, OFFCPU_WAIT, &t->cause);
		if (is_end && whole_ns < a->short_ns && (t->cause.evidence & EVIDENCE_POLLED))
			add_polled_cause(t, &t->cause);
	} else if (t->state == THREAD_OFF_CPU && whole_ns < a->short_ns) {
		t->unattributed_ns += ns;
		t->nr_unattributed += is_end;
	} else {
		add_off(a, t, time_ns, ns, whole_ns, is_end, OFFCPU_WAIT, &unknown);
	}
}

static void begin_interval(struct waitaccount_thread *t, uint64_t time_ns)
{
	t->start_ns = t->accounted_ns = MAX(time_ns, t->accounted_ns);
	t->has_cause = false;
}

/* A thread of unknown state that is switched in was off the CPU since it first appeared. */
void waitaccount_switch_in(struct waitaccount *a, struct waitaccount_thread *t, uint64_t time_ns)
{
	if (t->state == THREAD_EXITED)
		return;
	if (t->state == THREAD_STATE_UNKNOWN) {
		bool is_queue = !t->has_cause && time_ns - t->start_ns < QUEUE_MAX_NS;
		t->state = THREAD_OFF_CPU;
		t->kind = is_queue ? OFFCPU_WOKEN : OFFCPU_WAIT;
	}
	account_interval(a, t, time_ns, t->state == THREAD_OFF_CPU);
	begin_interval(t, time_ns);
	t->state = THREAD_ON_CPU;
}

void waitaccount_switch_out(struct waitaccount *a, struct waitaccount_thread *t, uint64_t time_ns,
			    enum offcpu_kind kind, const struct wait_cause *cause)
{
	if (t->state == THREAD_EXITED)
		return;
	if (t->state == THREAD_STATE_UNKNOWN)
		t->state = THREAD_ON_CPU;
	account_interval(a, t, time_ns, true);
	begin_interval(t, time_ns);
	t->state = THREAD_OFF_CPU;
	t->kind = (uint8_t)kind;
	t->has_cause = cause != NULL;
	t->cause = cause ? *cause : unknown;
}

void waitaccount_exit(struct waitaccount *a, struct waitaccount_thread *t, uint64_t time_ns)
{
	if (t->state == THREAD_STATE_UNKNOWN)
		t->state = THREAD_ON_CPU;
	if (t->state != THREAD_EXITED)
		account_interval(a, t, time_ns, true);
	t->state = THREAD_EXITED;
}

void waitaccount_add_poll(struct waitaccount *a, struct waitaccount_thread *t, uint64_t from_ns,
			  uint64_t to_ns, const struct wait_cause *cause)
{
	(void)a;
	bool is_off = t->state == THREAD_STATE_UNKNOWN ||
		      (t->state == THREAD_OFF_CPU && t->kind == OFFCPU_WAIT);
	if (t->state == THREAD_EXITED || (is_off && t->has_cause && t->start_ns <= from_ns))
		return;
	if (!is_off || t->start_ns > from_ns || to_ns < from_ns) {
		add_polled_cause(t, cause);
		return;
	}
	t->cause = *cause;
	t->has_cause = true;
	t->state = THREAD_OFF_CPU;
	t->kind = OFFCPU_WAIT;
}

/* ---- end of a slice ----------------------------------------------------------------------- */

/*
 * Distributes the unattributed time of short waits over the polled causes, by how often each was
 * polled.
 */
static void attribute_short_waits(struct waitaccount *a, struct waitaccount_thread *t,
				  uint64_t time_ns)
{
	if (!t->unattributed_ns && !t->nr_unattributed)
		return;
	uint32_t nr_polls = 0;
	for (unsigned i = 0; i < POLLED_CAUSES_MAX; i++)
		nr_polls += t->polled[i].nr_polls;
	uint64_t left_ns = t->unattributed_ns;
	uint32_t nr_left = t->nr_unattributed;
	uint64_t each_ns =
		t->nr_unattributed ? t->unattributed_ns / t->nr_unattributed : t->unattributed_ns;
	for (unsigned i = 0; i < POLLED_CAUSES_MAX && nr_polls; i++) {
		if (!t->polled[i].nr_polls)
			continue;
		uint64_t ns = (uint64_t)((double)left_ns * t->polled[i].nr_polls / nr_polls);
		uint32_t nr = (uint32_t)((uint64_t)nr_left * t->polled[i].nr_polls / nr_polls);
		nr_polls -= t->polled[i].nr_polls; /* the last cause gets all that is left */
		add_off(a, t, time_ns, ns, each_ns, nr, OFFCPU_WAIT, &t->polled[i].cause);
		left_ns -= ns;
		nr_left -= nr;
	}
	if (left_ns || nr_left)
		add_off(a, t, time_ns, left_ns, each_ns, nr_left, OFFCPU_WAIT, &unknown);
	t->unattributed_ns = t->nr_unattributed = 0;
	for (unsigned i = 0; i < POLLED_CAUSES_MAX; i++) /* recent polls weigh more */
		t->polled[i].nr_polls = (t->polled[i].nr_polls + 1) / 2;
}

void waitaccount_end_slice(struct waitaccount *a, uint64_t time_ns)
{
	vec_foreach(t, &a->threads) {
		if (t->state == THREAD_STATE_UNKNOWN) /* not switched since it appeared */
			t->state = t->has_cause ? THREAD_OFF_CPU : THREAD_ON_CPU;
		if (t->state == THREAD_ON_CPU || t->state == THREAD_OFF_CPU)
			account_interval(a, t, time_ns, false);
		attribute_short_waits(a, t, time_ns);
	}
}

/* Open intervals are counted as waits, as the accounting in the kernel does. */
void waitaccount_finish(struct waitaccount *a, uint64_t time_ns)
{
	vec_foreach(t, &a->threads) {
		bool is_waiting = t->state == THREAD_STATE_UNKNOWN && t->has_cause;
		if (!is_waiting && t->state != THREAD_OFF_CPU)
			continue;
		t->state = THREAD_OFF_CPU;
		t->cause.evidence |= EVIDENCE_OPEN;
		account_interval(a, t, time_ns, true);
	}
	waitaccount_end_slice(a, time_ns);
}

/* Moves @queue_ns of a row's wait time (wake-up to switch-in) to a run queue row. */
static void split_row(struct waitaccount *a, size_t row, uint64_t queue_ns)
{
	struct waitaccount_row *r = &a->rows.p[row];
	queue_ns = MIN(queue_ns, r->ns);
	if (!queue_ns)
		return;
	r->ns -= queue_ns;
	r->longest_ns = MIN(r->longest_ns, r->ns);
	struct waitaccount_row queue = *r;
	queue.kind = OFFCPU_WOKEN;
	queue.ns = queue_ns;
	queue.longest_ns = queue_ns / queue.nr;
	queue.log2_ns = interval_log2_of(queue.longest_ns);
	queue.cause = (struct wait_cause){
		.ref = r->cause.ref, .reason = WAIT_RUN_QUEUE, .syscall = r->cause.syscall};
	add_row(a, &queue);
}

static bool has_wakes(const struct waitaccount_row *r)
{
	return !r->is_on_cpu && r->kind == OFFCPU_WAIT && r->nr;
}

void waitaccount_distribute_queue(struct waitaccount *a, struct waitaccount_thread *t, uint64_t ns)
{
	uint64_t nr = 0;
	uint32_t first = t->first_row;
	for (uint32_t i = first; i; i = a->rows.p[i - 1].next)
		nr += has_wakes(&a->rows.p[i - 1]) ? a->rows.p[i - 1].nr : 0;
	for (uint32_t i = first; i && nr && ns; i = a->rows.p[i - 1].next) {
		const struct waitaccount_row *r = &a->rows.p[i - 1];
		if (!has_wakes(r))
			continue;
		uint64_t part_ns = (uint64_t)((double)ns * (double)r->nr / (double)nr);
		nr -= r->nr;
		ns -= part_ns;
		split_row(a, i - 1, part_ns);
	}
}

static void forget_gone(struct waitaccount *a)
{
	size_t n = 0;
	for (size_t i = 0; i < a->threads.n; i++) {
		struct waitaccount_thread *t = &a->threads.p[i];
		if (t->state == THREAD_EXITED) {
			const uint32_t *idx = map_get(&a->thread_by_tid, (uint32_t)t->tid);
			if (idx && *idx == i + 1)
				(void)map_del(&a->thread_by_tid, (uint32_t)t->tid);
			continue;
		}
		t->first_row = 0;
		a->threads.p[n++] = *t;
		*map_put(&a->thread_by_tid, (uint32_t)t->tid, NULL) = (uint32_t)n;
	}
	a->threads.n = n;
}

int waitaccount_flush(struct waitaccount *a, const struct event_sink *sink, struct err *err)
{
	static const char *const details[] = {NULL, "preempted", "yielded", "woken"};
	int rc = 0;
	for (size_t i = 0; !rc && i < a->rows.n; i++) {
		const struct waitaccount_row *r = &a->rows.p[i];
		const struct waitaccount_thread *t = &a->threads.p[r->thread];
		int64_t values[] = {(int64_t)r->nr, (int64_t)r->ns, (int64_t)r->longest_ns};
		struct event ev =
			event_aggregate(r->is_on_cpu ? TABLE_ON_CPU : TABLE_OFF_CPU, t->pid, t->tid,
					a->start_ns + r->second * NS_PER_SEC, values);
		ev.aggregate.user_ref = r->cause.ref;
		ev.aggregate.reason = r->cause.reason;
		ev.aggregate.evidence = r->cause.evidence;
		ev.aggregate.log2_ns = r->log2_ns;
		ev.aggregate.syscall = r->cause.syscall;
		ev.aggregate.object =
			r->cause.object ? intern_str(&a->objects, r->cause.object) : NULL;
		ev.aggregate.detail = details[r->kind];
		rc = sink->event(sink->ctx, &ev, err);
	}
	vec_clear(&a->rows);
	map_clear(&a->row_index);
	forget_gone(a);
	return rc;
}
