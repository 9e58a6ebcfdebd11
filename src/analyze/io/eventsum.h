/*
 * First page of a recording of events by name: exact counts by event and outcome, counts by
 * operation (futex waits, reads, context switches, faults; table "summary"), and the functions that
 * caused the events. Counts of different events are never summed.
 *
 * A recording may have one table of "events" per event name; other tables (CPU samples, waits) are
 * ignored. spec->event selects one event; the other filters apply to all.
 */
#ifndef ASSAY_ANALYZE_IO_EVENTSUM_H
#define ASSAY_ANALYZE_IO_EVENTSUM_H

#include "analyze/report.h"
#include "analyze/select/select.h"
#include "analyze/view.h"
#include "base/base.h"
#include "base/err.h"

enum eventsum_flags {
	EVENTSUM_STACKS = 1 << 0, /* also the most frequent stacks of each event */
};

/*
 * Adds tables "summary", "events", "event_functions" (limits->max_rows per event) and notes on what
 * the numbers do not mean. @input: file name for hints; NULL: no hints. Errors as select_run.
 */
int eventsum_report(struct report *r, const struct profile *p, const struct select_spec *spec,
		    const char *input, const struct view_limits *limits, unsigned flags,
		    struct err *err);

#endif
