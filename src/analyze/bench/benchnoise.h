/* What made the runs of a benchmark differ, as far as it was measured: each cause with its evidence. */
#ifndef ASSAY_ANALYZE_BENCH_BENCHNOISE_H
#define ASSAY_ANALYZE_BENCH_BENCHNOISE_H

#include "analyze/bench/benchreport.h"

/* Adds a note for each cause. */
void bench_noise(struct report *r, const struct bench_data *d);

#endif
