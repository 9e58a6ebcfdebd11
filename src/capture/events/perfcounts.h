/*
 * Counting events by name without BPF programs: the kernel's own counters, one an event and
 * thread (what a thread gives birth to counts with it), one an event and CPU for the whole system.
 * Counts are exact; there are no outcomes, no bytes and no stacks. What these rights do not allow
 * is left out and told.
 *
 * Rows come as EVENT_AGGREGATE, each second, with names of threads as EVENT_COMM before.
 */
#ifndef ASSAY_CAPTURE_EVENTS_PERFCOUNTS_H
#define ASSAY_CAPTURE_EVENTS_PERFCOUNTS_H

#include "capture/source.h"

extern const struct source perfcounts_source;

#endif
