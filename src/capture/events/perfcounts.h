/*
 * Source: counts named events without BPF programs, by perf counters: one per event and thread,
 * which the threads that it creates inherit; for the whole system one per event and CPU. Counts are
 * exact; there are no outcomes, amounts or stacks. Events that the user's rights do not permit are
 * left out and reported.
 *
 * Delivers EVENT_AGGREGATE each second, preceded by EVENT_COMM with the names of threads.
 */
#ifndef ASSAY_CAPTURE_EVENTS_PERFCOUNTS_H
#define ASSAY_CAPTURE_EVENTS_PERFCOUNTS_H

#include "capture/source.h"

extern const struct source perfcounts_source;

#endif
