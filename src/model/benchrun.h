/* One run of a benchmarked command, as measured. */
#ifndef ASSAY_MODEL_BENCHRUN_H
#define ASSAY_MODEL_BENCHRUN_H

#include "base/base.h"
#include "model/counter.h"

/* The order of the report's rows. */
enum bench_metric {
	BENCH_WALL,
	BENCH_USER,
	BENCH_SYSTEM,
	/*
	 * Of the process's main thread. UINT64_MAX: the kernel does not count it, or other threads and
	 * processes had part of the CPU time.
	 */
	BENCH_RUN_QUEUE,
	BENCH_STOLEN,   /* by the hypervisor from all CPUs, in ticks of the kernel's account */
	BENCH_PEAK_RSS, /* of the largest process of the command */
	BENCH_MINOR_FAULTS,
	BENCH_MAJOR_FAULTS,
	BENCH_VOLUNTARY_SWITCHES,
	BENCH_INVOLUNTARY_SWITCHES,
	BENCH_MIGRATIONS, /* UINT64_MAX: not counted */
	BENCH_BLOCKS_IN,  /* of 512 bytes */
	BENCH_BLOCKS_OUT,
	BENCH_METRIC_NR,
};

#define BENCH_COUNTERS_MAX 20

struct bench_run {
	uint64_t v[BENCH_METRIC_NR];                       /* times in ns, memory in bytes */
	struct counter_value counters[BENCH_COUNTERS_MAX]; /* of the runner's events */
	uint64_t end_ns;                                   /* CLOCK_MONOTONIC */
	int exit_code;                                     /* as a shell reports it: 128 + signal */
	bool peak_is_bound; /* the peak is at most the value (benchrunner.h) */
};

/* What was counted during a phase of a run, over all its occurrences. */
struct bench_counts {
	size_t nr; /* occurrences; 0: nothing was counted */
	struct counter_value v[BENCH_COUNTERS_MAX];
};

/* Where runs were made; empty texts: not known. */
struct bench_machine {
	const char *when; /* UTC */
	const char *host;
	const char *kernel;
	const char *cpu;
	const char *governor; /* of the CPU frequency */
	const char *build_id; /* of the program; empty if a shell runs it */
	unsigned nr_cpus;
};
#define BENCH_MACHINE_UNKNOWN    \
	((struct bench_machine){ \
		.when = "", .host = "", .kernel = "", .cpu = "", .governor = "", .build_id = ""})

#endif
