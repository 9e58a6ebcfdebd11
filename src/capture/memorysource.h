/*
 * Event source for memory use over time: reads what the kernel reports for each target into rows of
 * the table "memory" (model/heap.h), one per process and reading. A row is an EVENT_AGGREGATE with
 * TABLE_MEMORY and the time of the reading; HEAP_MEMORY_LIVE stays 0, the views fill it.
 *
 * RSS, its parts, swap and virtual memory are read each time. PSS and thread stacks need a page
 * table walk under the target's mmap lock: they are read at most once a second, and so rarely that
 * the walks take at most 1/400 of the time; rows between repeat the last values. A target that has
 * ended has no more rows. With --children (target.takes_children) descendants that are forked during the
 * capture are read, too.
 */
#ifndef ASSAY_CAPTURE_MEMORYSOURCE_H
#define ASSAY_CAPTURE_MEMORYSOURCE_H

#include "capture/source.h"

#define MEMORY_SPACING_MIN_NS 10000000u

extern const struct source memory_source;

#endif
