/*
 * Events that are counted, by the names of perf: hardware events, cache events (L1-dcache-loads),
 * software events, tracepoints (sched:sched_switch), raw ones (r1a8); with modifiers u and k.
 */
#ifndef ASSAY_CAPTURE_PERF_COUNTEREVENTS_H
#define ASSAY_CAPTURE_PERF_COUNTEREVENTS_H

#include "base/arena.h"
#include "base/base.h"
#include "base/err.h"
#include "model/counter.h"

struct counter_event {
	const char *name;
	uint32_t type; /* as in perf_event_attr */
	uint64_t config;
	enum counter_role role;
	unsigned
		family; /* of hardware events that are divided by each other: one group if they fit */
	bool is_time;
	bool has_no_user;
	bool has_no_kernel;
};

struct counter_events {
	struct counter_event p[COUNTERS_MAX];
	size_t n;
};

/*
 * Appends the events of "A,B,{C,D}"; braces are ignored, since groups are formed by what fits. Names go
 * to @a. -EINVAL: an unknown name (the hint has a similar one), or too many.
 */
int counter_events_add(struct counter_events *to, struct arena *a, const char *list,
		       struct err *err);

/* What is counted without -e, as perf stat does, and what -d adds. */
#define COUNTER_EVENTS_DEFAULT_REST                                                 \
	"context-switches,cpu-migrations,page-faults,cycles,instructions,branches," \
	"branch-misses"
#define COUNTER_EVENTS_DEFAULT "task-clock," COUNTER_EVENTS_DEFAULT_REST
#define COUNTER_EVENTS_DETAILED                                                           \
	"cache-references,cache-misses,L1-dcache-loads,L1-dcache-load-misses,dTLB-loads," \
	"dTLB-load-misses"

#endif
