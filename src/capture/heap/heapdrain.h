/*
 * The drain thread of a heap capture: drains the rings of all processes in `list`, repeatedly.
 * `lock` is held during a drain, and for changes of the list or a process in it; the thread that
 * changes them takes it by heapdrain_lock.
 */
#ifndef ASSAY_CAPTURE_HEAP_HEAPDRAIN_H
#define ASSAY_CAPTURE_HEAP_HEAPDRAIN_H

#include <pthread.h>

#include "base/base.h"
#include "base/err.h"
#include "base/vec.h"
#include "capture/heap/process.h"
#include "capture/heap/ringwait.h"

struct heapdrain {
	pthread_mutex_t lock;
	pthread_cond_t wakes;
	pthread_t thread;
	bool has_thread;
	bool is_stopping;
	bool is_wanted; /* another thread waits for the lock */
	bool has_no_ringwait;
	struct ringwait ringwait;
	VEC(struct heapprocess *) list;
	uint64_t drain_ns;       /* CPU time of the thread */
	uint64_t longest_gap_ns; /* between two drains */
};

void heapdrain_init(struct heapdrain *d);
int heapdrain_start(struct heapdrain *d, struct err *err);
/* Ends the thread; the list stays. */
void heapdrain_stop(struct heapdrain *d);
/* After heapdrain_stop; the list is empty. */
void heapdrain_release(struct heapdrain *d);

/* Takes the lock. The drain thread retakes a mutex at once, so is_wanted makes it yield. */
void heapdrain_lock(struct heapdrain *d);
void heapdrain_unlock(struct heapdrain *d);
void heapdrain_add(struct heapdrain *d, struct heapprocess *p);
/* With the lock held. */
void heapdrain_remove(struct heapdrain *d, const struct heapprocess *p);
struct heapprocess *heapdrain_process(const struct heapdrain *d, int32_t pid); /* NULL: none */

#endif
