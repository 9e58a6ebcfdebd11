/*
 * Memory as a selection: what `--weight` says of a profile with tables of memory (model/heap.h), so
 * that every view and picture can show it.
 *
 *	allocated        bytes that were allocated
 *	calls            allocations
 *	live             bytes at the end, or --at a moment
 *	leaked           of live: old (leaks.h)
 *	peak             bytes when they were most
 *	temporary        allocations freed before the thread's next one
 *	temporary-bytes  their bytes
 *	freed            bytes of the capture's that were freed
 *	mapped           bytes that the program mapped itself
 *	growth           memory touched for the first time; without that table allocated - freed in
 *	                 the window
 *
 * Sampled sums are unbiased estimates, and selections carry the variance of each row. Where the
 * user names none, it is what was most at the peak of a program that was launched, what lives at
 * the end of one that was attached to, else the first of the list that has rows.
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
	HEAP_WEIGHT_MAPPED,
	HEAP_WEIGHT_GROWTH,
	HEAP_WEIGHT_NR
};

/* Bytes between samples, on average; 0: every allocation, or not known. */
uint64_t heap_sampling_bytes(const struct profile *p);
/* Has the profile any row with a stack of memory? */
bool heapweights_are_there(const struct profile *p);
const char *heap_weight_key(enum heap_weight w);   /* "temporary-bytes" */
const char *heap_weight_title(enum heap_weight w); /* "bytes in use at the end" */
enum table_id heap_weight_table(enum heap_weight w);
bool heap_weight_from_key(const char *key, enum heap_weight *ret_w);
enum heap_weight heap_weight_default(const struct profile *p);
/* Whether the profile has rows for it, whatever filters say. */
bool heap_weight_has_rows(const struct profile *p, enum heap_weight w);

/*
 * The spec's event is not looked at; its heap says what is. Rows in view that weigh nothing are
 * left out. -EINVAL: no such weight, moment, age or suppression. Else errors as select_run. A
 * selection without rows is no error, and says why.
 */
int heapweights_select(struct arena *a, const struct profile *p, const struct select_spec *spec,
		       struct selection *ret_sel, struct err *err);
/* Whether a selection is of memory. */
bool heapweights_is_one(const struct selection *sel);
/* For what goes through a table row by row: which one, weighed by which column. */
void heapweights_set(struct profile *p, enum heap_weight w, const char **ret_event);

/*
 * The rows of one table that filters leave in view, columns by their meaning (0 where the table has
 * none).
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
	double count_variance; /* of nr, from that of bytes: a row's blocks are of one size */
	int64_t nr_temporary;
	int64_t temporary_bytes;
	int64_t unmapped_bytes; /* "mapped" */
};

struct heaprows {
	const struct profile *p;
	const struct table *t; /* NULL: it is not there */
	struct row_filter *row_filter;
	size_t next;
	bool is_blocks; /* columns of samples and variance are there */
};

/* Of a table that is not there there are no rows. Errors of select_compile. */
int heaprows_open(struct heaprows *ret_r, struct arena *a, const struct profile *p,
		  enum table_id id, const struct select_spec *spec, struct err *err);
bool heaprows_next(struct heaprows *r, struct heaprow *ret_row);

#endif
