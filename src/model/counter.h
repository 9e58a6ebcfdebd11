/* Counters of the kernel and of the CPU, as read and as shown (assay stat, assay bench). */
#ifndef ASSAY_MODEL_COUNTER_H
#define ASSAY_MODEL_COUNTER_H

#include "base/base.h"

#define COUNTERS_MAX 32

/* What others are divided by, or have thresholds of their own (analyze/bench/countermetrics.h). */
enum counter_role {
	COUNTER_OTHER,
	COUNTER_CLOCK, /* CPU time */
	COUNTER_CYCLES,
	COUNTER_INSTRUCTIONS,
	COUNTER_BRANCHES,
	COUNTER_BRANCH_MISSES,
	COUNTER_CACHE_REFERENCES,
	COUNTER_CACHE_MISSES,
	COUNTER_L1D_LOADS,
	COUNTER_L1D_MISSES,
	COUNTER_LLC_LOADS,
	COUNTER_LLC_MISSES,
	COUNTER_DTLB_LOADS,
	COUNTER_DTLB_MISSES,
	COUNTER_ITLB_LOADS,
	COUNTER_ITLB_MISSES,
	COUNTER_RUN_QUEUE, /* of assay: time in the run queue */
	COUNTER_STOLEN,    /* of assay: CPU time of the machine that the hypervisor took */
	COUNTER_ROLE_NR,
};

enum counter_state {
	COUNTER_COUNTED,
	COUNTER_NOT_COUNTED,   /* it was never on the hardware */
	COUNTER_NOT_SUPPORTED, /* this machine or kernel does not have it */
	COUNTER_NOT_PERMITTED,
};

/* Of a time: what was counted, and for how much of the time. */
struct counter_value {
	double value; /* scaled: what it would be had the event been counted all the time; ns of clocks */
	uint64_t enabled_ns; /* time on a CPU */
	uint64_t running_ns; /* of it, with the event on the hardware; less: events took turns */
};

/* One event as it is shown. */
struct counter_row {
	const char *name;
	enum counter_role role;
	enum counter_state state;
	bool is_time; /* the value is ns */
	bool is_own;  /* of assay, not of perf */
	double value;
	double spread_pct; /* of repeated runs: standard error of the mean, % of it; NAN: one run */
	uint64_t running_ns; /* of run queue: CPU time of the threads whose waits are known */
	double running_pct;  /* of the time enabled */
	double metric;       /* NAN: none */
	const char *metric_unit;
};

/* The events of a thread, of a target, of an interval. */
struct counter_reading {
	double at_s;         /* end of the interval since the start */
	const char *subject; /* a thread: "name-TID"; NULL: all of the target */
	const struct counter_row *rows;
	size_t nr_rows;
};

#endif
