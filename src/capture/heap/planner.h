/*
 * Makes verified plans for the heaps of processes (plan/heapchoice.h): if the mallctl of a jemalloc
 * was found without a symbol, verifies it by reading its version on a stopped thread of the process
 * (remote/jemalloc/jemalloc.h).
 */
#ifndef ASSAY_CAPTURE_HEAP_PLANNER_H
#define ASSAY_CAPTURE_HEAP_PLANNER_H

#include "base/base.h"
#include "base/err.h"
#include "plan/heapplan.h"
#include "plan/heaptargets.h"

/* A cache of inspected binaries, for this machine's recorder. Free by heaptargets_free. */
struct heaptargets *heapplanner_new(void);
/* Makes the plan for a process in its present state. @forced: HEAP_METHOD_NONE = choose. */
int heapplanner_plan(struct heaptargets *t, int32_t pid, enum heap_method forced,
		     struct heap_plan *ret_p, struct err *err);

#endif
