/*
 * What kernel, user and container allow a profiler, each thing tried, not guessed: an event is
 * opened and closed, a program of two instructions is loaded, a file is read. Nothing is left
 * behind, nothing is changed. A try gives 0 or the -errno of its refusal.
 */
#ifndef ASSAY_HOST_FEATURES_H
#define ASSAY_HOST_FEATURES_H

#include "base/base.h"
#include "model/rights.h"

void features_try(struct features *ret_f);
/* Whether the process may be attached to: 0, or the -errno of the refusal. */
int features_try_process(int32_t pid);

#endif
