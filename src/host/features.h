/*
 * Tests what kernel, user and container allow a profiler by trying it: opens and closes an event,
 * loads a BPF program of two instructions, reads a file. Nothing is changed or left behind. A
 * result is 0, or the -errno of the refusal.
 */
#ifndef ASSAY_HOST_FEATURES_H
#define ASSAY_HOST_FEATURES_H

#include "base/base.h"
#include "model/rights.h"

void features_probe(struct features *ret_f);
/*
 * Tests what is permitted on one process, and replaces what @f has of own processes, or of other
 * users' if it is not assay's user's. Returns 0, or the -errno by which a perf event is refused.
 */
int features_probe_process(struct features *f, int32_t pid);

#endif
