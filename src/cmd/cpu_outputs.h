/* The end of a CPU capture: folded stacks, flame graph, summary, the last lines. */
#ifndef ASSAY_CMD_CPU_OUTPUTS_H
#define ASSAY_CMD_CPU_OUTPUTS_H

#include "base/base.h"
#include "cmd/outputs.h"

/* Returns the exit status. */
int cpu_outputs_finish(struct outputs *o, const struct capture_result *r);

#endif
