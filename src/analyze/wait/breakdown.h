/*
 * The ledger of threads: on a CPU + in the run queue + waiting, by reason = wall time. From the
 * tables "on-cpu" and "off-cpu"; filters on stacks do not apply, for time that has no stack would
 * then be missing and nothing would close.
 *
 * A thread is a (pid, tid) under its last name. Its wall time runs from when it was first seen to
 * its end, within the window in view. Lives in the caller's arena.
 */
#ifndef ASSAY_ANALYZE_WAIT_BREAKDOWN_H
#define ASSAY_ANALYZE_WAIT_BREAKDOWN_H

#include "analyze/wait/quantile.h"
#include "analyze/wait/reason.h"
#include "analyze/report.h"
#include "analyze/select/select.h"
#include "analyze/view.h"
#include "base/arena.h"
#include "base/base.h"
#include "base/err.h"

struct breakdown_row {
	const char *name;
	int32_t pid;
	int32_t tid;
	uint64_t nr_threads; /* 1; in the total: how many */
	uint64_t wall_ns;
	uint64_t ns[WAIT_NR];       /* by reason; RUN_QUEUE includes the two below */
	uint64_t preempted_ns;      /* lost the CPU, or gave it up, while it could run */
	uint64_t woken_ns;          /* woken, and no CPU yet */
	uint64_t nr_runs;           /* times it was put on a CPU */
	uint64_t nr_voluntary;      /* switches out to wait */
	uint64_t nr_involuntary;    /* switches out while it could run */
	uint64_t nr_waits[WAIT_NR]; /* intervals, by reason */
};

struct breakdown {
	struct breakdown_row *rows; /* those that were kept from running longest first */
	size_t nr_rows;
	struct breakdown_row total;
	struct quantile waits[WAIT_NR]; /* of all threads; RUN_QUEUE: both of */
	struct quantile preempted;
	struct quantile woken;
	uint64_t *on_cpu_ns;  /* by task_id: on-CPU time within the window */
	uint64_t window_ns;   /* length of the window: whole seconds of the tables */
	uint64_t at_start_ns; /* of waits that had begun before the capture */
	uint64_t polled_ns;   /* seen by looking from time to time, not by switches */
};

/* Of @spec the filters on time, threads and processes hold. Errors as select_run. */
int breakdown_make(struct arena *a, const struct profile *p, const struct select_spec *spec,
		   struct breakdown *ret_l, struct err *err);

/* Sums of a row: everything; waits for something to do; kept from running (the rest off CPU). */
uint64_t breakdown_sum_ns(const struct breakdown_row *row);
uint64_t breakdown_idle_ns(const struct breakdown_row *row);
uint64_t breakdown_blocked_ns(const struct breakdown_row *row);
/* Share of wall time that the ledger covers, in per cent; 100 where wall time is not known. */
double breakdown_covered_pct(const struct breakdown_row *row);

/* Adds the numbers of a row; for qsort: kept from running longest first. */
void breakdown_add(struct breakdown_row *to, const struct breakdown_row *from);
int breakdown_compare(const void *x, const void *y);

enum breakdown_flags {
	BREAKDOWN_GROUPS = 1 << 0, /* threads whose names differ in numbers only are one row */
};

/* "ledger": where the time of all threads went, a row a reason, with "sum" and "wall". */
void breakdown_report(struct report *r, const struct breakdown *l);
/* "breakdown_threads" or "breakdown_groups": a row a thread, a column a reason that matters. */
void breakdown_threads_report(struct report *r, const struct breakdown *l, unsigned flags,
			      const struct view_limits *limits);

#endif
