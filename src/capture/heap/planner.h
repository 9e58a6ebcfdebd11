/*
 * Plans for the heaps of processes (plan/heapchoice.h), confirmed where that takes a look inside:
 * what was taken for the mallctl of a jemalloc without symbols is asked for its version, on one
 * borrowed thread of the process (remote/jemalloc/jemalloc.h).
 */
#ifndef ASSAY_CAPTURE_HEAP_PLANNER_H
#define ASSAY_CAPTURE_HEAP_PLANNER_H

#include "base/base.h"
#include "base/err.h"
#include "plan/heapplan.h"
#include "plan/heaptargets.h"

/* What binaries hold, by what this machine's recorder can do. For heaptargets_free. */
struct heaptargets *heapplanner_new(void);
/* For a process as it is now. @forced: HEAP_METHOD_NONE = choose. */
int heapplanner_plan(struct heaptargets *t, int32_t pid, enum heap_method forced,
		     struct heap_plan *ret_p, struct err *err);

#endif
