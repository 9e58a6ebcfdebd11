/*
 * Latency of operations: how long they take, where their time goes (on a CPU, in the run queue, in
 * each kind of waiting: adds up to the wall time), and the slowest ones. From the tables "spans",
 * "span-time", "slowest-spans", and "off-cpu" for the stacks of waits within them.
 */
#ifndef ASSAY_ANALYZE_WAIT_SPANSUM_H
#define ASSAY_ANALYZE_WAIT_SPANSUM_H

#include "analyze/report.h"
#include "analyze/select/select.h"
#include "analyze/view.h"
#include "base/base.h"
#include "base/err.h"

/*
 * Tables "spans", "span_breakdown", "span_histogram", "span_slowest", and of waits within. @input
 * names the file in hints, NULL: none are given. Errors as select_run.
 */
int spansum_report(struct report *r, const struct profile *p, const struct select_spec *spec,
		   const char *input, const struct view_limits *limits, struct err *err);

#endif
