/*
 * Measures the latency of operations ("spans") as a BPF source: uprobes at the entry and the return
 * of a function of the target, or at a pair of points. BPF adds up the calls; they are delivered as
 * rows (EVENT_AGGREGATE) of
 *
 *	TABLE_SPANS          calls, time, longest; object = the span's name
 *	TABLE_SPAN_TIME      the same time by wait reason; its sum is the time in TABLE_SPANS. A wait
 *	                     has its own stack and the number of calls with that wait; time on the
 *	                     CPU has the stack at the call's start, and 0 calls
 *	TABLE_SLOWEST_SPANS  the slowest calls of each span: one row without reason (1 call, its
 *	                     time), rows by reason as in TABLE_SPAN_TIME (0 calls, time), and a row
 *	                     with a detail ("longest wait"): time off the CPU, of which `longest`
 *	                     blocked and the rest in the run queue, with its stack and its waker.
 *	                     All rows of a call have its start time and its thread
 *
 * Times by reason need waits_source on the same engine; without it, there are none.
 */
#ifndef ASSAY_CAPTURE_WAIT_SPANS_H
#define ASSAY_CAPTURE_WAIT_SPANS_H

#include "base/base.h"
#include "capture/source.h"
#include "plan/spanprobes.h"

struct spans_spec {
	const struct span_probe *probes;
	size_t nr_probes;    /* at most SPANS_MAX */
	const int32_t *pids; /* processes to probe; none: all that map the file */
	size_t nr_pids;
	uint32_t nr_slowest; /* calls kept for each span */
};

#define SPAN_TABLES (TABLE_SET(SPANS) | TABLE_SET(SPAN_TIME) | TABLE_SET(SLOWEST_SPANS))

extern const struct source spans_source;

#endif
