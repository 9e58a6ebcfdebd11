/*
 * The baseline of assay bench --against: a file that --save or --export-json wrote
 * (docs/formats/bench.md), and the facts of this machine that are written to it.
 */
#ifndef ASSAY_CMD_BENCH_BENCHBASELINE_H
#define ASSAY_CMD_BENCH_BENCHBASELINE_H

#include "analyze/bench/benchagainst.h"
#include "base/arena.h"
#include "base/base.h"
#include "base/err.h"
#include "base/sv.h"
#include "base/vec.h"

struct bench_baseline_row {
	const char *command;
	VEC(double) times; /* ns */
	VEC(double) each;  /* ns, or plain numbers */
	VEC(double) wall_ns;
	VEC(double) user_ns;
	VEC(double) system_ns;
	VEC(double) queue_ns;
	VEC(double) stolen_ns;
	VEC(double) instructions;
	struct bench_session session; /* of times, or of each if there are some */
	bool each_is_time;
};

struct bench_baseline {
	struct arena arena;
	VEC(struct bench_baseline_row) rows;
};

void bench_baseline_release(struct bench_baseline *b);
/* -EINVAL: it is no such file, with the reason. */
int bench_baseline_read(struct bench_baseline *ret, const char *path, struct err *err);
/* The same of the file's text; @path is for the error. */
int bench_baseline_parse(struct bench_baseline *ret, struct sv text, const char *path,
			 struct err *err);
/* The row of a command: that with its name, or the only one if there is one command; NULL: none. */
const struct bench_baseline_row *bench_baseline_find(const struct bench_baseline *b,
						     const char *command, size_t nr_commands);

/* Facts of this machine; texts go to @a. @program: argv[0], for the build-id; NULL: none. */
void bench_machine_describe(struct bench_machine *ret, struct arena *a, const char *program);

#endif
