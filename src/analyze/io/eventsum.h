/*
 * What was counted, of a recording of events by name: exact numbers by event and outcome, in the
 * words of what they mean (futex waits, reads, context switches, faults), and for each event the
 * functions it comes from. Events of different kinds are never added up.
 *
 * A recording may hold a table of "events" for every name; others (CPU samples, waits) are passed
 * over. The spec's event chooses one; its other filters hold for all.
 */
#ifndef ASSAY_ANALYZE_IO_EVENTSUM_H
#define ASSAY_ANALYZE_IO_EVENTSUM_H

#include "analyze/report.h"
#include "analyze/select/select.h"
#include "analyze/view.h"
#include "base/base.h"
#include "base/err.h"

enum eventsum_flags {
	EVENTSUM_STACKS = 1 << 0, /* the commonest stacks of each event, too */
};

/*
 * The first page: "summary", "events", "outcomes", "event_functions" (limits->max_rows of each
 * event), notes on what the numbers do not say. @input names the file in hints, NULL: none.
 * Errors as select_run.
 */
int eventsum_report(struct report *r, const struct profile *p, const struct select_spec *spec,
		    const char *input, const struct view_limits *limits, unsigned flags,
		    struct err *err);

#endif
