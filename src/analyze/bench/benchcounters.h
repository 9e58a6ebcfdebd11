/* The counters of the runs of a benchmark: a table, and what they mean. */
#ifndef ASSAY_ANALYZE_BENCH_BENCHCOUNTERS_H
#define ASSAY_ANALYZE_BENCH_BENCHCOUNTERS_H

#include "analyze/bench/benchreport.h"

/* Adds the table "counters", with the median of each event, and notes. Nothing without events. */
void bench_counters(struct report *r, const struct bench_data *d);
/* Adds "phase_counters": the same of phases, with their share of the run. */
void bench_phase_counters(struct report *r, const struct bench_data *d);
/* Whether something was counted in a phase, or in any: BENCH_WHOLE. */
bool bench_has_counts(const struct bench_data *d, size_t phase);
/* CPU time of a phase in a run, the median of the runs; NAN: it was not counted. */
double bench_phase_cpu(const struct bench_data *d, const struct bench_subject_data *s,
		       size_t phase);

/* The median of a counter's runs; NAN: it was not counted. */
double bench_counter_median(const struct bench_data *d, const struct bench_subject_data *s,
			    enum counter_role role);

#endif
