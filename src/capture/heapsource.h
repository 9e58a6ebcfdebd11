/*
 * The heap of processes, by the recorder inside them (tiers PATCH and HOOKS; jemalloc's own
 * profiling by remote/jemalloc.h): everything between a plan and rows.
 *
 *	heapplanner -> heapinject (image, patches) -> tables for its unwinder -> start
 *	rings -> heapring (checked, merged by time) -> heapbook (pairs, sums) -> rows
 *
 * What comes out: EVENT_STACK, EVENT_TALLY of SPEC_HEAP_* each second and, at the end of a
 *process's recording, live and peak (model/heap.h), EVENT_LOST for what the recorder dropped.
 *
 * A thread of its own empties the rings and keeps the recorder awake, since opening a large binary
 * takes the thread of the capture longer than a ring lasts. Everything else, ptrace above all, is
 * done by the thread that calls these functions, always the same.
 *
 * Life: heapsource_new; _space whenever mappings of a process change, from the first on; _start;
 * _saw for births, execs and ends; _drain every few milliseconds; _stop, which detaches and
 * delivers the rest; _free. A launched command is followed from its gate on: _start before the gate
 * opens, it is attached to by _drain when it stands before its own first instruction.
 */
#ifndef ASSAY_CAPTURE_HEAPSOURCE_H
#define ASSAY_CAPTURE_HEAPSOURCE_H

#include "base/base.h"
#include "base/err.h"
#include "host/proc.h"
#include "model/event.h"
#include "plan/heapplan.h"
#include "unwind/space.h"

struct heapsource_spec {
	struct heaptargets *targets; /* what plans are made from */
	enum heap_tier forced;       /* NONE = choose */
	const char *why; /* of a tier that was chosen before: UPROBES, GROWTH; may be NULL */
	bool is_every;
	uint64_t interval_bytes; /* between samples, unless is_every */
	bool follows_children;   /* those that are forked during the capture */
	/* Filled in by session/ from the options of the capture. */
	const struct pid_list *pids;
	int32_t child;
	/* Records the growth of one of which nothing else can be; NULL: nobody can. */
	int (*grow)(void *ctx, int32_t pid, const struct space *sp, struct err *err);
	void *grow_ctx;
	/* A process is about to be recorded, or was not; told by the thread of the capture. */
	void (*on_plan)(void *ctx, int32_t pid, const struct heap_plan *plan);
	void (*on_refused)(void *ctx, int32_t pid, const struct err *why);
	void *ctx;
};

struct heapsource_info {
	size_t nr_processes;    /* recorded, one for each program that they executed */
	size_t nr_grown;        /* of which growth is recorded instead */
	size_t nr_refused;      /* wanted, but not recorded */
	size_t nr_not_followed; /* forked and left alone */
	size_t nr_too_short;    /* to be followed, but gone before they could be attached to */
	size_t nr_broken;       /* rings that made no sense */
	uint64_t nr_events;     /* read */
	uint64_t nr_dropped;    /* by the recorder: a ring was full, a thread had no slot */
	uint64_t dropped_bytes;
	uint64_t nr_allocs; /* counted exactly by the recorder, also where it sampled */
	uint64_t nr_alloc_bytes;
	uint64_t nr_frees;
	uint64_t nr_unbooked; /* blocks for which there was no room here */
	uint64_t table_bytes; /* most memory that the tables of blocks took here */
	uint64_t stopped_ns;  /* longest stop of one thread of a target */
	bool has_shut;        /* a target went into strict seccomp: recorded up to then */
	bool has_gone_silent; /* the recorder did, for we had not come by in time */
	uint64_t nr_no_stack; /* stacks for which there was no room in the target */
	double nr_booked;     /* allocations in rows: estimates, where sampled */
	double booked_bytes;
	double booked_variance;  /* of booked_bytes */
	uint64_t drain_ns;       /* CPU time of the thread that empties the rings */
	uint64_t longest_gap_ns; /* between two of its passes */
	size_t nr_unpatched;
	bool had_to_stop_all;
	/* Of the first process; "" before it is known. Borrowed. */
	const char *allocator;
	const char *reason;
	const char *unpatched;
	const char *late; /* a library with an allocator that was loaded later: not seen */
	enum heap_tier tier;
};

struct heapsource;

int heapsource_new(struct heapsource **ret_h, const struct heapsource_spec *spec, struct err *err);
/* The process's mappings are these now; borrowed until told otherwise. NULL: it is gone. */
void heapsource_space(struct heapsource *h, int32_t pid, const struct space *sp);
/* @tells_mappings: nobody else tells the sink what targets map, since there are no perf events. */
int heapsource_start(struct heapsource *h, uint64_t start_ns, bool tells_mappings,
		     const struct event_sink *sink, struct err *err);
/*
 * FORK, EXIT and COMM (exec) of any process, before they are applied: stacks that the old mappings
 * explain are told to @sink.
 */
int heapsource_saw(struct heapsource *h, const struct event *ev, const struct event_sink *sink,
		   struct err *err);
int heapsource_drain(struct heapsource *h, const struct event_sink *sink, struct err *err);
int heapsource_stop(struct heapsource *h, const struct event_sink *sink, struct err *err);
struct heapsource_info heapsource_info(const struct heapsource *h);
/* How soon it wants to be drained again. */
int heapsource_patience_ms(const struct heapsource *h);
void heapsource_free(struct heapsource *h);
void heapsource_free_p(struct heapsource **h);

#endif
