/*
 * Makes plans for the heaps of processes (plan/heapchoice.h). If jemalloc's mallctl function was
 * found without a symbol, the plan is verified: a stopped thread of the process calls it to read
 * jemalloc's version (remote/jemalloc/jemalloc.h).
 */
#ifndef ASSAY_CAPTURE_HEAP_PLANNER_H
#define ASSAY_CAPTURE_HEAP_PLANNER_H

#include "base/base.h"
#include "base/err.h"
#include "plan/heapplan.h"
#include "plan/heaptargets.h"

/* Returns a new cache of inspected binaries, to be freed by heaptargets_free. */
struct heaptargets *heapplanner_new(void);
/*
 * Makes the plan for a process by the binaries that it has mapped now. @forced: the method, or
 * HEAP_METHOD_NONE to choose it.
 */
int heapplanner_plan(struct heaptargets *t, int32_t pid, enum heap_method forced,
		     struct heap_plan *ret_p, struct err *err);

#endif
