/*
 * How the thread that empties rings sleeps when they fill slowly: until a time, until somebody here
 * wakes it, or until a recorder finds its ring filling and rings its bell (struct heap_shared). All
 * of them are futexes; futex_waitv waits for many.
 *
 * Bells lie in memory that targets write. One that rings for nothing costs a look at its ring: who
 * was woken is to sleep for a few short times without bells.
 */
#ifndef ASSAY_CAPTURE_HEAP_RINGWAIT_H
#define ASSAY_CAPTURE_HEAP_RINGWAIT_H

#include "base/base.h"

#define HEAPNAP_BELLS_MAX 127 /* the kernel waits for 128 at a time */

struct heapnap {
	uint32_t own; /* 0: asleep, or about to be */
	uint32_t nr_bells;
	uint32_t *bells[HEAPNAP_BELLS_MAX];
};

/* What calls heapnap_wake from now on keeps it from sleeping. */
void heapnap_begin(struct heapnap *n);
/* The memory may be unmapped while it sleeps, but not before. False: too many. */
bool heapnap_add(struct heapnap *n, uint32_t *bell);
/*
 * Sleeps. 0: the time was over, 1: it was woken or a bell rang, -ENOSYS: this kernel cannot, or
 * may not.
 */
int heapnap_sleep(struct heapnap *n, uint64_t until_ns);
/* From any thread. */
void heapnap_wake(struct heapnap *n);

#endif
