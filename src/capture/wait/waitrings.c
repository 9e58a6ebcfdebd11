/*
 * Merges the rings of waits; see waitrings.h. A binary heap has the next record of each ring. Records
 * that were moved to memory (`held`) are older than those in the ring.
 */
#include "base/base.h"
#include "capture/wait/waitrings.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/vec.h"

/* Bytes of all rings together, and records of one. */
#define ALL_BYTES   (32u << 20)
#define RECORDS_MIN (1u << 13)
#define RECORDS_MAX (1u << 17)
/* How often, in records, room is given back during a pass. */
#define PUBLISH_EVERY 4096
/* The largest number of records that are held in memory. */
#define HELD_MAX ((128u << 20) / sizeof(struct wait_record))

struct source_ring {
	struct wait_ring *ring; /* NULL: the runs of waitrings_add */
	/* What a pass reads: positions in `held` if it has records, else in the ring. */
	uint64_t head;
	uint64_t tail;
	VEC(struct wait_record) held;
};

struct slot {
	uint64_t on_ns; /* of the ring's next record */
	uint32_t ring;  /* index */
};

struct waitrings {
	struct source_ring *rings; /* nr_rings, and one more for `added` */
	unsigned nr_rings;
	uint32_t nr_records;
	uint64_t horizon_ns;
	struct slot *heap;
	unsigned nr_heap;
	VEC(struct wait_run) added;
	pthread_mutex_t lock; /* held during a pass and during waitrings_hold */
	size_t nr_held;
};

size_t waitrings_bytes(uint32_t nr_records)
{
	return sizeof(struct wait_ring) + nr_records * sizeof(struct wait_record);
}

uint32_t waitrings_choose(unsigned nr_rings)
{
	uint32_t nr = RECORDS_MAX;
	while (nr > RECORDS_MIN && nr_rings * waitrings_bytes(nr) > ALL_BYTES)
		nr /= 2;
	return nr;
}

struct waitrings *waitrings_new(void *memory, unsigned nr_rings, uint32_t nr_records)
{
	struct waitrings *r = xcalloc(1, sizeof(*r));
	r->nr_rings = nr_rings;
	r->nr_records = nr_records;
	r->rings = xcalloc(nr_rings + 1, sizeof(*r->rings));
	r->heap = xcalloc(nr_rings + 1, sizeof(*r->heap));
	pthread_mutex_init(&r->lock, NULL);
	for (unsigned i = 0; i < nr_rings; i++)
		r->rings[i].ring = (void *)((char *)memory + i * waitrings_bytes(nr_records));
	return r;
}

void waitrings_free(struct waitrings *r)
{
	if (!r)
		return;
	for (unsigned i = 0; i < r->nr_rings; i++)
		vec_release(&r->rings[i].held);
	pthread_mutex_destroy(&r->lock);
	vec_release(&r->added);
	free(r->heap);
	free(r->rings);
	free(r);
}

/* ---- decoding ----------------------------------------------------------------------------- */

static uint32_t saturated(uint64_t ns)
{
	return ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
}

/* Converts a record except for its durations. */
static void decode(const struct wait_record *w, struct wait_run *run)
{
	bool is_futex = w->object_kind == OBJECT_FUTEX;
	run->interval = (struct wait_interval){
		.off_ns = w->off_ns,
		.user_ref = w->user_ref,
		.kernel_ref = w->kernel_ref,
		.waker_ref = w->waker_ref,
		.object = w->object,
		.tgid = w->tgid,
		.tid = w->tid,
		.waker_tgid = w->waker_tgid,
		.waker_tid = w->waker_tid,
		.owner_tid = is_futex ? w->fd : 0,
		.fd = is_futex ? WAIT_NO_FD : w->fd,
		.dev = w->dev,
		.syscall = w->syscall,
		.reason = w->reason,
		.evidence = w->evidence,
		.how = w->how,
		.object_kind = w->object_kind,
		.cpu = w->cpu,
	};
}

static void set_durations(struct wait_run *run, uint64_t blocked_ns, uint64_t queue_ns,
			  uint64_t ran_ns, uint64_t run_ns)
{
	struct wait_interval *i = &run->interval;
	i->woken_ns = i->off_ns + blocked_ns;
	i->on_ns = i->woken_ns + queue_ns;
	i->run_ns = saturated(run_ns);
	run->ran_ns = ran_ns;
	run->run_ns = run_ns;
}

void waitrings_add(struct waitrings *r, const struct wait_single *s)
{
	struct wait_run *run = vec_add(&r->added);
	decode(&s->record, run);
	set_durations(run, s->blocked_ns, s->queue_ns, s->ran_ns, s->run_ns);
}

static const struct wait_record *record_at(const struct waitrings *r, const struct source_ring *s)
{
	return s->held.n ? &s->held.p[s->tail] : &s->ring->records[s->tail & (r->nr_records - 1)];
}

/* When the next interval of a ring ended; UINT64_MAX: the ring is empty. */
static uint64_t next_on_ns(const struct waitrings *r, const struct source_ring *s)
{
	if (s->tail == s->head)
		return UINT64_MAX;
	if (!s->ring)
		return r->added.p[s->tail].interval.on_ns;
	const struct wait_record *w = record_at(r, s);
	return w->off_ns + w->blocked_ns + w->queue_ns;
}

