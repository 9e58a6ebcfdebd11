/* Facts of a recording about how its heap was recorded (model/heap.h, HEAP_FACT_*). */
#ifndef ASSAY_CAPTURE_HEAP_HEAPFACTS_H
#define ASSAY_CAPTURE_HEAP_HEAPFACTS_H

#include "base/base.h"
#include "capture/heap/process.h"
#include "capture/heap/heapsource.h"

/* Results of the heap recording of a capture, summed over its processes. */
struct heapsource_info {
	size_t nr_processes;    /* recorded; each exec counts as another */
	size_t nr_pids;         /* the same, but a process counts once */
	size_t nr_growth_only;  /* recorded by method GROWTH instead */
	size_t nr_refused;      /* could not be recorded */
	size_t nr_not_followed; /* forked children not recorded */
	size_t nr_too_short;    /* children that ended before the attach */
	size_t nr_late;         /* programs that had run unrecorded since their fork or exec */
	size_t nr_ended;        /* programs that ended while others were recorded; exec too */
	size_t nr_killed;       /* recorded processes that a signal killed */
	size_t nr_broken;       /* rings with invalid contents */
	uint64_t nr_dropped;    /* records dropped: ring full, or no slot */
	uint64_t nr_allocs;     /* exact counts of the recorder, also when sampled */
	uint64_t nr_alloc_bytes;
	uint64_t nr_frees;
	/*
	 * With starts_full: the shortest time for which a program was recorded in full before it was
	 * sampled; 0: none was.
	 */
	uint64_t full_ns;
	size_t nr_sampled; /* processes that were sampled, from the start or later */
	struct heap_class_count classes[HEAP_COUNT_CLASSES]; /* of the allocations */
	uint64_t nr_unaccounted;                             /* blocks not stored: table full */
	uint64_t table_bytes;                                /* peak memory of the block tables */
	uint64_t stopped_ns;   /* longest stop of one thread of a target */
	bool is_tsc_forbidden; /* a target forbade itself rdtsc: its recording ended then */
	bool has_implausible;  /* counters in a target's memory that cannot be true */
	bool has_timed_out;    /* a recorder stopped: assay got no CPU for 2 s */
	uint64_t nr_no_stack;  /* stacks not stored in the target */
	struct heapprocess_pythons pythons;
	double accounted_bytes;    /* allocated bytes in rows; an estimate if sampled */
	double accounted_variance; /* of accounted_bytes */
	uint64_t drain_ns;         /* CPU time of the drain thread */
	uint64_t longest_gap_ns;   /* between two drains */
	size_t nr_unpatched;       /* allocator functions that could not be patched */
	bool had_to_stop_all;      /* all threads of a process were stopped to patch it */
	/* Of the first process; NULL until known. Owned. */
	char *allocator; /* its name */
	char *reason;    /* why this method was chosen */
	char *unpatched; /* an allocator function that could not be patched, and why */
	char *late;      /* a library loaded later whose allocator is not recorded */
	enum heap_method method;
};

/* Adds the counts of a process whose recording has ended. */
void heapfacts_count(struct heapsource_info *sum, const struct heapprocess *p);
/* Adds the facts without which the rows are misread. @is_launch: assay started the target. */
void heapfacts_add_method(struct profile *p, const struct heapsource_info *i,
			  const struct heapsource_spec *spec, bool is_launch);
/* Adds all facts and losses of a capture. */
void heapfacts_add(struct profile *p, const struct heapsource_info *i,
		   const struct heapsource_spec *spec, bool is_launch);
/*
 * Adds the exact counts of a recorder. @classes: HEAP_COUNT_CLASSES of them. @is_sampled: the rows
 * are scaled to them (model/heapcalibrate.h).
 */
void heapfacts_add_counts(struct profile *p, const struct heap_class_count *classes,
			  uint64_t nr_frees, bool is_sampled);
/* Adds the fact about sampling. @interval_bytes: mean bytes between samples, 0 = no sampling. */
void heapfacts_add_sampling(struct profile *p, uint64_t interval_bytes, bool is_launch);

#endif
