/*
 * Latency of operations as a source on the engine: probes at the entry and the return of functions
 * of the target, or at a pair of them; what the kernel adds up is delivered as rows (EVENT_TALLY)
 *
 *	TABLE_SPANS      calls, time, longest; object = the span's name
 *	TABLE_SPAN_TIME  the same time by reason: calls (0), time; adds up to the spans' time
 *	TABLE_SLOWEST_SPANS    the slowest ones of each span: a row with reason none (1, its time), rows by
 *	                reason (0, time), and a row "longest wait" with the stack of that wait. All
 *	                rows of one span have its begin as their time and its thread
 *
 * Reasons other than WAIT_ON_CPU need ENGINE_WAITS on the same engine.
 *
 * Life, in step with the engine's: spans_open after engine_open, spans_attach after engine_load,
 * spans_start, spans_poll several times a second, spans_stop, spans_free. Used by one thread.
 */
#ifndef ASSAY_CAPTURE_SPANS_H
#define ASSAY_CAPTURE_SPANS_H

#include "base/base.h"
#include "base/err.h"
#include "capture/engine.h"
#include "model/event.h"
#include "plan/spanprobes.h"

struct spans_spec {
	const struct span_probe *probes;
	size_t nr_probes; /* at most SPANS_MAX */
	const int32_t
		*pids; /* processes whose memory gets the probes; none: whoever maps the file */
	size_t nr_pids;
	uint32_t nr_slowest; /* kept of each span */
};

struct span_counts {
	uint64_t nr_started;
	uint64_t nr_ended;
	uint64_t nr_abandoned; /* left by longjmp, an exception, the thread's end */
	uint64_t nr_inside;    /* within a span of another function, not measured */
	uint64_t nr_lost;      /* measured, but no room for the row */
	uint64_t nr_unsent;    /* slow ones of which the details are lost */
};

struct spans;

int spans_open(struct spans **ret_s, struct engine *e, const struct spans_spec *spec,
	       struct err *err);
int spans_attach(struct spans *s, struct err *err);
void spans_start(struct spans *s, uint64_t epoch_ns);
int spans_poll(struct spans *s, const struct event_sink *sink, struct err *err);
int spans_stop(struct spans *s, const struct event_sink *sink, struct err *err);
/* Of probe @i. */
struct span_counts spans_counts(const struct spans *s, size_t i);
void spans_free(struct spans *s);

#endif
