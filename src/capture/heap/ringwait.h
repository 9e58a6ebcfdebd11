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

#define RINGWAIT_FUTEXES_MAX 127 /* the kernel waits for 128 at a time */

struct ringwait {
	uint32_t own; /* 0: asleep, or about to be */
	uint32_t nr_wake_futexes;
	uint32_t *wake_futexes[RINGWAIT_FUTEXES_MAX];
};

/* What calls ringwait_wake from now on keeps it from sleeping. */
void ringwait_begin(struct ringwait *n);
/* The memory may be unmapped while it sleeps, but not before. False: too many. */
bool ringwait_add(struct ringwait *n, uint32_t *wake_futex);
/*
 * Sleeps. 0: the time was over, 1: it was woken or a bell rang, -ENOSYS: this kernel cannot, or
 * may not.
 */
int ringwait_sleep(struct ringwait *n, uint64_t until_ns);
/* From any thread. */
void ringwait_wake(struct ringwait *n);

#endif
