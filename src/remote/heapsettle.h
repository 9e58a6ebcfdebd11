/*
 * Whether any thread of a process executes in given ranges: after code there was made unreachable,
 * each thread is looked at until it has been seen outside once, one after the other. Threads that
 * wait tell their pc through /proc; those that run are stopped for the look, one at a time.
 */
#ifndef ASSAY_REMOTE_HEAPSETTLE_H
#define ASSAY_REMOTE_HEAPSETTLE_H

#include "base/base.h"
#include "base/err.h"
#include "plan/heapplan.h"

/*
 * -EBUSY: one was still there at the deadline (clock_mono_ns). *ret_longest_ns: the longest stop.
 */
int heapsettle(int32_t pid, const struct heap_range *ranges, size_t nr_ranges, uint64_t deadline_ns,
	       uint64_t *ret_longest_ns, struct err *err);

#endif
