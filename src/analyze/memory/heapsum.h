/*
 * The first page of a profile of memory: how it was recorded, what was allocated, freed, lives and
 * leaked, when it was most, what the kernel says beside it; by allocating function, leaks by site
 * with their growth, temporary allocations, sizes, threads.
 *
 * Tables: "memory", "heap_functions", "leaks", "temporary", "heap_sizes", "heap_threads", and where
 * there are any "mapped_functions", "growth_functions". What was sampled has its 95 % interval.
 */
#ifndef ASSAY_ANALYZE_MEMORY_HEAPSUM_H
#define ASSAY_ANALYZE_MEMORY_HEAPSUM_H

#include "analyze/report.h"
#include "analyze/select/select.h"
#include "analyze/view.h"
#include "base/base.h"
#include "base/err.h"

/* @input names the file in hints, NULL: none are given. Errors as select_run. */
int heapsum_report(struct report *r, const struct profile *p, const struct select_spec *spec,
		   const char *input, const struct view_limits *limits, struct err *err);

/* One table of the page alone, in a report that has begun. */
enum heapsum_table { HEAPSUM_SIZES, HEAPSUM_THREADS, HEAPSUM_LEAKS };
int heapsum_table(struct report *r, const struct profile *p, const struct select_spec *spec,
		  const struct view_limits *limits, enum heapsum_table table, struct err *err);

/* Facts and notes of memory, for any view of it: sampling, what was dropped, ages. */
void heapsum_begin(struct report *r, const struct profile *p, const struct selection *sel);

#endif
