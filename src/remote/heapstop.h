/*
 * All threads of a process stopped for a moment, for changes of code that are no single store.
 * The last resort of heaptext.c: everything else is done with all threads running. Threads in an
 * uninterruptible wait are left alone, they execute nothing.
 */
#ifndef ASSAY_REMOTE_HEAPSTOP_H
#define ASSAY_REMOTE_HEAPSTOP_H

#include "base/base.h"
#include "base/err.h"
#include "plan/heapplan.h"

/*
 * Calls @change while no thread stands in one of the ranges; @change must not take long, and must
 * not use ptrace. -EBUSY: one always did.
 */
int heapstop_all(int32_t pid, const struct heap_range *ranges, size_t nr_ranges,
		 int (*change)(void *ctx, struct err *err), void *ctx, uint64_t *ret_longest_ns,
		 struct err *err);

#endif
