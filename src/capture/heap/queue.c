/* The queue between drain and capture thread; see queue.h. */
#include "base/base.h"
#include "capture/heap/queue.h"

#include "base/clock.h"
#include "base/hash.h"
#include "capture/bpf/kernelrecord.h"

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
	vec_release(&b->codes);
	vec_release(&b->pystacks);
}

static size_t words_of(const struct kernel_record *r)
{
	return ((size_t)r->nr_bytes + 7) / 8;
}

void heapqueue_batch_python(struct heapqueue_batch *b, const struct kernel_record *r)
{
	const uint64_t *words = (const void *)r;
	for (size_t i = 0; i < words_of(r); i++)
		if (r->kind == RECORD_PYCODE)
			vec_push(&b->codes, words[i]);
		else
			vec_push(&b->pystacks, words[i]);
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
	if (!b->rows.n && !b->stacks.n && !b->codes.n && !b->pystacks.n)
		return;
	pthread_mutex_lock(&q->lock);
	APPEND(&q->waiting.rows, &b->rows);
	APPEND(&q->waiting.stacks, &b->stacks);
	APPEND(&q->waiting.frames, &b->frames);
	APPEND(&q->waiting.codes, &b->codes);
	APPEND(&q->waiting.pystacks, &b->pystacks);
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

static int emit_pythons(const uint64_t *words, size_t nr, const struct event_sink *sink,
			struct err *err)
{
	const struct kernel_record *r;
	for (size_t at = 0; at < nr; at += words_of(r)) {
		struct event ev;
		r = (const void *)(words + at);
		if (kernelrecord_is_sane(r, r->nr_bytes) && kernelrecord_decode(r, NULL, &ev))
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
	/* refer to native stacks and code objects, of other rings, too */
	rc = rc ? rc : emit_pythons(got.codes.p, got.codes.n, sink, err);
	rc = rc ? rc : emit_pythons(got.pystacks.p, got.pystacks.n, sink, err);
	rc = rc ? rc : emit_rows(&got, sink, err);
	vec_clear(&got.rows);
	vec_clear(&got.stacks);
	vec_clear(&got.frames);
	vec_clear(&got.codes);
	vec_clear(&got.pystacks);
	q->delivering = got;
	return rc;
}
