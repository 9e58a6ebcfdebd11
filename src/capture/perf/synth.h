/*
 * What was there before the capture: names of threads and executable mappings of a running
 * process, as events, from /proc.
 */
#ifndef ASSAY_CAPTURE_PERF_SYNTH_H
#define ASSAY_CAPTURE_PERF_SYNTH_H

#include "base/base.h"
#include "base/err.h"
#include "model/event.h"

/* Feeds COMM and MAP events with @time_ns. A process that vanished gives 0 and no events. */
int synth_process(int32_t pid, uint64_t time_ns, const struct event_sink *sink, struct err *err);
/* The name that thread @tid has now; one that vanished gives 0 and no event. */
int synth_name(int32_t pid, int32_t tid, uint64_t time_ns, const struct event_sink *sink,
	       struct err *err);

#endif
