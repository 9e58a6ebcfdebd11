/*
 * Source: counts named events without BPF programs, by perf counters: one per event and thread,
 * inherited by the threads that this thread creates; for the whole system one per event and CPU.
 * Counts are exact; there are no outcomes, amounts or stacks. Events for which the user has no
 * permission are not counted; FACT_EVENTS_REFUSED lists them.
 *
 * Delivers EVENT_AGGREGATE each second, preceded by EVENT_COMM with the names of threads.
 */
#ifndef ASSAY_CAPTURE_EVENTS_PERFCOUNTS_H
#define ASSAY_CAPTURE_EVENTS_PERFCOUNTS_H

#include "capture/source.h"

extern const struct source perfcounts_source;

#endif
