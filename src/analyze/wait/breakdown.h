/*
 * Breaks down the time of threads: on a CPU + in the run queue + waiting, by reason = total thread
 * time. Reads the tables "on-cpu" and "off-cpu". If the filters select only some of the waits of
 * threads (SELECT_ROWS), it breaks down those: their sum is the total.
 *
 * A thread is a (pid, tid); it is shown with its last name. Its total time is from its first event
 * to its end, within the time window. A breakdown lives in the caller's arena.
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
#include "base/text/num.h"

struct breakdown_row {
	const char *name;
	const char *group; /* threads_name */
	int32_t pid;
	int32_t tid;
	uint64_t nr_threads;        /* 1; in a sum: number of threads */
	uint64_t wall_ns;           /* total time */
	uint64_t ns[WAIT_NR];       /* by reason; RUN_QUEUE includes the two below */
	uint64_t preempted_ns;      /* in the run queue after preemption or sched_yield */
	uint64_t woken_ns;          /* wake-up latency: in the run queue after a wake-up */
	uint64_t nr_runs;           /* times it was put on a CPU */
	uint64_t nr_voluntary;      /* voluntary context switches */
	uint64_t nr_involuntary;    /* involuntary context switches */
	uint64_t nr_waits[WAIT_NR]; /* intervals, by reason */
};

struct breakdown {
	struct breakdown_row *rows; /* longest blocked (breakdown_blocked_ns) first */
	size_t nr_rows;
	struct breakdown_row total;
	struct quantile waits[WAIT_NR]; /* of all threads; RUN_QUEUE: preempted and woken */
	struct quantile preempted;
	struct quantile woken;
	uint64_t window_ns;   /* length of the window: whole seconds of the tables */
	uint64_t at_start_ns; /* recorded time of waits that had begun before the capture */
	uint64_t steal_ns;    /* that the hypervisor took of all CPUs, by the kernel's account */
	uint64_t polled_ns;   /* wait time from polls of /proc, not from context switches */
	bool is_of_waits;     /* of selected waits only: no on-CPU time, total = sum of the waits */
};

/* Applies the filters of @spec, but hides no idle waits of whole threads. Errors as select_run. */
int breakdown_make(struct arena *a, const struct profile *p, const struct select_spec *spec,
		   struct breakdown *ret_l, struct err *err);

/* Sums of a row: all time; idle waits; all off-CPU time that is not idle. */
uint64_t breakdown_sum_ns(const struct breakdown_row *row);
uint64_t breakdown_idle_ns(const struct breakdown_row *row);
uint64_t breakdown_blocked_ns(const struct breakdown_row *row);
/* CPUs that the threads used on average, from their exact time. */
struct num_text breakdown_cpus_text(const struct breakdown *l);
/* All time of a row as per cent of its wall_ns; 100 if wall_ns is 0. */
double breakdown_covered_pct(const struct breakdown_row *row);

/* Adds a row to another. Compares for qsort: longest blocked first. */
void breakdown_add(struct breakdown_row *to, const struct breakdown_row *from);
int breakdown_compare(const void *x, const void *y);

enum breakdown_flags {
	BREAKDOWN_GROUPS = 1 << 0, /* threads whose names differ only in digits are one row */
};

/* Adds table "breakdown": one row per reason, of all threads, and a last row "total". */
void breakdown_report(struct report *r, const struct breakdown *l);
/* Adds "breakdown_threads" or "breakdown_groups": rows are threads, columns the largest reasons. */
void breakdown_threads_report(struct report *r, const struct breakdown *l, unsigned flags,
			      const struct view_limits *limits);

#endif
