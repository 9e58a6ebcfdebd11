/*
 * Latency of operations as a source on the engine: probes at the entry and the return of functions
 * of the target, or at a pair of them; what the kernel adds up is delivered as rows (EVENT_AGGREGATE)
 *
 *	TABLE_SPANS          calls, time, longest; object = the span's name
 *	TABLE_SPAN_TIME      the same time by reason: calls (0), time; adds up to the spans' time
 *	TABLE_SLOWEST_SPANS  the slowest ones of each span: a row with reason none (1, its time),
 *	                     rows by reason (0, time), and a row "longest wait" with the stack of
 *	                     that wait. All rows of one span have its begin as their time and its
 *	                     thread
 *
 * Reasons other than WAIT_ON_CPU need the source of waits on the same engine.
 */
#ifndef ASSAY_CAPTURE_WAIT_SPANS_H
#define ASSAY_CAPTURE_WAIT_SPANS_H

#include "base/base.h"
#include "capture/source.h"
#include "plan/spanprobes.h"

struct spans_spec {
	const struct span_probe *probes;
	size_t nr_probes; /* at most SPANS_MAX */
	const int32_t
		*pids; /* processes whose memory gets the probes; none: whoever maps the file */
	size_t nr_pids;
	uint32_t nr_slowest; /* kept of each span */
};

#define SPAN_TABLES (TABLE_SET(SPANS) | TABLE_SET(SPAN_TIME) | TABLE_SET(SLOWEST_SPANS))

extern const struct source spans_source;

#endif
