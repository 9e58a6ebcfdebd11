/*
 * Tables of waits, made from a selection of "off-cpu" (select.h), whose rows have tags. Each ends
 * with "<other>" if a limit cut it, so that times add up to the time shown.
 *
 * Quantiles come from power-of-two buckets, interpolated within the bucket: p50 and p99 are within
 * a factor of 2 (mostly much closer) and never above the longest wait. Means and sums are exact.
 */
#ifndef ASSAY_ANALYZE_WAIT_WAITTABLES_H
#define ASSAY_ANALYZE_WAIT_WAITTABLES_H

#include "analyze/wait/breakdown.h"
#include "analyze/report.h"
#include "analyze/select/select.h"
#include "analyze/view.h"
#include "base/base.h"

enum waits_table {
	WAITS_REASONS, /* "reasons": time, share, waits, mean, p50, p99, longest; limits do not apply */
	/*
	 * "waiting_functions": by reason, the program's innermost function, and the function of
	 * libc, a runtime or a locking library that it called (frames.h). Without the run queue, which
	 * is no wait for anything in the program; none: no table.
	 */
	WAITS_FUNCTIONS,
	WAITS_RUN_QUEUE, /* "run_queue": the same of the run queue only; none: no table */
	/* "blocked_executors": the same of reason_blocks_executor; none: no table. */
	WAITS_EXECUTORS,
	WAITS_STACKS,  /* "waiting_stacks": by reason and stack, leaf first */
	WAITS_WAKERS,  /* "wakers": by waiting function, waker and the waker's function */
	WAITS_OBJECTS, /* "wait_objects": by file, device or socket */
};
void waits_table(struct report *r, const struct selection *sel, enum waits_table kind,
		 const struct view_limits *limits);
/* Begins the name of a lock that is known by the function that locks it: it may be several locks. */
#define LOCKED_IN "locked in "
/* Ends the name of the lock of CPython's interpreter. */
#define LOCK_GIL "(GIL)"
/* ... and the name of one that is built of condition variables (peerlocks.h). */
#define LOCK_BY_PEERS "(condition variable)"
/* In what the holder was doing: nobody released it. */
#define LOCK_OPEN "not released during the capture"
/*
 * Table "locks": by the address of the lock word or, for locks whose waiters park, by the function
 * that waits. @spec is what the selection was made from; it is used to select what lock holders
 * were doing from the table "blame".
 */
void waits_locks(struct report *r, const struct selection *sel, const struct select_spec *spec,
		 const struct view_limits *limits);

/*
 * The first page of a recording of waits: thread time breakdown, waiting functions, contended
 * locks, blocking files and sockets, notes with findings ("mostly idle", "CPU shortage"), next
 * commands. @input: file name for hints; NULL: no hints. Errors as select_run.
 */
int waits_overview(struct report *r, const struct profile *p, const struct select_spec *spec,
		   const char *input, const struct view_limits *limits, struct err *err);

/* Adds the tables and notes of waits_overview to the page of CPU samples. Errors as select_run. */
int waits_page(struct report *r, const struct profile *p, const struct select_spec *spec,
	       const struct view_limits *limits, struct err *err);
/* Sets a bit of *ret_bits for each reason with time in the selection. Errors as select_run. */
int waits_reasons_shown(const struct profile *p, const struct select_spec *spec, uint32_t *ret_bits,
			struct err *err);

#endif
