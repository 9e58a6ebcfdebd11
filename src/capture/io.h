/*
 * Input and output as a source on the engine: system calls that read, write and sync, requests of
 * block devices, page faults and reclaim, each exact, added up in the kernel by second, thread,
 * file, stack and duration class (wire/kernel_io.h), delivered as rows (EVENT_TALLY) of TABLE_IO,
 * TABLE_BLOCK, TABLE_FAULTS and TABLE_RECLAIM.
 *
 * Life, in step with the engine's (engine.h): io_open after engine_open, io_attach after
 * engine_load, io_start when counting is to begin, io_poll at least each second, io_stop at the
 * end (before engine_stop), io_free. Used by one thread.
 *
 * What bytes mean: those that calls returned, not those asked for. Calls under way when counting
 * begins or ends are not in it.
 */
#ifndef ASSAY_CAPTURE_IO_H
#define ASSAY_CAPTURE_IO_H

#include "base/base.h"
#include "base/err.h"
#include "capture/engine.h"
#include "model/event.h"

/* What is counted; bits. */
enum io_parts {
	IO_PART_CALLS = 1 << 0,
	IO_PART_BLOCK = 1 << 1, /* the whole machine's */
	IO_PART_FAULTS = 1 << 2,
	IO_PART_RECLAIM = 1 << 3,
	IO_PART_GROWTH =
		1 << 4, /* memory touched for the first time, calls that map (heapgrowth.h) */
};

struct io_info {
	uint64_t nr_rows;          /* delivered */
	uint64_t nr_files;         /* told by name */
	uint64_t nr_tracepoints;   /* attached */
	uint64_t nr_no_start;      /* calls under way at the beginning */
	uint64_t nr_rows_full;     /* counted without stack and file, for want of room */
	uint64_t nr_lost;          /* not counted at all */
	uint64_t nr_files_lost;    /* names that did not arrive */
	uint64_t nr_busy_maps;     /* faults whose mapping is not known */
	uint64_t nr_no_issue;      /* block requests that ended without a beginning: flushes */
	uint64_t nr_requests_full; /* block requests not followed, for want of room */
	uint64_t max_inflight;     /* block requests at a time */
	bool has_fault_time;       /* the kernel tells where faults begin */
	bool has_fault_pages;      /* and what it handed out; else growth is one page a fault */
};

struct io_source;

/* Before engine_load: leaves out what is not asked for. */
int io_open(struct io_source **ret_s, struct engine *e, unsigned parts, struct err *err);
int io_attach(struct io_source *s, struct err *err);
/* Counts from now on; second 0 of the rows starts at @epoch_ns (CLOCK_MONOTONIC). */
void io_start(struct io_source *s, uint64_t epoch_ns);
/* Delivers what is complete; cheap when there is nothing. */
int io_poll(struct io_source *s, const struct event_sink *sink, struct err *err);
/* Ends counting and delivers all that is left. */
int io_stop(struct io_source *s, const struct event_sink *sink, struct err *err);
struct io_info io_info(const struct io_source *s);
void io_free(struct io_source *s);

#endif
