/*
 * Sums the blocks and bytes of a memory profile in one pass over its tables: in total, by
 * allocating function (heapframes.h), by allocation site (function with its callers), by thread and
 * by block size. The first page and its tables are made from these sums.
 */
#ifndef ASSAY_ANALYZE_MEMORY_HEAPFIGURES_H
#define ASSAY_ANALYZE_MEMORY_HEAPFIGURES_H

#include "analyze/memory/heapframes.h"
#include "analyze/memory/leaks.h"
#include "analyze/report.h"
#include "analyze/select/select.h"
#include "analyze/memory/suppress.h"
#include "base/arena.h"
#include "base/base.h"
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"

struct heap_sum {
	int64_t nr; /* blocks, calls or page faults */
	int64_t bytes;
	double variance;       /* of bytes, in bytes squared */
	double count_variance; /* of nr */
	/* Exact counts that the sum is a part of; 0: none. */
	int64_t most_nr;
	int64_t most_bytes;
};

enum heap_sum_id {
	HEAP_SUM_ALLOCATED,
	HEAP_SUM_TEMPORARY,         /* part of allocated */
	HEAP_SUM_FREED,             /* by the program */
	HEAP_SUM_HELD,              /* freed by the end of their process or by its exec */
	HEAP_SUM_FREED_PREEXISTING, /* frees of blocks allocated before the capture */
	HEAP_SUM_LIVE,
	HEAP_SUM_LEAKED,     /* part of live; suppressed leaks included */
	HEAP_SUM_SUPPRESSED, /* part of leaked */
	HEAP_SUM_PEAK,
	HEAP_SUM_MAPPED,
	HEAP_SUM_UNMAPPED,
	HEAP_SUM_GROWTH, /* anonymous memory touched for the first time */
	HEAP_SUM_NR
};

struct heap_figures {
	struct heap_sum of[HEAP_SUM_NR]; /* by enum heap_sum_id */
	uint64_t oldest_leak_ns; /* second in which the oldest leaked block was allocated; 0: none
				  * or not known */
};

struct heap_group {
	struct heapframe
		frame; /* in functions and sites; of functions, via is that of most bytes */
	task_id task;  /* in threads */
	unsigned log2; /* in sizes: blocks from 2^log2 bytes, or HEAP_SIZE_UNKNOWN */
	size_t idx;    /* index before the last sort */
	struct heap_figures f;
};

#define HEAP_SIZE_UNKNOWN 64
#define HEAP_SIZE_FIRST   4 /* blocks below 16 bytes are one row */

struct heap_groups {
	VEC(struct heap_group) rows; /* in order of first occurrence */
	struct map index;
};

/* The fastest growing allocation site, see leaktable.h. */
struct heap_growing {
	const char *site;     /* NULL: none */
	double per_min;       /* bytes */
	double per_min_error; /* half width of the 95 % interval */
	size_t nr_more;       /* further sites that grow */
};

struct heapfigures {
	const struct profile *p;
	struct arena *arena;
	const struct table *freed; /* NULL: none */
	struct heapframes *frames;
	struct suppress *suppress;
	struct leak_limit leaks;
	struct heap_figures total;
	struct heap_groups functions;
	struct heap_groups vias;  /* functions by what they called; idx: row of the function */
	struct heap_groups sites; /* key: stack node of the function */
	struct heap_groups threads;
	struct heap_groups sizes;
	uint64_t peak_ns;        /* time of the peak of live bytes; 0: not known */
	uint64_t together_bytes; /* several: what was live at one time at most, by slices */
	size_t nr_peaks;         /* number of processes, each with a peak of its own */
	bool has_merged; /* massif's trees: a function without a row may be below its threshold */
	bool is_sampled; /* numbers are estimates from samples */
	int64_t nr_samples; /* sampled allocations that stand for more than themselves */
	bool is_exact;      /* sampled, but what was allocated is scaled to exact counts */
	struct heap_growing growing;
	int64_t not_sampled_bytes; /* of the allocations of sizes of which none was sampled */
};

/*
 * Sums the tables. The result uses memory of the arena; heapfigures_release frees the rest. Errors
 * as select_run.
 */
int heapfigures_collect(struct heapfigures *f, struct arena *a, const struct profile *p,
			const struct select_spec *spec, struct err *err);
void heapfigures_release(struct heapfigures *f);

/* The weight to sort by: peak for launched programs, else live, as on the rest of the page. */
enum heap_sum_id heapfigures_main_sum(const struct heapfigures *f);
/* Whether shares are exact enough to be percentages. */
bool heapfigures_has_shares(const struct heapfigures *f);
/* Sorts by one of the sums (bytes or number), largest first; stable. */
void heap_groups_sort(struct heap_groups *g, enum heap_sum_id of, bool by_number);
void heap_figures_add(struct heap_figures *to, const struct heap_figures *from);

/* Saturates. */
void heap_sum_add(struct heap_sum *to, const struct heap_sum *from);
/* True if both number and bytes are 0; some sources have only one of them. */
bool heap_sum_is_none(const struct heap_sum *s);
/* Cells with the value and the half width of its 95 % interval. */
union cell heap_cell_bytes(const struct heap_sum *s);
union cell heap_cell_count(const struct heap_sum *s);

#endif
