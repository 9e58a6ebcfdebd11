/* Simulated locks; see locksim.h. */
#include "base/base.h"
#include "locksim.h"

#include <stdlib.h>

#include "base/clock.h"
#include "kernel_wait.h"
#include "wait_reason.h"

#define SPIN_US  8
#define SLICE_US 3000

enum doing { DO_THINK, DO_REST, DO_ACQUIRE, DO_HOLD, DO_BLOCK, DO_RELEASE };
enum place { ON_CPU, QUEUED, ASLEEP };

struct thread {
	enum doing doing;
	enum place place;
	uint32_t left_us; /* of what it does */
	uint32_t slice_us;
	uint32_t spun_us;
	uint32_t wait_since_us;
	bool is_waiting; /* for the lock */
	struct wait_interval v;
};

struct sim {
	struct locksim *s;
	uint64_t random;
	uint32_t now_us;
	struct thread threads[LOCKSIM_THREADS];
	int cpus[LOCKSIM_THREADS];    /* thread, -1 = idle */
	int queue[LOCKSIM_THREADS];   /* run queue */
	int waiters[LOCKSIM_THREADS]; /* of the lock, first come first served */
	uint32_t nr_queue;
	uint32_t nr_waiters;
	int holder; /* -1 = free */
	/* By microsecond: holder and whether it was blocked. */
	int8_t *holders;
	bool *is_blocked;
};

static uint32_t random_below(struct sim *m, uint32_t n)
{
	m->random ^= m->random << 13;
	m->random ^= m->random >> 7;
	m->random ^= m->random << 17;
	return n ? (uint32_t)(m->random % n) : 0;
}

/* Around a mean. */
static uint32_t about(struct sim *m, uint32_t mean)
{
	return mean / 2 + random_below(m, mean + 1);
}

static uint64_t ns_of(uint32_t us)
{
	return LOCKSIM_START + us * NS_PER_US;
}

/* ---- the scheduler ------------------------------------------------------------------------- */

static void leave_cpu(struct sim *m, int i, enum wait_how how, enum wait_reason reason,
		      uint64_t stack)
{
	struct thread *t = &m->threads[i];
	for (uint32_t c = 0; c < m->s->nr_cpus; c++)
		if (m->cpus[c] == i)
			m->cpus[c] = -1;
	t->v = (struct wait_interval){
		.off_ns = ns_of(m->now_us),
		.woken_ns = ns_of(m->now_us),
		.user_ref = stack,
		.tgid = LOCKSIM_TGID,
		.tid = LOCKSIM_TID + i,
		.fd = WAIT_NO_FD,
		.how = (uint8_t)how,
		.reason = (uint8_t)reason,
	};
	t->place = how == HOW_BLOCKED ? ASLEEP : QUEUED;
	if (how != HOW_BLOCKED)
		m->queue[m->nr_queue++] = i;
}

/* @by < 0: a timer or a device. */
static void wake(struct sim *m, int i, int by)
{
	struct thread *t = &m->threads[i];
	t->v.woken_ns = ns_of(m->now_us);
	if (by >= 0) {
		t->v.waker_tgid = LOCKSIM_TGID;
		t->v.waker_tid = LOCKSIM_TID + by;
		t->v.waker_ref = LOCKSIM_RELEASE + m->s->plans[by].place;
	} else {
		t->v.evidence |= EVIDENCE_BY_IRQ;
	}
	t->place = QUEUED;
	m->queue[m->nr_queue++] = i;
}

static void dispatch(struct sim *m)
{
	for (uint32_t c = 0; c < m->s->nr_cpus && m->nr_queue; c++) {
		if (m->cpus[c] >= 0)
			continue;
		int i = m->queue[0];
		struct thread *t = &m->threads[i];
		if (ns_of(m->now_us) < t->v.woken_ns + NS_PER_US) /* a wake-up takes time */
			continue;
		memmove(m->queue, m->queue + 1, --m->nr_queue * sizeof(*m->queue));
		m->cpus[c] = i;
		t->place = ON_CPU;
		t->slice_us = m->s->slice_us ? m->s->slice_us : SLICE_US;
		t->v.on_ns = ns_of(m->now_us);
		if (t->v.off_ns)
			vec_push(&m->s->intervals, t->v);
	}
}

/* ---- the lock ------------------------------------------------------------------------------ */

static void begin(struct sim *m, int i, enum doing doing)
{
	struct thread *t = &m->threads[i];
	const struct locksim_plan *p = &m->s->plans[i];
	t->doing = doing;
	switch (doing) {
	case DO_THINK:
		t->left_us = p->is_burner ? UINT32_MAX : about(m, p->think_us);
		break;
	case DO_REST:
		t->left_us = about(m, p->rest_us);
		break;
	case DO_ACQUIRE:
		t->spun_us = 0;
		break;
	case DO_HOLD:
		t->left_us = p->hold_us;
		break;
	case DO_BLOCK:
		t->left_us = p->block_us;
		break;
	case DO_RELEASE:
		break;
	}
}

