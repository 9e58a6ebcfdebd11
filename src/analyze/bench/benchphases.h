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
/* One value for each run: of several, their median without the first, or their sum; NAN: none. */
void bench_printed_medians(double *to, size_t nr_runs, const struct bench_printed *p);
void bench_printed_sums(double *to, size_t nr_runs, const struct bench_printed *p);

/* In percent of the runs, or of as many values of --each; NAN: not to be compared. */
double bench_phase_share(const struct bench_data *d, size_t subject, size_t phase);
/* Why the phases say nothing; NULL: they do. In the arena. */
const char *bench_phases_invalid(struct arena *a, const struct bench_data *d);

/* Adds tables and notes. */
void bench_phases(struct report *r, const struct bench_data *d);

#endif
