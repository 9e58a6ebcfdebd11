/*
 * What counters mean: rates, instructions per cycle, miss rates, as perf stat prints them, and sentences
 * for those that are beyond the usual thresholds.
 */
#ifndef ASSAY_ANALYZE_BENCH_COUNTERMETRICS_H
#define ASSAY_ANALYZE_BENCH_COUNTERMETRICS_H

#include "base/arena.h"
#include "base/base.h"
#include "base/vec.h"
#include "model/counter.h"

/* Sets metric and metric_unit of each row. @elapsed_ns: time in which they were counted. */
void counter_metrics(struct counter_row *rows, size_t nr, double elapsed_ns);
/* The value of the row with this role; NAN: not counted. */
double counter_of(const struct counter_row *rows, size_t nr, enum counter_role role);

/* Less of the CPU time belongs to threads whose run queue was read: said. */
#define COUNTER_QUEUE_COVERED_PCT 98.0

#define COUNTER_NOTES_MAX 10
/*
 * Sentences on the values: instructions per cycle and miss rates with what is usual, events that took
 * turns, what was not counted. Returns their number. @has_pmu: some hardware event can be counted.
 */
size_t counter_notes(const char **ret, struct arena *a, const struct counter_row *rows, size_t nr,
		     bool has_pmu);

#endif
