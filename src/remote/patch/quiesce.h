/*
 * Where the threads of a process stand, for changes of its code.
 *
 * quiesce_threads: after code was made unreachable, each thread is looked at until it has been seen
 * outside of it once, one after the other. Threads that wait tell their pc through /proc; those that
 * run are stopped for the look, one at a time.
 *
 * heapstop_all: all threads stopped for a moment, for changes that are no single store. The last
 * resort of patchtext.c: everything else is done with all threads running. Threads in an
 * uninterruptible wait are left alone, they execute nothing.
 */
#ifndef ASSAY_REMOTE_PATCH_QUIESCE_H
#define ASSAY_REMOTE_PATCH_QUIESCE_H

#include "base/base.h"
#include "base/err.h"
#include "plan/heapplan.h"

/*
 * -EBUSY: one was still there at the deadline (clock_mono_ns). *ret_longest_ns: the longest stop.
 */
int quiesce_threads(int32_t pid, const struct heap_ranges *ranges, uint64_t deadline_ns,
		    uint64_t *ret_longest_ns, struct err *err);
/*
 * Calls @change while no thread stands in one of the ranges; @change must not take long, and must
 * not use ptrace. -EBUSY: one always did.
 */
int heapstop_all(int32_t pid, const struct heap_ranges *ranges,
		 int (*change)(void *ctx, struct err *err), void *ctx, uint64_t *ret_longest_ns,
		 struct err *err);

#endif
