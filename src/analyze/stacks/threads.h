/*
 * Reports weight by thread, by process, and by groups of threads whose names differ only in numbers
 * ("worker-1", "worker-12" -> "worker-#").
 */
#ifndef ASSAY_ANALYZE_STACKS_THREADS_H
#define ASSAY_ANALYZE_STACKS_THREADS_H

#include "analyze/view.h"
#include "base/base.h"
#include "model/profile.h"

/* By process id; a process has the name of its main thread. */
void processes_report(struct report *r, const struct selection *sel,
		      const struct view_limits *limits);
void threads_report(struct report *r, const struct selection *sel,
		    const struct view_limits *limits);
void thread_groups_report(struct report *r, const struct selection *sel,
			  const struct view_limits *limits);

/* The name that threads share which differ in numbers alone ("worker-#"), or "[no name]"; borrowed. */
const char *threads_name(const struct profile *p, task_id id);

#endif
