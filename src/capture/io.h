/*
 * Input and output as a source on the engine: system calls that read, write and sync, requests of
 * block devices, page faults and reclaim, each exact, added up in the kernel by second, thread,
 * file, stack and duration class (wire/kernel_io.h), delivered as rows (EVENT_TALLY) of TABLE_IO,
 * TABLE_BLOCK, TABLE_FAULTS and TABLE_RECLAIM.
 *
 * What bytes mean: those that calls returned, not those asked for. Calls under way when counting
 * begins or ends are not in it.
 */
#ifndef ASSAY_CAPTURE_IO_H
#define ASSAY_CAPTURE_IO_H

#include "base/base.h"
#include "capture/source.h"

/* What is counted; bits. */
enum io_parts {
	IO_PART_CALLS = 1 << 0,
	IO_PART_BLOCK = 1 << 1, /* the whole machine's */
	IO_PART_FAULTS = 1 << 2,
	IO_PART_RECLAIM = 1 << 3,
	IO_PART_GROWTH =
		1 << 4, /* memory touched for the first time, calls that map (heapgrowth.h) */
};

extern const struct source io_source;

#endif
