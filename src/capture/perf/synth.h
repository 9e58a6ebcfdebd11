/*
 * Synthesizes events for processes that exist before the capture, from /proc: thread names and
 * executable mappings.
 */
#ifndef ASSAY_CAPTURE_PERF_SYNTH_H
#define ASSAY_CAPTURE_PERF_SYNTH_H

#include "base/base.h"
#include "base/err.h"
#include "model/event.h"

/* Delivers EVENT_COMM and EVENT_MAP with time @time_ns. A process that has exited: 0, no events. */
int synth_process(int32_t pid, uint64_t time_ns, const struct event_sink *sink, struct err *err);
/* Delivers the current name of thread @tid. A thread that has exited: 0, no event. */
int synth_name(int32_t pid, int32_t tid, uint64_t time_ns, const struct event_sink *sink,
	       struct err *err);

#endif
