/*
 * The peaks of programs that a process replaced by exec. A process with several programs has the
 * peak of the one with most live bytes: the heaps did not exist at the same time, so their rows
 * are not added.
 */
#ifndef ASSAY_CAPTURE_HEAP_HEAPPEAKS_H
#define ASSAY_CAPTURE_HEAP_HEAPPEAKS_H

#include "base/base.h"
#include "base/vec.h"
#include "capture/heap/queue.h"

struct heappeak {
	int32_t pid;
	double live_bytes;
	struct heapqueue_batch rows;
};

struct heappeaks {
	VEC(struct heappeak) list; /* one for each process */
};

void heappeaks_release(struct heappeaks *k);
/* Keeps the larger one of the process's peaks. Takes over the contents of @rows. */
void heappeaks_add(struct heappeaks *k, int32_t pid, double live_bytes,
		   struct heapqueue_batch *rows);
/* Queues the peak of a process that has ended, if there is one; @pid 0: of all. */
void heappeaks_put(struct heappeaks *k, int32_t pid, struct heapqueue *to);

#endif
