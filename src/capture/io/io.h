/*
 * I/O and memory events as a BPF source: system calls that read, write and sync, block device
 * requests, page faults and reclaim. Every event is counted; BPF programs add them up by second,
 * thread, file, stack and duration bucket (wire/kernel_io.h). Rows come as EVENT_AGGREGATE. Tables:
 * TABLE_IO, TABLE_BLOCK, TABLE_FAULTS, TABLE_RECLAIM and TABLE_GROWTH, of which only the wanted ones
 * are recorded.
 *
 * Bytes are those that calls returned, not those requested. Calls in progress when counting starts
 * or ends are not counted.
 */
#ifndef ASSAY_CAPTURE_IO_IO_H
#define ASSAY_CAPTURE_IO_IO_H

#include "base/base.h"
#include "capture/source.h"

/* Pages touched for the first time, and calls that map memory (heap/growth.h). */
#define GROWTH_TABLES (TABLE_SET(GROWTH) | TABLE_SET(MAPPED))

extern const struct source io_source;

#endif
