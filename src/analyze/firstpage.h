/*
 * What a profile is about, and its first page: of CPU samples (overview.h), of waits
 * (waittables.h), of both (hotcold.h), of events by name (eventsum.h), of input and output
 * (iosum.h), of page faults (faultsum.h), of memory (heapsum.h), of spans (spansum.h).
 */
#ifndef ASSAY_ANALYZE_FIRSTPAGE_H
#define ASSAY_ANALYZE_FIRSTPAGE_H

#include "analyze/report.h"
#include "analyze/select.h"
#include "analyze/view.h"
#include "base/arena.h"
#include "base/base.h"
#include "base/err.h"

enum profile_kind {
	PROFILE_SAMPLES,  /* CPU samples, or any weighted stacks; also a profile of nothing */
	PROFILE_WAITS,    /* a ledger and what was waited for */
	PROFILE_HOT_COLD, /* CPU samples and waits of the same time */
	PROFILE_EVENTS,   /* counts of events by name */
	PROFILE_IO,       /* reads, writes, syncs, block requests */
	PROFILE_FAULTS,   /* page faults and reclaim */
	PROFILE_HEAP,     /* memory: what was allocated, what lives */
	PROFILE_MEMORY,   /* what the kernel says of memory, over time, and nothing else */
	PROFILE_SPANS,    /* latency of operations, with the waits in them */
};

enum profile_kind profile_kind_of(const struct profile *p);

/* The event that stands for all time of threads, hot and cold: not a table, but accepted as one. */
#define THREAD_TIME "thread-time"

/* Whether a spec asks for memory: by its weight, or as it names nothing and there is nothing else.
 */
bool firstpage_is_of_heap(const struct profile *p, const struct select_spec *spec);

/*
 * select_run, or hotcold_run where the spec's event is THREAD_TIME, or heapweights_select where it
 * asks for memory.
 */
int firstpage_select(struct arena *a, const struct profile *p, const struct select_spec *spec,
		     struct selection *ret_sel, struct err *err);

/*
 * The page for the kind; a spec that names an event gets the page of that event. @input names the
 * file in hints, NULL: none are given. Errors as select_run.
 */
int firstpage_report(struct report *r, const struct profile *p, const struct select_spec *spec,
		     const char *input, const struct view_limits *limits, struct err *err);

#endif
