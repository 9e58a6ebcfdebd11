/*
 * A capture made several times, a recording each, and the spread over them at the end.
 *
 * Each run is a process of its own: a capture gives up its privileges on the way, and no run may
 * inherit warm caches of the one before.
 */
#ifndef ASSAY_CMD_CAPTURE_CPU_RUNS_H
#define ASSAY_CMD_CAPTURE_CPU_RUNS_H

#include "base/base.h"
#include "cmd/capture/capture_command.h"

/* @job->nr_runs captures; the exit status: the first of a run that was not 0. */
int cpu_runs(struct capture_job *job);

#endif
