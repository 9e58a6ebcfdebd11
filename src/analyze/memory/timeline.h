/*
 * Memory over time: the table "memory" of a profile (model/heap.h) as one series, with the live
 * bytes of the heap computed from the tables "allocated" and "freed" of the same profile.
 *
 * A snapshot is one reading of all recorded processes, summed. PSS and private memory sum
 * correctly; RSS counts shared pages once per process. The last reading of a process counts until
 * its next one; a process that has exited counts 0. Live bytes are those of blocks allocated in the
 * capture: if the capture attached to a running program they are growth, not the whole heap
 * (memtime.is_live_whole). Allocations and frees are stored as sums per slice of time (model/heap.h);
 * within a slice, live bytes are interpolated. If there is one process, the live bytes of the reading nearest to its peak
 * are those of the table "peak".
 */
#ifndef ASSAY_ANALYZE_MEMORY_TIMELINE_H
#define ASSAY_ANALYZE_MEMORY_TIMELINE_H

#include "analyze/memory/verdict.h"
#include "analyze/report.h"
#include "analyze/view.h"
#include "base/arena.h"
#include "base/base.h"
#include "base/err.h"
#include "model/heap.h"
#include "model/profile.h"

struct memtime_row {
	uint64_t time_ns; /* on the profile's clock */
	/* By enum heap_memory_column. PSS: CELL_NO_BYTES where not all processes' was read. */
	uint64_t bytes[HEAP_MEMORY_NR];
	uint32_t nr_processes;
	uint64_t
		shmem_most_bytes; /* of the process with most; a sum would count shared pages twice */
	uint64_t shmem_space_bytes; /* its address space; 0: unknown */
};

struct memtime {
	struct memtime_row *rows; /* in the arena, in order of time */
	size_t nr_rows;
	size_t peak_idx; /* of live bytes, else of RSS */
	uint32_t nr_processes;
	uint64_t start_ns;     /* origin of times */
	const char *time_unit; /* heap_time_unit */
	bool is_stale;         /* the last reading is not of the end: see memtime_is_stale */
	bool has_live;
	bool is_live_whole; /* live bytes are the whole heap: recorded from the start of the program */
	bool has_pss;       /* of some readings */
	bool has_rss;       /* false: only live bytes (files of other tools) */
	bool has_split;     /* of RSS into anonymous, file and shared memory */
};

/*
 * Whether memory may have changed since a last reading of @pid (0: of any) at @ns: the recording is cut
 * off, the process has ended since, or there was time.
 */
bool memtime_is_stale(const struct profile *p, int32_t pid, uint64_t ns);
/* Makes the series. -ENODATA: the profile has none. */
int memtime_make(struct arena *a, const struct profile *p, struct memtime *ret_t, struct err *err);
/* Verdict on the series; evidence in the arena. Machine size and limit come from the facts. */
struct memverdict memtime_verdict(struct arena *a, const struct profile *p,
				  const struct memtime *t);

/*
 * Begins the report; adds tables "memory_time" (limits->max_rows snapshots at even distances, the
 * peak included) and "memory_growth", and a note with the verdict. If the profile has a table
 * "peak", adds the tree of memory live then, from allocating functions to their callers; nodes
 * below @min_tree_pct are merged.
 */
int memtime_report(struct report *r, const struct profile *p, const struct view_limits *limits,
		   double min_tree_pct, struct err *err);

/* The default of ms_print. */
#define MEMTIME_TREE_PCT 1.0

/*
 * Makes a chart: heap, stacks, other anonymous memory, shared memory, files and swap as stacked
 * areas, RSS and PSS as lines, the peak marked. @title: NULL: "memory over time". In the arena.
 */
int memtime_chart(struct arena *a, const struct profile *p, const char *title, struct chart *ret_c,
		  struct err *err);

/*
 * Adds table "memory_growth", and the verdict: as a finding if memory grows, is fragmented or near its
 * limit, else as a note. Nothing if the profile has no readings.
 */
void memtime_add(struct report *r, const struct profile *p);
/* Adds the verdict by the rules of memory. @flags: enum diagnose_flags. */
void memtime_answer(struct report *r, const struct profile *p, const struct memverdict *v,
		    unsigned flags);
/* Adds only table "memory_growth": first, last, peak and slope of each part. */
void memtime_growth_report(struct report *r, const struct memtime *m);

#endif
