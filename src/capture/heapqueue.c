/* See heapqueue.h. */
#include "base/base.h"
#include "capture/heapqueue.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "model/wait.h"

void heapqueue_init(struct heapqueue *q)
{
	*q = (struct heapqueue){0};
	pthread_mutex_init(&q->lock, NULL);
}

void heapqueue_batch_release(struct heapqueue_batch *b)
{
	vec_release(&b->rows);
	vec_release(&b->stacks);
	vec_release(&b->frames);
}

void heapqueue_release(struct heapqueue *q)
{
	heapqueue_batch_release(&q->waiting);
	heapqueue_batch_release(&q->given);
	pthread_mutex_destroy(&q->lock);
}

#define APPEND(to, from)                                                                      \
	do {                                                                                  \
		if ((from)->n) {                                                              \
			vec_reserve(to, (to)->n + (from)->n);                                 \
			memcpy((to)->p + (to)->n, (from)->p, (from)->n * sizeof(*(from)->p)); \
			(to)->n += (from)->n;                                                 \
			vec_clear(from);                                                      \
		}                                                                             \
	} while (0)

void heapqueue_put(struct heapqueue *q, struct heapqueue_batch *b)
{
	if (!b->rows.n && !b->stacks.n)
		return;
	pthread_mutex_lock(&q->lock);
	APPEND(&q->waiting.rows, &b->rows);
	APPEND(&q->waiting.stacks, &b->stacks);
	APPEND(&q->waiting.frames, &b->frames);
	pthread_mutex_unlock(&q->lock);
}

uint64_t heapqueue_ref(uint64_t seed, uint32_t stack)
{
	return stack ? hash_mix(seed, stack) | 1 : 0;
}

static int tell_stacks(const struct heapqueue_batch *b, const struct event_sink *sink,
		       struct err *err)
{
	const uint64_t *frames = b->frames.p;
	uint64_t now_ns = clock_mono_ns();
	int rc = 0;
	for (size_t i = 0; !rc && i < b->stacks.n; i++) {
		const struct heapqueue_stack *s = &b->stacks.p[i];
		struct event ev = {.kind = EVENT_STACK,
				   .time_ns = now_ns,
				   .pid = s->pid,
				   .tid = s->pid,
				   .cpu = -1,
				   .stack = {.ref = s->ref,
					     .is_callers = true,
					     .chain = frames,
					     .nr_chain = s->nr_frames,
					     .loss = s->loss}};
		frames += s->nr_frames;
		rc = sink->event(sink->ctx, &ev, err);
	}
	return rc;
}

static int tell_rows(const struct heapqueue_batch *b, const struct event_sink *sink,
		     struct err *err)
{
	int rc = 0;
	for (size_t i = 0; !rc && i < b->rows.n; i++) {
		const struct heapqueue_row *q = &b->rows.p[i];
		const struct heapbook_row *row = &q->row;
		struct event ev = {.kind = EVENT_TALLY,
				   .time_ns = row->time_ns,
				   .pid = q->pid,
				   .tid = row->tid > 0 ? row->tid : q->pid,
				   .cpu = -1,
				   .tally = {.spec = row->spec,
					     .user_ref = heapqueue_ref(q->seed, row->stack),
					     .log2_ns = LOG2_NONE,
					     .size_class = row->size_class,
					     .syscall = -1,
					     .detail = row->detail,
					     .values = row->values}};
		rc = sink->event(sink->ctx, &ev, err);
	}
	return rc;
}

int heapqueue_deliver(struct heapqueue *q, const struct event_sink *sink, struct err *err)
{
	pthread_mutex_lock(&q->lock);
	struct heapqueue_batch got = q->waiting;
	q->waiting = q->given; /* empty; its memory is used again */
	pthread_mutex_unlock(&q->lock);
	int rc = tell_stacks(&got, sink, err);
	rc = rc ? rc : tell_rows(&got, sink, err);
	vec_clear(&got.rows);
	vec_clear(&got.stacks);
	vec_clear(&got.frames);
	q->given = got;
	return rc;
}
