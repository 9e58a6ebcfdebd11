/*
 * All numbers of a profile of memory, added up in one pass over its tables: of everything, by
 * allocating function (heapframes.h), by site (a function with the callers that led to it), by
 * thread and by size. What the first page and its tables are made of.
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
	int64_t nr;
	int64_t bytes;
	double variance;       /* of bytes */
	double count_variance; /* of nr */
};

enum heap_sum_id {
	HEAP_SUM_ALLOCATED,
	HEAP_SUM_TEMPORARY, /* of allocated */
	HEAP_SUM_FREED,
	HEAP_SUM_OLDER, /* blocks from before the capture */
	HEAP_SUM_LIVE,
	HEAP_SUM_LEAKED,     /* of live, suppressed ones included */
	HEAP_SUM_SUPPRESSED, /* of leaked */
	HEAP_SUM_PEAK,
	HEAP_SUM_MAPPED,
	HEAP_SUM_UNMAPPED,
	HEAP_SUM_GROWTH, /* touched for the first time */
	HEAP_SUM_NR
};

struct heap_figures {
	struct heap_sum of[HEAP_SUM_NR];
	uint64_t oldest_leak_ns; /* its second; 0 = none, or not known */
};

struct heap_group {
	struct heapframe frame; /* functions, sites */
	task_id task;           /* threads: the last name */
	unsigned log2;          /* sizes: from 2^log2 bytes; HEAP_SIZE_UNKNOWN */
	size_t idx;             /* before they were sorted last */
	struct heap_figures f;
};

#define HEAP_SIZE_UNKNOWN 64
#define HEAP_SIZE_FIRST   4 /* smaller blocks than 16 bytes are one row */

struct heap_groups {
	VEC(struct heap_group) rows; /* in order of first sight */
	struct map index;
};

struct heapfigures {
	const struct profile *p;
	struct arena *arena;
	struct heapframes *frames;
	struct suppress *suppress;
	struct leak_limit leaks;
	struct heap_figures total;
	struct heap_groups functions;
	struct heap_groups sites; /* key: the node of the function's frame */
	struct heap_groups threads;
	struct heap_groups sizes;
	uint64_t peak_ns; /* when live bytes were most; 0 = not known */
	size_t nr_peaks;  /* of so many processes, each at its own moment */
	bool is_sampled;  /* some number is an estimate */
};

/* Errors as select_run. Lives in the arena, but for what heapfigures_release frees. */
int heapfigures_collect(struct heapfigures *f, struct arena *a, const struct profile *p,
			const struct select_spec *spec, struct err *err);
void heapfigures_release(struct heapfigures *f);

/* Largest first by one of the sums, by bytes or by number; ties as they were. */
void heap_groups_sort(struct heap_groups *g, enum heap_sum_id of, bool by_number);
void heap_figures_add(struct heap_figures *to, const struct heap_figures *from);

/* Saturates. */
void heap_sum_add(struct heap_sum *to, const struct heap_sum *from);
/* Bytes or a number of anything; some sources know one of them only. */
bool heap_sum_is_none(const struct heap_sum *s);
/* Cells of sums: the value and half of its interval. */
union cell heap_cell_bytes(const struct heap_sum *s);
union cell heap_cell_count(const struct heap_sum *s);

#endif
