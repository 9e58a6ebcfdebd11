/*
 * What the lines of a program say of its runs: the values of --each, which are judged in the place of
 * wall time, and phases. Without --each a phase's time in a run is the sum of its values there; with
 * it, the values are repeats as those of --each.
 */
#ifndef ASSAY_ANALYZE_BENCH_BENCHPHASES_H
#define ASSAY_ANALYZE_BENCH_BENCHPHASES_H

#include "analyze/bench/benchreport.h"
#include "base/base.h"

/* All values but the first one of each run, which is cold, unless it is the only one; @to: n. */
size_t bench_printed_series(double *to, const struct bench_printed *p);
/* One value for each run: of several, their median without the first; NAN: none. */
void bench_printed_medians(double *to, size_t nr_runs, const struct bench_printed *p);

/* The times of a phase, of runs or repeats that have it. *ret is the caller's. */
size_t bench_phase_series(double **ret, const struct bench_data *d, size_t subject, size_t phase);
/* In percent of the runs, or of as many values of --each; NAN: not to be compared. */
double bench_phase_share(const struct bench_data *d, size_t subject, size_t phase);
/* As bench_outcome; nr_blocks 0: a run of either command does not have the phase. */
void bench_phase_outcome(struct bench_outcome *ret, const struct bench_data *d, size_t subject,
			 size_t phase, size_t nr_blocks);
/* Why the phases say nothing; NULL: they do. In the arena. */
const char *bench_phases_invalid(struct arena *a, const struct bench_data *d);

/* Adds tables and notes. */
void bench_phases(struct report *r, const struct bench_data *d);

#endif
