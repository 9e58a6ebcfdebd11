/*
 * Makes one selection of all thread time, on-CPU and off-CPU, for trees and tables ("hot/cold").
 *
 * CPU samples are scaled, per thread and second, to the on-CPU time of the thread time breakdown
 * (analyze/wait/breakdown.h). On-CPU time without a sample is the frame "[on CPU, no sample]".
 * Waits are added under their stacks. Idle waits are one frame "[idle]" per thread, or excluded.
 * The weight of the selection is the sum of the breakdown, without idle time if that is excluded.
 *
 * nr_samples counts samples for on-CPU rows and waits for off-CPU rows. With SELECT_SINGLE_ROWS, rows
 * are those of three tables (hotcold_table), and idle waits keep their stacks and reasons.
 */
#ifndef ASSAY_ANALYZE_STACKS_HOTCOLD_H
#define ASSAY_ANALYZE_STACKS_HOTCOLD_H

#include "analyze/select/select.h"
#include "base/arena.h"
#include "base/base.h"
#include "base/err.h"

/* True if the profile has both CPU samples and waits. */
bool hotcold_exists(const struct profile *p);
/*
 * Makes the selection. Ignores spec->event. SELECT_IDLE in spec->flags keeps idle time. Errors as
 * select_run; -ENODATA: no CPU samples or no waits.
 */
int hotcold_run(struct arena *a, const struct profile *p, const struct select_spec *spec,
		struct selection *ret_sel, struct err *err);

/* The table that select_row.source of a row refers to (SELECT_SINGLE_ROWS). */
const struct table *hotcold_table(const struct selection *sel, const struct select_row *row);

#endif
