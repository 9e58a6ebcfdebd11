/*
 * Makes selections of a memory profile by `--weight` (tables: model/heap.h), so that every report
 * and flame graph can show them.
 *
 *	allocated        bytes allocated
 *	calls            allocations
 *	live             live bytes at the end, or at the time of --at
 *	leaked           part of live: old blocks (leaks.h)
 *	peak             live bytes at the peak
 *	temporary        allocations freed before the next one of their thread
 *	temporary-bytes  their bytes
 *	freed            bytes freed, of blocks allocated in the capture
 *	held             bytes held at exit: of processes that ended, or executed another program
 *	mapped           bytes mapped outside the allocator
 *	growth           anonymous memory touched for the first time; without that table
 *	                 allocated - freed in the time window
 *
 * Sampled sums are unbiased estimates, and selections carry the variance of each row. The default
 * is peak for a program that was launched, live for one that was attached to, else the
 * first of enum heap_weight that has rows.
 */
#ifndef ASSAY_ANALYZE_MEMORY_HEAPWEIGHTS_H
#define ASSAY_ANALYZE_MEMORY_HEAPWEIGHTS_H

#include "analyze/select/select.h"
#include "base/arena.h"
#include "base/base.h"
#include "base/err.h"

enum heap_weight {
	HEAP_WEIGHT_LIVE = 0,
	HEAP_WEIGHT_PEAK,
	HEAP_WEIGHT_LEAKED,
	HEAP_WEIGHT_ALLOCATED,
	HEAP_WEIGHT_CALLS,
	HEAP_WEIGHT_TEMPORARY,
	HEAP_WEIGHT_TEMPORARY_BYTES,
	HEAP_WEIGHT_FREED,
	HEAP_WEIGHT_HELD,
	HEAP_WEIGHT_MAPPED,
	HEAP_WEIGHT_GROWTH,
	HEAP_WEIGHT_NR
};

/* Average bytes between samples; 0: every allocation is recorded, or not known. */
uint64_t heap_sampling_bytes(const struct profile *p);
/* True if a table of memory has rows with stacks. */
bool heapweights_exist(const struct profile *p);
const char *heap_weight_key(enum heap_weight w); /* "temporary-bytes" */
/* "live bytes at the end" */
const char *heap_weight_title(const struct profile *p, enum heap_weight w);
enum table_id heap_weight_table(enum heap_weight w);
bool heap_weight_from_key(const char *key, enum heap_weight *ret_w);
enum heap_weight heap_weight_default(const struct profile *p);
/* True if the profile has rows for it, before filters. */
bool heap_weight_has_rows(const struct profile *p, enum heap_weight w);

/*
 * Selects by spec->heap; ignores spec->event. Rows of weight 0 are dropped. -EINVAL: invalid
 * weight, time, age or suppression. Else errors as select_run. An empty selection is not an error;
 * its why_empty has the reason.
 */
int heapweights_select(struct arena *a, const struct profile *p, const struct select_spec *spec,
		       struct selection *ret_sel, struct err *err);
/* True if a selection is of memory. */
bool heapweights_is_memory(const struct selection *sel);
/* True for amounts that grow with the duration of the capture; also for all but memory. */
bool heapweights_is_flow(const struct selection *sel);
/*
 * For writers of rows: makes @w the weight column of its table, which keeps only rows of that weight;
 * *ret_event: name of the table. -EINVAL: there is none.
 */
int heapweights_set(struct profile *p, enum heap_weight w, const char **ret_event, struct err *err);

/*
 * Iterates over the rows of one table that pass the filters. Fields for which the table has no
 * column are 0.
 *
 *	struct heaprows rows;
 *	struct heaprow row;
 *	if (!heaprows_open(&rows, &a, p, TABLE_LIVE, spec, err))
 *		while (heaprows_next(&rows, &row)) ...
 */
struct heaprow {
	size_t i; /* in the table */
	stack_id stack;
	task_id task;
	uint64_t time_ns;
	const struct tag *tag;
	int64_t nr; /* allocations, blocks, frees, faults, calls */
	int64_t bytes;
	int64_t samples;
	double variance;       /* of bytes */
	double count_variance; /* of nr, from that of bytes: all blocks of a row have one size */
	int64_t nr_temporary;
	int64_t temporary_bytes;
	int64_t unmapped_bytes; /* table "mapped" only */
};

struct heaprows {
	const struct profile *p;
	const struct table *t; /* NULL: no such table */
	struct row_filter *row_filter;
	size_t next;
	bool is_blocks;     /* has columns of samples and variance */
	bool has_temporary; /* false: known only of the part that was recorded in full */
};

/* A missing table has no rows. Errors of select_compile. */
int heaprows_open(struct heaprows *ret_r, struct arena *a, const struct profile *p,
		  enum table_id id, const struct select_spec *spec, struct err *err);
bool heaprows_next(struct heaprows *r, struct heaprow *ret_row);

#endif
