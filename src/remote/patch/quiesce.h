/*
 * Waits until, or ensures that, the pc of no thread of a process is in given code ranges. Only the
 * pc is tested, not the call stack: a thread in a function that code in a range has called is
 * outside, and returns into the range later. Callers therefore pass only code that makes no calls,
 * or code that stays mapped and valid after the change (the recorder's image and stubs are never
 * unmapped).
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
 * -EBUSY: a thread was inside until @deadline_ns (clock_mono_ns). -ESRCH: the process has ended.
 * *ret_longest_ns is raised to the longest time that a thread was stopped.
 */
int quiesce_threads(int32_t pid, const struct heap_ranges *ranges, uint64_t deadline_ns,
		    uint64_t *ret_longest_ns, struct err *err);
/*
 * Whether a thread may be in the ranges or come back to them, for code that cannot be entered any
 * more: its pc, or any word of its stack, is an address in them. It is also true where that cannot be
 * excluded: in a signal handler, which may run on another stack, with more than 1 MiB of stack,
 * where memory cannot be read, during a fork. A stale word in an
 * unused part of a frame makes it true as well.
 */
bool quiesce_may_return(int32_t pid, const struct heap_ranges *ranges, uint64_t *ret_longest_ns);
/*
 * Calls @change while all threads are stopped and none is in one of the ranges. @change must be
 * short and not use ptrace. -EBUSY: a thread was inside at each of 50 attempts. *ret_longest_ns is
 * raised to the longest time that the threads were stopped. Else errors of @change and of ptrace.
 */
int stop_all_threads(int32_t pid, const struct heap_ranges *ranges,
		     int (*change)(void *ctx, struct err *err), void *ctx, uint64_t *ret_longest_ns,
		     struct err *err);

#endif
