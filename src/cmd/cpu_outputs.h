/*
 * What a CPU capture leaves behind: the recording, its pictures, and the words at the end.
 */
#ifndef ASSAY_CMD_CPU_OUTPUTS_H
#define ASSAY_CMD_CPU_OUTPUTS_H

#include "base/base.h"
#include "base/err.h"
#include "session/capture.h"
#include "session/store.h"

enum cpu_outputs_flags {
	CPU_OUTPUTS_ONE_OF_RUNS = 1 << 0, /* the words at the end are about all runs: not here */
};

struct cpu_outputs {
	struct store_place place; /* where the recording goes; pictures share its stem */
	int recording_fd;         /* taken by the capture */
	unsigned flags;           /* enum cpu_outputs_flags, set by the caller */
};

/* @output: path given by the user, or NULL for ./profiling/<target>/. */
int cpu_outputs_open(struct cpu_outputs *ret_o, const char *output, const char *target,
		     struct err *err);
void cpu_outputs_release(struct cpu_outputs *o);
/* The capture failed before it began: removes the empty recording. */
void cpu_outputs_abandon(struct cpu_outputs *o);
/* Writes the pictures, prints the summary and the last lines. Returns the exit status. */
int cpu_outputs_finish(struct cpu_outputs *o, const struct capture_result *r, bool skips_pictures,
		       bool has_command);

#endif
