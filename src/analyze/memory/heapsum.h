/*
 * First page of a profile of memory: how it was recorded; bytes allocated, freed, live, leaked and
 * at the peak, and RSS; tables by allocating function, leaks by site with their growth, temporary
 * allocations, block sizes, threads.
 *
 * Tables: "memory", "heap_functions", "leaks", "temporary", "heap_sizes", "heap_threads", and if
 * they have rows "mapped_functions", "growth_functions". Sampled numbers have a 95 % confidence
 * interval.
 */
#ifndef ASSAY_ANALYZE_MEMORY_HEAPSUM_H
#define ASSAY_ANALYZE_MEMORY_HEAPSUM_H

#include "analyze/memory/heapfigures.h"
#include "analyze/report.h"
#include "analyze/select/select.h"
#include "analyze/view.h"
#include "base/base.h"
#include "base/err.h"

/* @input: file name for hints; NULL: no hints. Errors as select_run. */
int heapsum_report(struct report *r, const struct profile *p, const struct select_spec *spec,
		   const char *input, const struct view_limits *limits, struct err *err);

/* Adds a single table of the page to a report that heapsum_begin began. */
enum heapsum_table { HEAPSUM_SIZES, HEAPSUM_THREADS, HEAPSUM_LEAKS };
int heapsum_table(struct report *r, const struct profile *p, const struct select_spec *spec,
		  const struct view_limits *limits, enum heapsum_table table, struct err *err);

/*
 * Adds the first allocating functions and leaks, and how they were sampled, to the page of a recording
 * of everything.
 */
int heapsum_add(struct report *r, const struct profile *p, const struct select_spec *spec,
		const struct view_limits *limits, struct err *err);

/* Begins a report of any view of memory: facts and notes on sampling, drops and suppressions. */
void heapsum_begin(struct report *r, const struct profile *p, const struct selection *sel);

/* Which sum a page answers with, and what it is of: "live at the end". */
struct heap_answer {
	enum heap_sum_id of;
	const char *what; /* NULL: the figures are too few for an answer */
};

void heapsum_answer(struct heap_answer *ret_answer, const struct heapfigures *f);
/* Allocations were counted, but none was sampled, so nothing is known about their blocks. */
bool heapsum_has_no_sample(const struct heapfigures *f);
/* The length of what is selected; 0: times are not known. */
double heapsum_seconds(const struct profile *p, const struct select_spec *spec);

#endif
