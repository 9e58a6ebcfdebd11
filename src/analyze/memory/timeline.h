/*
 * Memory over time: the table "memory" of a profile (model/heap.h) as one series, beside it the
 * live bytes of the heap as the tables "allocated" and "freed" of the same profile add up to.
 *
 * A snapshot is one reading of all processes that were recorded: their values are added up, of PSS
 * and of private memory rightly, of RSS counting shared pages once for each. What a process had
 * when it was read last counts until it is read again; of one that has ended nothing comes any
 * more. Live bytes are those of blocks that were allocated in the capture: of a capture that
 * attached to a running program they are growth, not the whole heap (memtime.is_live_whole).
 * Between the seconds by which flows are told they are interpolated; at the reading nearest to the
 * peak of the one process they are what the table "peak" says.
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
	uint64_t time_ns;               /* of the profile's clock */
	uint64_t bytes[HEAP_MEMORY_NR]; /* by enum heap_memory_column */
	uint64_t shmem_most_bytes; /* of one process: in a sum they count what they share again */
};

struct memtime {
	struct memtime_row *rows; /* in the arena, in order of time */
	size_t nr_rows;
	size_t peak_idx; /* of live bytes, or of RSS where there are none */
	uint32_t nr_processes;
	uint64_t start_ns; /* what times are counted from */
	bool has_live;
	bool is_live_whole; /* all of the heap: from the program's start */
	bool has_rss;       /* else live bytes alone: files of other tools */
	bool has_split;     /* of RSS into anonymous, file and shared memory */
};

/* -ENODATA: nothing over time. */
int memtime_make(struct arena *a, const struct profile *p, struct memtime *ret_t, struct err *err);
/* What the series says; evidence in the arena. Facts of the profile tell machine and limit. */
struct memverdict memtime_verdict(struct arena *a, const struct profile *p,
				  const struct memtime *t);

/*
 * Tables "memory_time" (snapshots, evenly chosen down to limits->max_rows, the peak among them) and
 * "memory_growth", a note with the verdict. At the peak: the tree of what was live then, from the
 * allocating functions to their callers, where the profile has a table "peak"; nodes below
 * @min_tree_pct of it are put together. Begins the report.
 */
int memtime_report(struct report *r, const struct profile *p, const struct view_limits *limits,
		   double min_tree_pct, struct err *err);

/* What massif's reader shows by default. */
#define MEMTIME_TREE_PCT 1.0

/*
 * The chart of it: heap, stacks, other anonymous memory, shared memory, files and swap stacked, RSS
 * and PSS as lines over them, the peak marked. @title: NULL = "memory over time". In the arena.
 */
int memtime_chart(struct arena *a, const struct profile *p, const char *title, struct chart *ret_c,
		  struct err *err);

/* Table "memory_growth" alone: first, last, peak and slope of each part. */
void memtime_growth_report(struct report *r, const struct memtime *m);

#endif
