/*
 * What was waited for: tables over a selection of "off-cpu" (select.h), whose rows carry tags.
 * Each ends with "<other>" where a limit cut it, so that times add up to what is in view.
 *
 * Quantiles come from log2 classes of durations with counts, interpolated within the class: a p50
 * or p99 is right to its class (within a factor of 2, mostly much better), never above the longest
 * wait; means and sums are exact.
 */
#ifndef ASSAY_ANALYZE_WAIT_WAITTABLES_H
#define ASSAY_ANALYZE_WAIT_WAITTABLES_H

#include "analyze/wait/breakdown.h"
#include "analyze/report.h"
#include "analyze/select/select.h"
#include "analyze/view.h"
#include "base/base.h"

enum waits_table {
	WAITS_REASONS, /* "reasons": time, share, waits, mean, p50, p99, longest; has no limits */
	/*
	 * "waiting_functions": by reason, the program's own function nearest to the wait, and what
	 * it called of libc, the runtime or a locking library (frames.h).
	 */
	WAITS_FUNCTIONS,
	WAITS_STACKS,  /* "waiting_stacks": by reason and stack; one text, from the leaf */
	WAITS_WAKERS,  /* "wakers": by waiting function, waking thread and function */
	WAITS_OBJECTS, /* "wait_objects": files, devices and peers that were waited for */
};
void waits_table(struct report *r, const struct selection *sel, enum waits_table kind,
		 const struct view_limits *limits);
/*
 * "locks": by the lock's word or, for locks whose waiters park, by the function that waits. @spec
 * is what the selection was made of: what holders did meanwhile is selected from the table of blame.
 */
void waits_locks(struct report *r, const struct selection *sel, const struct select_spec *spec,
		 const struct view_limits *limits);

/*
 * The first page of a recording of waits: ledger, reasons, top waits, locks, files and peers, notes
 * that say what it comes to ("mostly idle", "CPU starved"), what to type next. @spec is the user's;
 * @input names the file in hints, NULL: none are given. Errors as select_run.
 */
int waits_overview(struct report *r, const struct profile *p, const struct select_spec *spec,
		   const char *input, const struct view_limits *limits, struct err *err);

/* The same without title, losses and hints: below the page of CPU samples. */
int waits_page(struct report *r, const struct profile *p, const struct select_spec *spec,
	       const struct view_limits *limits, struct err *err);
/* Adds a bit for each reason that has time in view. Errors as select_run. */
int waits_reasons_in_view(const struct profile *p, const struct select_spec *spec,
			  uint32_t *ret_bits, struct err *err);
#endif