static void acquire(struct sim *m, int i)
{
	struct thread *t = &m->threads[i];
	unsigned kind = m->s->kind;
	if (m->holder < 0 || m->holder == i) {
		m->holder = i;
		begin(m, i, DO_HOLD);
		return;
	}
	if (kind & LOCKSIM_SPINNING && t->spun_us++ < SPIN_US)
		return;
	m->waiters[m->nr_waiters++] = i;
	t->is_waiting = true;
	t->wait_since_us = m->now_us;
	int holder = m->holder;
	leave_cpu(m, i, HOW_BLOCKED, WAIT_SYNC, LOCKSIM_WAIT + m->s->plans[i].place);
	t->v.object_kind = OBJECT_FUTEX;
	t->v.object = kind & LOCKSIM_OWN_WORD ? LOCKSIM_OBJECT + 64 * (uint64_t)i : LOCKSIM_OBJECT;
	if (kind & LOCKSIM_OWNER)
		t->v.owner_tid = LOCKSIM_TID + holder;
}

static void count_truth(struct sim *m, int i)
{
	for (uint32_t at = m->threads[i].wait_since_us; at < m->now_us; at++) {
		m->s->wait_ns += NS_PER_US;
		if (m->holders[at] < 0) {
			m->s->free_ns += NS_PER_US;
			continue;
		}
		m->s->held_ns[m->holders[at]] += NS_PER_US;
		m->s->blocked_ns[m->holders[at]] += m->is_blocked[at] ? NS_PER_US : 0;
	}
}

static void release(struct sim *m, int i)
{
	m->holder = -1;
	begin(m, i, DO_THINK);
	if (!m->nr_waiters)
		return;
	int to = m->waiters[0];
	memmove(m->waiters, m->waiters + 1, --m->nr_waiters * sizeof(*m->waiters));
	m->threads[to].is_waiting = false;
	count_truth(m, to);
	wake(m, to, i);
	bool is_fair = !(m->s->kind & LOCKSIM_BARGING);
	if (m->s->kind & LOCKSIM_BARGING && m->s->kind & LOCKSIM_OWN_WORD)
		is_fair = random_below(m, 2); /* parking_lot: from time to time */
	if (is_fair)
		m->holder = to;
}

/* ---- time ---------------------------------------------------------------------------------- */

/* The thread runs for a microsecond. */
static void run(struct sim *m, int i)
{
	struct thread *t = &m->threads[i];
	const struct locksim_plan *p = &m->s->plans[i];
	if (t->doing == DO_THINK && !t->left_us && p->rest_us) {
		begin(m, i, DO_REST);
		leave_cpu(m, i, HOW_BLOCKED, WAIT_SLEEP, LOCKSIM_REST);
		return;
	}
	if ((t->doing == DO_THINK || t->doing == DO_REST) && !t->left_us)
		begin(m, i, DO_ACQUIRE);
	if (t->doing == DO_ACQUIRE) {
		acquire(m, i);
		return;
	}
	if (t->doing == DO_HOLD && !t->left_us) {
		if (p->block_us) {
			begin(m, i, DO_BLOCK);
			leave_cpu(m, i, HOW_BLOCKED, (enum wait_reason)p->reason, LOCKSIM_BLOCK);
			return;
		}
		begin(m, i, DO_RELEASE);
	}
	if (t->doing == DO_RELEASE || (t->doing == DO_BLOCK && !t->left_us)) {
		release(m, i);
		return;
	}
	t->left_us--;
	if (t->slice_us && !--t->slice_us && m->nr_queue)
		leave_cpu(m, i, HOW_PREEMPTED, WAIT_RUN_QUEUE, LOCKSIM_RUN);
}

static void run_timers(struct sim *m)
{
	for (uint32_t i = 0; i < m->s->nr_threads; i++) {
		struct thread *t = &m->threads[i];
		if (t->place != ASLEEP || t->is_waiting)
			continue;
		if (!t->left_us || !--t->left_us)
			wake(m, (int)i, -1);
	}
}

void locksim_run(struct locksim *s)
{
	struct sim *m = xcalloc(1, sizeof(*m));
	m->s = s;
	m->random = s->seed * 0x9e3779b97f4a7c15ull + 1;
	m->holder = -1;
	m->holders = xcalloc(s->nr_us, sizeof(*m->holders));
	m->is_blocked = xcalloc(s->nr_us, sizeof(*m->is_blocked));
	for (uint32_t c = 0; c < s->nr_cpus; c++)
		m->cpus[c] = -1;
	for (uint32_t i = 0; i < s->nr_threads; i++) {
		begin(m, (int)i, DO_THINK);
		m->threads[i].place = QUEUED;
		m->queue[m->nr_queue++] = (int)i;
	}
	for (m->now_us = 1; m->now_us < s->nr_us; m->now_us++) {
		m->holders[m->now_us] = (int8_t)m->holder;
		m->is_blocked[m->now_us] = m->holder >= 0 && m->threads[m->holder].place == ASLEEP;
		run_timers(m);
		dispatch(m);
		for (uint32_t c = 0; c < s->nr_cpus; c++)
			if (m->cpus[c] >= 0)
				run(m, m->cpus[c]);
	}
	free(m->holders);
	free(m->is_blocked);
	free(m);
}

void locksim_release(struct locksim *s)
{
	vec_release(&s->intervals);
}
