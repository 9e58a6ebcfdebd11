/*
 * Hot and cold together: all time of threads in one selection, for trees and tables. The samples of
 * a CPU event are scaled, per thread and second, to the on-CPU time that the ledger says; run time
 * that no sample hit is the frame "[on CPU, no sample]"; waits stand beside them under their
 * stacks; waiting for something to do is one frame "[idle]" a thread, or left out. The weight of it
 * all is the ledger's sum (without idle, if that is left out).
 *
 * nr_samples counts samples of rows that ran and waits of rows that did not.
 */
#ifndef ASSAY_ANALYZE_STACKS_HOTCOLD_H
#define ASSAY_ANALYZE_STACKS_HOTCOLD_H

#include "analyze/select/select.h"
#include "base/arena.h"
#include "base/base.h"
#include "base/err.h"

/* Has the profile both CPU samples and a ledger? */
bool hotcold_is_there(const struct profile *p);
/*
 * The spec's event is not looked at. spec->flags: SELECT_IDLE keeps idle time. Errors as
 * select_run; -ENODATA without both.
 */
int hotcold_run(struct arena *a, const struct profile *p, const struct select_spec *spec,
		struct selection *ret_sel, struct err *err);

#endif
