/* The queue between drain and capture thread; see queue.h. */
#include "base/base.h"
#include "capture/heap/queue.h"

#include "base/clock.h"
#include "base/hash.h"

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
	heapqueue_batch_release(&q->delivering);
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

static int emit_stacks(const struct heapqueue_batch *b, const struct event_sink *sink,
		       struct err *err)
{
	const uint64_t *frames = b->frames.p;
	uint64_t now_ns = clock_mono_ns();
	vec_foreach(s, &b->stacks) {
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
		TRY(sink->event(sink->ctx, &ev, err));
	}
	return 0;
}

static int emit_rows(const struct heapqueue_batch *b, const struct event_sink *sink,
		     struct err *err)
{
	vec_foreach(q, &b->rows) {
		uint64_t ref = heapqueue_ref(q->seed, q->row.stack);
		struct event ev = heapaccount_event(&q->row, q->pid, ref);
		TRY(sink->event(sink->ctx, &ev, err));
	}
	return 0;
}

int heapqueue_deliver(struct heapqueue *q, const struct event_sink *sink, struct err *err)
{
	pthread_mutex_lock(&q->lock);
	struct heapqueue_batch got = q->waiting;
	q->waiting = q->delivering; /* empty; reuses its memory */
	pthread_mutex_unlock(&q->lock);
	int rc = emit_stacks(&got, sink, err);
	rc = rc ? rc : emit_rows(&got, sink, err);
	vec_clear(&got.rows);
	vec_clear(&got.stacks);
	vec_clear(&got.frames);
	q->delivering = got;
	return rc;
}
