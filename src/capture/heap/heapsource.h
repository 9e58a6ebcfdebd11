/*
 * The heap of processes, by the recorder inside them (methods PATCH and HOOKS; jemalloc's own
 * profiling by remote/jemalloc/jemalloc.h): everything between a plan and rows.
 *
 *	heapplanner -> heapinject (image, patches) -> tables for its unwinder -> start
 *	rings -> heapring (checked, merged by time) -> heapbook (pairs, sums) -> rows
 *
 * What comes out: EVENT_STACK, EVENT_AGGREGATE of SPEC_HEAP_* each second and, at the end of a
 *process's recording, live and peak (model/heap.h), EVENT_LOST for what the recorder dropped.
 *
 * A thread of its own empties the rings and keeps the recorder awake, since opening a large binary
 * takes the thread of the capture longer than a ring lasts. Everything else, ptrace above all, is
 * done by the thread that calls these functions, always the same.
 *
 * A launched command is followed from its gate on: it is attached to when it stands before its own
 * first instruction. Of what nothing else can be recorded, growth is (source_env.record_growth).
 */
#ifndef ASSAY_CAPTURE_HEAP_HEAPSOURCE_H
#define ASSAY_CAPTURE_HEAP_HEAPSOURCE_H

#include "capture/source.h"
#include "plan/heapplan.h"

struct heaptargets;

struct heapsource_spec {
	struct heaptargets *targets; /* what plans are made from */
	enum heap_method forced;     /* NONE = choose */
	bool by_probes;              /* by probes.h instead */
	const char *why; /* of a method that was chosen before: UPROBES, GROWTH; may be NULL */
	bool is_full_trace;
	uint64_t interval_bytes; /* between samples, unless is_full_trace */
	bool follows_children;   /* those that are forked during the capture */
	/* A process is about to be recorded, or was not; told by the thread of the capture. */
	void (*on_plan)(void *ctx, int32_t pid, const struct heap_plan *plan);
	void (*on_refused)(void *ctx, int32_t pid, const struct err *why);
	void *ctx;
};

#define HEAP_TABLES                                                                    \
	(TABLE_SET(ALLOCATED) | TABLE_SET(LIVE) | TABLE_SET(PEAK) | TABLE_SET(FREED) | \
	 TABLE_SET(FREED_PREEXISTING) | TABLE_SET(MAPPED))

extern const struct source heap_source;

#endif
