/*
 * Report of `assay latency`: durations of operations, their time by reason (on CPU, run queue, each
 * wait reason; adds up to the elapsed time), and the slowest calls. Reads the tables "spans",
 * "span-time", "slowest-spans", and "off-cpu" for the stacks of waits inside the operations.
 */
#ifndef ASSAY_ANALYZE_WAIT_SPANSUM_H
#define ASSAY_ANALYZE_WAIT_SPANSUM_H

#include "analyze/report.h"
#include "analyze/select/select.h"
#include "analyze/view.h"
#include "base/base.h"
#include "base/err.h"

/*
 * Adds tables "spans", "span_breakdown", "span_slowest", "span_histogram" and "waiting_stacks".
 * @input: file name for hints; NULL: no hints. Errors as select_run.
 */
int spansum_report(struct report *r, const struct profile *p, const struct select_spec *spec,
		   const char *input, const struct view_limits *limits, struct err *err);

#endif
