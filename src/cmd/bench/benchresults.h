/* Passes what was measured to the analysis, and its results to the exports. */
#ifndef ASSAY_CMD_BENCH_BENCHRESULTS_H
#define ASSAY_CMD_BENCH_BENCHRESULTS_H

#include "analyze/bench/benchreport.h"
#include "base/base.h"
#include "cmd/bench/benchbaseline.h"
#include "cmd/bench/benchcommands.h"
#include "render/benchexport.h"
#include "session/bench/benchlines.h"
#include "session/bench/countrun.h"

struct bench_results {
	const struct bench_commands *commands;
	const struct bench_lines *lines; /* of each command */
	bool has_each;                   /* by the last pattern of lines; the others are phases */
	const struct counter_set *counters;
	const struct bench_machine *machines;  /* for each command */
	const struct bench_baseline *baseline; /* NULL: none */
	const struct bench_run *shell;         /* NULL: none */
	size_t nr_blocks;
	bool has_early_looks;
	double least;
	double work;
	const char *unit;
	bool is_stopped;
	bool has_failed;
	uint64_t throttled_ns;
	uint64_t bound_bytes;
	uint64_t nr_lost_hits;
};

/* Whether all comparisons have a verdict after @nr_blocks. */
bool bench_results_decided(const struct bench_results *r, size_t nr_blocks);
/* BENCH_SLOWER if one command is slower. *ret_why: why one has no verdict, unchanged if all have one. */
enum bench_verdict bench_results_verdict(const struct bench_results *r, const char **ret_why);
const char *bench_results_invalid(const struct bench_results *r, struct arena *a);
struct report *bench_results_report(const struct bench_results *r);
void bench_results_export(const struct bench_results *r, struct buf *to,
			  void (*write)(struct buf *, const struct bench_export *, size_t));

#endif
