/*
 * Report of `assay latency`: durations of operations, their time by reason (on CPU, run queue, each
 * wait reason; adds up to the elapsed time), the stacks of the waits, and the slowest calls. Reads
 * the tables "spans", "span-time" and "slowest-spans". Reasons are those of reason.h, as in all
 * views of waits; waits are shown whether or not they count as idle elsewhere.
 */
#ifndef ASSAY_ANALYZE_WAIT_SPANSUM_H
#define ASSAY_ANALYZE_WAIT_SPANSUM_H

#include "analyze/report.h"
#include "analyze/select/select.h"
#include "analyze/view.h"
#include "base/base.h"
#include "base/err.h"

/*
 * Adds tables "spans", "span_breakdown", "span_slowest", "span_waits" and "span_histogram", and the
 * fact "measured": how many of the calls are in them.
 * @input: file name for hints; NULL: no hints. Errors as select_run.
 */
int spansum_report(struct report *r, const struct profile *p, const struct select_spec *spec,
		   const char *input, const struct view_limits *limits, struct err *err);

#endif
