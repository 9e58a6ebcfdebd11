/*
 * Sleeps between drains: until a time, until another thread of assay wakes it, or until a recorder
 * signals that its ring is filling (wake-up futex of struct heap_shared). Waits for all futexes
 * with one futex_waitv call.
 *
 * The wake-up futexes are in memory that targets can write. A spurious wake-up costs a check of the
 * ring. A caller that gets many of them should not add the futexes for its next few sleeps, and
 * make these short.
 */
#ifndef ASSAY_CAPTURE_HEAP_RINGWAIT_H
#define ASSAY_CAPTURE_HEAP_RINGWAIT_H

#include "base/base.h"

#define RINGWAIT_FUTEXES_MAX 127 /* the kernel waits for 128 at a time */

struct ringwait {
	uint32_t is_woken; /* futex: ringwait_begin sets it to 0, ringwait_wake to 1 */
	uint32_t nr_wake_futexes;
	uint32_t *wake_futexes[RINGWAIT_FUTEXES_MAX];
};

/* Prepares to sleep: a ringwait_wake from now on makes ringwait_sleep return at once. */
void ringwait_begin(struct ringwait *w);
/* Adds a futex. Its memory may be unmapped during the sleep, not before. False: too many. */
bool ringwait_add(struct ringwait *w, uint32_t *wake_futex);
/*
 * Sleeps until @until_ns (CLOCK_MONOTONIC). Returns 0: timeout, 1: woken, -ENOSYS: futex_waitv is
 * not available or not permitted.
 */
int ringwait_sleep(struct ringwait *w, uint64_t until_ns);
/* Wakes the sleeper; from any thread. */
void ringwait_wake(struct ringwait *w);

#define RINGWAIT_PAUSE_MIN_NS 300000u
/*
 * The next pause between two drains after one of @pause_ns, when the fullest ring was full to
 * @fullest of 1024 parts. Grows slowly, shrinks at once.
 */
uint64_t ringwait_next_pause(uint64_t pause_ns, uint32_t fullest, uint64_t max_ns);

#endif
