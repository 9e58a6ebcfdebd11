/*
 * Event source for heaps, with the recorder inside the processes (methods PATCH and HOOKS; for
 * jemalloc's own profiling see remote/jemalloc/jemalloc.h): from plan to rows.
 *
 *	heapplanner -> heapinject (image, patches) -> tables for its unwinder -> start
 *	rings -> heapring (checked, merged by time) -> heapaccount (live blocks, sums) -> rows
 *
 * Delivers EVENT_STACK; EVENT_AGGREGATE of SPEC_HEAP_* each second and, when the recording of a
 * process ends, live blocks and peak (model/heap.h); EVENT_LOST for records that were dropped.
 *
 * A drain thread reads the rings and updates alive_tsc, because opening a large binary takes the
 * capture thread longer than a ring takes to fill. Everything else, above all ptrace, is done by
 * the capture thread: ptrace requests must come from the thread that seized the tracee.
 *
 * A launched command is seized with ptrace before its execve and attached while it is stopped
 * before its first instruction. If nothing else is possible, memory growth is recorded
 * (source_env.record_growth).
 */
#ifndef ASSAY_CAPTURE_HEAP_HEAPSOURCE_H
#define ASSAY_CAPTURE_HEAP_HEAPSOURCE_H

#include "capture/source.h"
#include "plan/heapplan.h"

struct heaptargets;

struct heapsource_spec {
	struct heaptargets *targets; /* cache of inspected binaries */
	enum heap_method forced;     /* method requested by the user; NONE = choose one */
	bool by_probes;              /* method UPROBES (probes.h): this source does nothing */
	const char *why; /* reason of a method chosen before (UPROBES, GROWTH), or NULL */
	bool is_full_trace;
	uint64_t interval_bytes; /* between samples, unless is_full_trace */
	bool starts_full;      /* a launched command: every allocation until that costs (thin.h) */
	bool follows_children; /* also record processes forked during the capture */
	/* Called by the capture thread: a process will be recorded, or cannot be. */
	void (*on_plan)(void *ctx, int32_t pid, const struct heap_plan *plan);
	void (*on_refused)(void *ctx, int32_t pid, const struct err *why);
	void *ctx;
};

#define HEAP_TABLES                                                                    \
	(TABLE_SET(ALLOCATED) | TABLE_SET(LIVE) | TABLE_SET(PEAK) | TABLE_SET(FREED) | \
	 TABLE_SET(FREED_PREEXISTING) | TABLE_SET(MAPPED) | TABLE_SET(HEAP_LEVEL))

extern const struct source heap_source;

#endif
