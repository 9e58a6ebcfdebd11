/*
 * Compares several runs of one command: how much the share of each function varies between runs.
 *
 * Every run counts equally, however many samples it has. The spread is the standard deviation of
 * the shares over the runs (n - 1). A second column has the standard deviation that sampling alone
 * causes, sqrt(p (1 - p) / n) with the runs' numbers of samples: a spread well above it comes from
 * the program, not from sampling.
 */
#ifndef ASSAY_ANALYZE_STACKS_RUNS_H
#define ASSAY_ANALYZE_STACKS_RUNS_H

#include "analyze/report.h"
#include "analyze/select/select.h"
#include "analyze/view.h"
#include "base/base.h"

struct run_input {
	struct selection sel;
	const char *name; /* of the run, as it is shown */
};

/*
 * Sets title, losses (summed) and the facts that are equal in all runs; adds a table of the runs
 * and one of the functions by mean self share. Rows cut by the limits become "<other>".
 */
void runs_report(struct report *r, const struct run_input *runs, size_t nr_runs,
		 const struct view_limits *limits);

#endif
