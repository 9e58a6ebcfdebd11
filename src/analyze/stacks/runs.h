/*
 * Several runs of one thing side by side: how much each function's share varies from run to run.
 *
 * Every run has the same say, the first one too, however many samples it has. The spread is the
 * standard deviation of the shares over the runs (n - 1). Beside it stands what sampling alone
 * would give, sqrt(p (1 - p) / n) with the runs' numbers of samples: a spread well above that is
 * the program's, not the profiler's.
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
 * Title, ledger (added up), facts that all runs share, a table of the runs and one of the
 * functions by mean self share. Limits are those of other tables; the rows they cut become <other>.
 */
void runs_report(struct report *r, const struct run_input *runs, size_t nr_runs,
		 const struct view_limits *limits);

#endif
