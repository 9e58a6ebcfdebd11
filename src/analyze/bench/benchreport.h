/*
 * The report of a benchmark: one command, or several compared with the first one. What is compared is
 * wall time, or the values that the program prints (--each).
 */
#ifndef ASSAY_ANALYZE_BENCH_BENCHREPORT_H
#define ASSAY_ANALYZE_BENCH_BENCHREPORT_H

#include "analyze/bench/benchagainst.h"
#include "analyze/bench/benchcompare.h"
#include "analyze/bench/benchstat.h"
#include "analyze/report.h"
#include "base/base.h"
#include "model/benchrun.h"

/* Values that a program printed, of all runs in order. */
struct bench_printed {
	const double *v;   /* times in ns, or plain numbers */
	const size_t *run; /* of each value: index of the run */
	size_t n;
	bool has_plain;                    /* numbers without a unit of time */
	uint64_t nr_at_once;               /* phases whose start and end were read together */
	uint64_t nr_unopened;              /* marks of an end without a begin */
	uint64_t nr_unended;               /* runs that ended in a phase with marks */
	const struct bench_counts *counts; /* of each run; runs from nr_counts on have none */
	size_t nr_counts;
};

struct bench_subject_data {
	const char *name;
	const struct bench_run *runs;
	size_t nr_runs;
	const struct bench_run *cold;  /* NULL: none */
	const struct bench_run *shell; /* what to subtract: the shell's own run; NULL: nothing */
	uint64_t nr_failed;
	const struct bench_machine *machine;
	const struct bench_session *baseline; /* NULL: none */
	struct bench_printed each;
	uint64_t nr_unknown_marks;
	const char *const *unknown_marks; /* some of them, each once */
	size_t nr_unknown_names;
	const struct bench_printed *phases; /* bench_data.nr_phases */
};

struct bench_phase {
	const char *name;
	bool is_marked;       /* by the command or by calls; else read from its output */
	const char *function; /* of such calls; NULL: none */
};

struct bench_data {
	const struct bench_subject_data *subjects;
	size_t nr_subjects;
	bool has_each;
	bool each_is_time; /* values in ns; else plain numbers */
	const struct bench_phase *phases;
	size_t nr_phases;
	double work; /* units done by a run; 0: not given */
	const char *unit;
	double least;                       /* the smallest change of interest, 0.01 */
	size_t nr_blocks;                   /* planned; 0: one command */
	bool has_early_looks;               /* else only the end is looked at */
	bool is_stopped;                    /* by a signal */
	bool has_failed;                    /* a run, so that it was the last one */
	const struct counter_row *counters; /* the events of the runs, without values */
	size_t nr_counters;
	/* About the machine, over all runs. */
	uint64_t throttled_ns;    /* by the CPU quota of the cgroup */
	const char *governor;     /* of the CPU's frequency; NULL: not known */
	uint64_t rss_bound_bytes; /* peaks below are not known (benchrunner.h) */
	uint64_t nr_lost_hits;    /* of functions that are phases */
};

#define BENCH_WHOLE SIZE_MAX /* in the place of a phase: the run's time, or the values of --each */

/*
 * The series that is judged, of runs or repeats that have it: cold first values of --each are left out.
 * *ret is the caller's.
 */
size_t bench_series(double **ret, const struct bench_data *d, size_t subject, size_t phase);
/* Values of a metric without the shell's share; NAN: not known. */
void bench_metric_values(double *to, const struct bench_subject_data *s, enum bench_metric m);

struct bench_outcome {
	enum bench_verdict verdict;
	struct bench_ratio ratio; /* nr_blocks 0: no block, or a run without a value */
};
/* The verdict on @subject against the first one by the blocks so far, or fewer. */
void bench_outcome(struct bench_outcome *ret, const struct bench_data *d, size_t subject,
		   size_t phase, size_t nr_blocks);
/* The same against its baseline, which it must have. */
void bench_outcome_against(struct bench_against *ret, const struct bench_data *d, size_t subject);
const char *bench_verdict_name(enum bench_verdict v);
/* Why the results say nothing: no match of --each, times of 0. NULL: they do. In the arena. */
const char *bench_invalid(struct arena *a, const struct bench_data *d);

/* A column of tables made by bench_add_table, shown if there are several commands. */
enum { BENCH_WHEN_SEVERAL = 1 << 0, BENCH_WHEN_COUNTED = 1 << 1 };
#define BENCH_COMMAND_COLUMN                                             \
	{                                                                \
		.key = "command", .title = "command", .kind = CELL_TEXT, \
		.when = BENCH_WHEN_SEVERAL,                              \
	}
struct report_table *bench_add_table(struct report *r, const struct bench_data *d, const char *key,
				     const char *title, const struct report_column *columns,
				     size_t nr_columns);

struct report *bench_report(const struct bench_data *d);

#endif
