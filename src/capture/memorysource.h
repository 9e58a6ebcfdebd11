/*
 * Memory over time: what the kernel says that each target uses, as rows of the table "memory"
 * (model/heap.h), one a process and reading. Readings are told as EVENT_AGGREGATE with TABLE_MEMORY,
 * their time is the moment of the reading; HEAP_MEMORY_LIVE is left 0, for the views know it.
 *
 * RSS, its parts, swap and virtual memory are read each time. PSS and the stacks of threads need a
 * walk of the page tables, under the target's lock for mappings: they are read at most once a
 * second, and so seldom that the walks take a four-hundredth of the time at most; rows between carry
 * the last ones. A target that has ended gives no more rows.
 */
#ifndef ASSAY_CAPTURE_MEMORYSOURCE_H
#define ASSAY_CAPTURE_MEMORYSOURCE_H

#include "capture/source.h"

#define MEMORY_SPACING_MIN_NS 10000000u

extern const struct source memory_source;

#endif
