/*
 * Writes the results of a benchmark as hyperfine does: JSON (with what assay has besides under the key
 * "assay"), CSV and a Markdown table. Times in seconds; docs/formats/bench.md.
 */
#ifndef ASSAY_RENDER_BENCHEXPORT_H
#define ASSAY_RENDER_BENCHEXPORT_H

#include "base/base.h"
#include "base/buf.h"
#include "model/benchrun.h"

struct bench_export_parameter {
	const char *name;
	const char *value;
};

/* The verdict of a comparison with the first command. */
struct bench_export_change {
	const char *verdict;
	double ratio; /* time of this command / of the first one */
	double low;
	double high;
	double floor;  /* relative: 0.01 */
	double spread; /* NAN or infinite: not known */
	uint64_t nr_runs;
};

struct bench_export_times {
	const double *values_s; /* of runs or repeats */
	size_t nr;
	double mean_s, stddev_s, median_s, min_s, max_s;
	double median_low_s, median_high_s; /* NAN: too few */
};

struct bench_export_phase {
	const char *name;
	struct bench_export_times times;
	double share;                      /* of the run; NAN: not known */
	const struct bench_counts *counts; /* of runs; from nr_counts on not known */
	size_t nr_counts;
	const struct bench_export_change *change; /* NULL: not compared */
};

struct bench_export {
	const char *command;
	struct bench_export_times times;
	double mad_s, user_s, system_s;
	double p90_s, p95_s, p99_s;         /* NAN: too few runs */
	double cold_s;                      /* NAN: not measured */
	const struct bench_run *runs;       /* times.nr */
	const struct counter_row *counters; /* of runs[].counters */
	size_t nr_counters;
	const double *each; /* values of --each; NULL: none */
	size_t nr_each;
	bool each_is_time;
	const struct bench_export_phase *phases;
	size_t nr_phases;
	const struct bench_export_parameter *parameters;
	size_t nr_parameters;
	const struct bench_machine *machine;
	const struct bench_export_change *against; /* the baseline; NULL: none */
	const struct bench_export_change *change;  /* NULL: not compared */
};

void bench_export_json(struct buf *to, const struct bench_export *e, size_t nr);
void bench_export_csv(struct buf *to, const struct bench_export *e, size_t nr);
void bench_export_markdown(struct buf *to, const struct bench_export *e, size_t nr);

#endif
