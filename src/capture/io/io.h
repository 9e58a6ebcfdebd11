/*
 * Input and output as a source on the engine: system calls that read, write and sync, requests of
 * block devices, page faults and reclaim, each exact, added up in the kernel by second, thread,
 * file, stack and duration class (wire/kernel_io.h), delivered as rows (EVENT_AGGREGATE) of TABLE_IO,
 * TABLE_BLOCK, TABLE_FAULTS, TABLE_RECLAIM and TABLE_GROWTH, as far as these are wanted.
 *
 * What bytes mean: those that calls returned, not those asked for. Calls under way when counting
 * begins or ends are not in it.
 */
#ifndef ASSAY_CAPTURE_IO_IO_H
#define ASSAY_CAPTURE_IO_IO_H

#include "base/base.h"
#include "capture/source.h"

/* Memory touched for the first time, calls that map (heap/growth.h). */
#define GROWTH_TABLES (TABLE_SET(GROWTH) | TABLE_SET(MAPPED))

extern const struct source io_source;

#endif
