/*
 * Waits until, or ensures that, no thread of a process executes given code.
 *
 * quiesce_threads: for code that cannot be entered any more. Checks each thread until its pc has
 * been outside of the ranges once, one thread after another: the pc of waiting threads is read from
 * /proc, running threads are stopped briefly, one at a time.
 *
 * stop_all_threads: stops all threads for a change that is not a single store. patchtext.c uses it
 * only where nothing else works. Threads in an uninterruptible wait are not stopped, as they
 * execute no user code.
 */
#ifndef ASSAY_REMOTE_PATCH_QUIESCE_H
#define ASSAY_REMOTE_PATCH_QUIESCE_H

#include "base/base.h"
#include "base/err.h"
#include "plan/heapplan.h"

/*
 * -EBUSY: a thread was inside until the deadline (clock_mono_ns). *ret_longest_ns: longest stop.
 */
int quiesce_threads(int32_t pid, const struct heap_ranges *ranges, uint64_t deadline_ns,
		    uint64_t *ret_longest_ns, struct err *err);
/*
 * Calls @change while all threads are stopped and none is in one of the ranges. @change must be
 * short and not use ptrace. -EBUSY: a thread was inside at each attempt.
 */
int stop_all_threads(int32_t pid, const struct heap_ranges *ranges,
		     int (*change)(void *ctx, struct err *err), void *ctx, uint64_t *ret_longest_ns,
		     struct err *err);

#endif
