/*
 * A queue of stacks and rows of all processes, from the drain thread to the capture thread, which
 * alone may call the sink.
 */
#ifndef ASSAY_CAPTURE_HEAP_QUEUE_H
#define ASSAY_CAPTURE_HEAP_QUEUE_H

#include <pthread.h>

#include "base/base.h"
#include "base/err.h"
#include "base/vec.h"
#include "capture/heap/heapaccount.h"
#include "kernel_record.h"
#include "model/event.h"

struct heapqueue_row {
	int32_t pid;
	uint64_t seed; /* of the process's stack references */
	struct heapaccount_row row;
};

struct heapqueue_stack {
	int32_t pid;
	uint64_t ref;
	enum loss_kind loss;
	uint32_t nr_frames; /* number of entries in `frames`, in order */
};

/* A batch, filled by one thread without a lock. */
struct heapqueue_batch {
	VEC(struct heapqueue_row) rows;
	VEC(struct heapqueue_stack) stacks;
	VEC(uint64_t) frames;
	/* Code objects and frames of Python, one after the other (wire/kernel_python.h). */
	VEC(uint64_t) codes;
	VEC(uint64_t) pystacks;
};

struct heapqueue {
	pthread_mutex_t lock;
	struct heapqueue_batch waiting;
	struct heapqueue_batch delivering; /* used by heapqueue_deliver only */
};

void heapqueue_init(struct heapqueue *q);
void heapqueue_release(struct heapqueue *q);
void heapqueue_batch_release(struct heapqueue_batch *b);
/* Adds a RECORD_PYCODE or RECORD_PYSTACK. */
void heapqueue_batch_python(struct heapqueue_batch *b, const struct kernel_record *r);
/* Moves the contents of @b into the queue. */
void heapqueue_put(struct heapqueue *q, struct heapqueue_batch *b);
/* Passes all queued stacks and rows to @sink. */
int heapqueue_deliver(struct heapqueue *q, const struct event_sink *sink, struct err *err);

/* The reference of a stack id; 0 stays 0. */
uint64_t heapqueue_ref(uint64_t seed, uint32_t stack);

#endif
