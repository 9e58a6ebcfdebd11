/*
 * A capture made several times, a recording each, and the spread over them at the end.
 *
 * Each run is a process of its own: a capture gives up its privileges on the way, and no run may
 * inherit warm caches of the one before.
 */
#ifndef ASSAY_CMD_CPU_RUNS_H
#define ASSAY_CMD_CPU_RUNS_H

#include "base/base.h"
#include "cmd/outputs.h"

struct cpu_runs {
	size_t nr_runs;
	const char *output;      /* -o: "x.assay" gives x-1.assay, x-2.assay; or NULL */
	const char *target_name; /* for the folder, without -o */
	bool has_command;        /* standard output is the command's */
	/* One capture, in the child; returns its exit status. */
	int (*capture)(void *ctx, struct outputs *out);
	void *ctx;
};

/* The exit status: the first of a run that was not 0. */
int cpu_runs(const struct cpu_runs *r);

#endif
