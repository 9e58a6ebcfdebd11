/*
 * Weight by process: the threads of a process id added up, under the name of its main thread (its
 * last one) or, where that is in no row, of any thread. For servers that fork and for `-a`.
 */
#ifndef ASSAY_ANALYZE_PROCESSES_H
#define ASSAY_ANALYZE_PROCESSES_H

#include "analyze/report.h"
#include "analyze/select.h"
#include "analyze/view.h"
#include "base/base.h"

/* Table "processes"; processes without an id go by their name. */
void processes_report(struct report *r, const struct selection *sel,
		      const struct view_limits *limits);

#endif
