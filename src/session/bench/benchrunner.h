/*
 * Runs commands one after the other and measures each run.
 *
 * A helper process starts them, forked while assay is small: the kernel counts what a process had in
 * memory before its exec towards its peak, so that programs started by a large process (or by vfork of
 * one) have its peak. It starts a command by vfork, takes the times itself, and passes the results
 * through shared memory. A command opens its counters itself, between vfork and exec, so that they count
 * nothing of the helper's; the time that takes is subtracted:
 *
 *	assay ──'g'──> helper ──vfork, exec──> command
 *	      <──'c'─────────── counters ─────      only if assay reads them during runs
 *	      <──'d'──        <──wait4────────
 *
 * The helper itself has about 2 MB; a command that stays below has this bound as its peak, and
 * peak_is_bound. Commands get the signal handling and the environment that assay was started with, and
 * of its descriptors only standard input, output and error.
 */
#ifndef ASSAY_SESSION_BENCH_BENCHRUNNER_H
#define ASSAY_SESSION_BENCH_BENCHRUNNER_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "capture/perf/counters.h"
#include "model/benchrun.h"
#include "session/bench/phasefuncs.h"

struct bench_runner;

enum bench_output_kind {
	BENCH_OUTPUT_NULL,
	BENCH_OUTPUT_INHERIT,
	BENCH_OUTPUT_PIPE, /* read by assay: the hook of bench_runner_run gets it */
	BENCH_OUTPUT_FILE, /* truncated before each run */
};

struct bench_stdio {
	const char *input; /* a path; NULL: /dev/null */
	enum bench_output_kind output;
	const char *output_path;
	bool has_errors; /* standard error is that of assay even if output is not */
	bool has_marks;  /* commands mark their phases, by the pipe $ASSAY_MARKS or assay mark */
	bool has_counts; /* bench_runner_count is called during runs */
	struct phasefuncs *functions; /* whose calls are marks, opened; borrowed; NULL: none */
};

/*
 * Forks the helper. Call it before assay needs memory and has threads. @events: what is counted of each
 * run from its exec on, at most BENCH_COUNTERS_MAX, with names that outlive the runner; NULL: nothing.
 */
int bench_runner_new(struct bench_runner **ret, const struct bench_stdio *io,
		     const struct counter_events *events, struct err *err);
void bench_runner_free(struct bench_runner *r);
DEFINE_FREE_P(bench_runner, struct bench_runner)

enum bench_run_flags {
	BENCH_RUN_PADDED = 1 << 0,  /* random size of the environment (up to a page) */
	BENCH_RUN_VISIBLE = 1 << 1, /* output as of assay: for commands that prepare */
};

struct bench_piece {
	const char *p;
	size_t n;
	uint64_t at_ns; /* when it was read, or when the mark was sent */
	bool is_mark;   /* else output, with BENCH_OUTPUT_PIPE */
};
/* @sink gets output and marks as they come, in pieces of any size; NULL: they are dropped. */
typedef void (*bench_sink_fn)(void *ctx, const struct bench_piece *piece);

/*
 * Runs @argv; argv[0] is searched in PATH. @iteration: for $HYPERFINE_ITERATION, NULL: not set.
 * -EINTR: a stop was requested (base/process/stop.h), the command was sent SIGTERM, later SIGKILL.
 * Other errors: it could not be started.
 */
int bench_runner_run(struct bench_runner *r, char *const argv[], unsigned flags,
		     const char *iteration, bench_sink_fn sink, void *ctx,
		     struct bench_run *ret_run, struct err *err);

/*
 * What the command of the current or last run has been counted so far, in the order of the events; with
 * io.has_counts, from a sink or between two runs. False: nothing is counted.
 */
bool bench_runner_count(struct bench_runner *r, struct counter_value *ret);

/* The events, with what this machine can count of them. Borrowed. */
const struct counter_set *bench_runner_counters(const struct bench_runner *r);

/* The helper's own peak. */
uint64_t bench_runner_bound_bytes(const struct bench_runner *r);

#endif
