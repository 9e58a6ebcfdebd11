/* The counters of the runs of a benchmark: a table, and what they mean. */
#ifndef ASSAY_ANALYZE_BENCH_BENCHCOUNTERS_H
#define ASSAY_ANALYZE_BENCH_BENCHCOUNTERS_H

#include "analyze/bench/benchreport.h"

/* Adds the table "counters", with the median of each event, and notes. Nothing without events. */
void bench_counters(struct report *r, const struct bench_data *d);
/* Counter @idx of a run; NAN: it was not counted. */
double bench_counter(const struct bench_data *d, const struct bench_run *run, size_t idx);

/* The median of a counter's runs; NAN: it was not counted. */
double bench_counter_median(const struct bench_data *d, const struct bench_subject_data *s,
			    enum counter_role role);

#endif
