/*
 * Reports weight by thread, by process, and by groups of threads whose names differ only in digits
 * ("worker-1", "worker-12" -> "worker-#").
 */
#ifndef ASSAY_ANALYZE_STACKS_THREADS_H
#define ASSAY_ANALYZE_STACKS_THREADS_H

#include "analyze/view.h"
#include "base/base.h"
#include "base/buf.h"

/* By process id; a process has the name of its main thread. */
void processes_report(struct report *r, const struct selection *sel,
		      const struct view_limits *limits);
void threads_report(struct report *r, const struct selection *sel,
		    const struct view_limits *limits);
void thread_groups_report(struct report *r, const struct selection *sel,
			  const struct view_limits *limits);

/* Sets @to to the name with digits replaced: "worker-12" -> "worker-#". */
void threads_fold_numbers(struct buf *to, const char *name);
/* Returns a thread's name in that form, or "[no name]"; borrowed from @scratch. */
const char *threads_name(struct buf *scratch, const struct profile *p, task_id id);

#endif
