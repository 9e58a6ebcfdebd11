/*
 * Repeats a capture (--runs N), writes a recording for each run, and prints the spread of each
 * function's share over the runs.
 *
 * Each run is a process of its own: a capture drops its privileges before it ends, and no run may
 * use caches that an earlier one filled.
 */
#ifndef ASSAY_CMD_CAPTURE_CPU_RUNS_H
#define ASSAY_CMD_CAPTURE_CPU_RUNS_H

#include "base/base.h"
#include "cmd/capture/capture_command.h"

/* Does job->nr_runs captures. Returns the first exit status that is not 0, or 0. */
int cpu_runs(struct capture_job *job);

#endif