/* ---- merging ------------------------------------------------------------------------------ */

static void sift_down(struct waitrings *r, unsigned at)
{
	for (;;) {
		unsigned least = 2 * at + 1;
		if (least >= r->nr_heap)
			return;
		if (least + 1 < r->nr_heap && r->heap[least + 1].on_ns < r->heap[least].on_ns)
			least++;
		if (r->heap[at].on_ns <= r->heap[least].on_ns)
			return;
		struct slot s = r->heap[at];
		r->heap[at] = r->heap[least];
		r->heap[least] = s;
		at = least;
	}
}

/* ---- holding ------------------------------------------------------------------------------ */

static void hold_ring(struct waitrings *r, struct source_ring *s, uint64_t head)
{
	uint64_t tail = s->ring->tail;
	for (; tail != head; tail++)
		vec_push(&s->held, s->ring->records[tail & (r->nr_records - 1)]);
	r->nr_held += head - s->ring->tail;
	__atomic_store_n(&s->ring->tail, head, __ATOMIC_RELEASE);
}

static uint64_t head_of(const struct source_ring *s)
{
	return __atomic_load_n(&s->ring->head, __ATOMIC_ACQUIRE);
}

void waitrings_hold(struct waitrings *r)
{
	pthread_mutex_lock(&r->lock);
	for (unsigned i = 0; i < r->nr_rings; i++) {
		struct source_ring *s = &r->rings[i];
		uint64_t head = head_of(s);
		uint64_t used = head - s->ring->tail;
		if (used > r->nr_records / 4 && r->nr_held + used <= HELD_MAX)
			hold_ring(r, s, head);
	}
	pthread_mutex_unlock(&r->lock);
}

/* Begins a pass over a ring: over what is held, and then all of the ring is; else over the ring. */
static void begin_ring(struct waitrings *r, struct source_ring *s)
{
	__atomic_store_n(&s->ring->is_woken, 0, __ATOMIC_RELAXED);
	s->head = head_of(s);
	s->tail = s->ring->tail;
	if (!s->held.n)
		return;
	hold_ring(r, s, s->head);
	s->head = s->held.n;
	s->tail = 0;
}

static void publish(const struct source_ring *s)
{
	if (s->ring && !s->held.n)
		__atomic_store_n(&s->ring->tail, s->tail, __ATOMIC_RELEASE);
}

static void end_ring(struct waitrings *r, struct source_ring *s)
{
	publish(s);
	if (!s->held.n)
		return;
	s->held.n -= s->tail;
	r->nr_held -= s->tail;
	memmove(s->held.p, s->held.p + s->tail, s->held.n * sizeof(*s->held.p));
}

/* ---- passes ------------------------------------------------------------------------------- */

static int by_on_ns(const void *x, const void *y)
{
	const struct wait_run *a = x;
	const struct wait_run *b = y;
	return COMPARE(a->interval.on_ns, b->interval.on_ns)
		       ?: COMPARE(a->interval.tid, b->interval.tid);
}

void waitrings_begin(struct waitrings *r, uint64_t horizon_ns)
{
	pthread_mutex_lock(&r->lock);
	r->horizon_ns = horizon_ns;
	r->nr_heap = 0;
	if (r->added.n)
		qsort(r->added.p, r->added.n, sizeof(*r->added.p), by_on_ns);
	r->rings[r->nr_rings] = (struct source_ring){.head = r->added.n};
	for (unsigned i = 0; i <= r->nr_rings; i++) {
		struct source_ring *s = &r->rings[i];
		if (s->ring)
			begin_ring(r, s);
		uint64_t on_ns = next_on_ns(r, s);
		if (on_ns <= horizon_ns)
			r->heap[r->nr_heap++] = (struct slot){on_ns, i};
	}
	for (unsigned i = r->nr_heap / 2; i-- > 0;)
		sift_down(r, i);
}

bool waitrings_next(struct waitrings *r, struct wait_run *ret_run)
{
	if (!r->nr_heap)
		return false;
	struct source_ring *s = &r->rings[r->heap[0].ring];
	if (s->ring) {
		const struct wait_record *w = record_at(r, s);
		decode(w, ret_run);
		set_durations(ret_run, w->blocked_ns, w->queue_ns, w->ran_ns, w->run_ns);
	} else {
		*ret_run = r->added.p[s->tail];
	}
	s->tail++;
	if (s->tail % PUBLISH_EVERY == 0)
		publish(s);
	r->heap[0].on_ns = next_on_ns(r, s);
	if (r->heap[0].on_ns > r->horizon_ns)
		r->heap[0] = r->heap[--r->nr_heap];
	sift_down(r, 0);
	return true;
}

void waitrings_end(struct waitrings *r)
{
	for (unsigned i = 0; i < r->nr_rings; i++)
		end_ring(r, &r->rings[i]);
	size_t nr_read = r->rings[r->nr_rings].tail;
	if (nr_read)
		memmove(r->added.p, r->added.p + nr_read,
			(r->added.n - nr_read) * sizeof(*r->added.p));
	r->added.n -= nr_read;
	pthread_mutex_unlock(&r->lock);
}
