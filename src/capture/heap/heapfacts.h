/* What a recording says about how a heap was recorded (model/heap.h, HEAP_FACT_*). */
#ifndef ASSAY_CAPTURE_HEAP_HEAPFACTS_H
#define ASSAY_CAPTURE_HEAP_HEAPFACTS_H

#include "base/base.h"
#include "capture/heap/process.h"
#include "capture/heap/heapsource.h"

struct heapsource_info {
	size_t nr_processes;    /* recorded, one for each program that they executed */
	size_t nr_grown;        /* of which growth is recorded instead */
	size_t nr_refused;      /* wanted, but not recorded */
	size_t nr_not_followed; /* forked and left alone */
	size_t nr_too_short;    /* to be followed, but gone before they could be attached to */
	size_t nr_broken;       /* rings that made no sense */
	uint64_t nr_dropped;    /* by the recorder: a ring was full, a thread had no slot */
	uint64_t nr_allocs;     /* counted exactly by the recorder, also where it sampled */
	uint64_t nr_alloc_bytes;
	uint64_t nr_frees;
	uint64_t nr_unaccounted;   /* blocks for which there was no room here */
	uint64_t table_bytes;      /* most memory that the tables of blocks took here */
	uint64_t stopped_ns;       /* longest stop of one thread of a target */
	bool is_tsc_forbidden;     /* a target went into strict seccomp: recorded up to then */
	bool has_gone_silent;      /* the recorder did, for we had not come by in time */
	uint64_t nr_no_stack;      /* stacks for which there was no room in the target */
	double accounted_bytes;    /* in rows: an estimate, where sampled */
	double accounted_variance; /* of accounted_bytes */
	uint64_t drain_ns;         /* CPU time of the thread that empties the rings */
	uint64_t longest_gap_ns;   /* between two of its passes */
	size_t nr_unpatched;
	bool had_to_stop_all;
	/* Of the first process; NULL before it is known. Owned. */
	char *allocator;
	char *reason;
	char *unpatched;
	char *late; /* a library with an allocator that was loaded later: not seen */
	enum heap_method method;
};

/* Adds what one process was recorded by, once its recording has ended. */
void heapfacts_count(struct heapsource_info *sum, const struct heapprocess *p);
void heapfacts_add(struct profile *p, const struct heapsource_info *i,
		   const struct heapsource_spec *spec, bool is_launch);
/* @interval_bytes: 0 = every allocation. */
void heapfacts_add_sampling(struct profile *p, uint64_t interval_bytes, bool is_launch);

#endif
