/*
 * The order and number of runs of a benchmark. One command: a series. Several: blocks in which each
 * runs twice, in an order and its reverse (A B B A, A B C C B A), the order drawn anew for each block;
 * run 2 i + k of each command is the k-th one in block i.
 *
 * Before that each command runs once, cold, and is kept apart; or it is run to warm up, unmeasured.
 */
#ifndef ASSAY_SESSION_BENCH_BENCHLOOP_H
#define ASSAY_SESSION_BENCH_BENCHLOOP_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"
#include "model/benchrun.h"
#include "session/bench/benchrunner.h"

struct bench_subject {
	const char *name;
	char *const *argv;
	char *const *prepare; /* run before each run; NULL: none */
	char *const *setup;   /* run once before the first one; NULL: none */
	char *const *cleanup; /* run once after the last one; NULL: none */
	/* Filled by bench_loop_run. */
	VEC(struct bench_run) runs;
	struct bench_run cold;
	bool has_cold;
	uint64_t nr_before; /* cold and warm-up runs */
	uint64_t nr_failed; /* runs with another exit status than 0 */
};
void bench_subject_release(struct bench_subject *s);

struct bench_loop {
	struct bench_subject *subjects;
	size_t nr_subjects;
	uint64_t nr_warmups; /* of each command */
	uint64_t nr_exact;   /* runs of each command; 0: chosen from the times */
	uint64_t nr_min;
	uint64_t nr_max;  /* 0: no limit */
	uint64_t for_ns;  /* stop when this time has passed; 0: no limit */
	bool has_no_cold; /* and no run before the measured ones, unless nr_warmups */
	bool is_failure_ok;
	bool is_padded;
	/* Optional. A run starts, as the @nr-th of all; @nr_all: of so many, estimated; 0: unknown. */
	void (*on_run)(void *ctx, uint64_t nr, uint64_t nr_all, uint64_t left_ns);
	/* How many blocks are planned, before the first one; then after each: whether to stop. */
	void (*on_plan)(void *ctx, size_t nr_blocks);
	bool (*is_decided)(void *ctx, size_t nr_blocks);
	/* Output and marks of the command, if assay reads them. */
	void (*on_output)(void *ctx, size_t subject, const struct bench_piece *piece);
	/* Its run has ended: of measured ones, it is the last of subjects[].runs. */
	void (*on_end)(void *ctx, size_t subject, uint64_t end_ns);
	void *ctx;
};

#define BENCH_MIN_RUNS 10
#define BENCH_MIN_NS   3000000000u

/*
 * -EINTR: a stop was requested; the runs so far are there, of complete blocks only. -ECANCELED: a command
 * failed, with the message. Other errors: a command could not be started.
 */
int bench_loop_run(struct bench_loop *l, struct bench_runner *r, struct err *err);

/* Median time of @nr runs of @argv, and of its parts in ret->v. */
int bench_loop_calibrate(struct bench_run *ret, struct bench_runner *r, char *const argv[],
			 size_t nr, struct err *err);

#endif
