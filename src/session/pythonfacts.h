/* Why frames of Python code are missing from a capture, as a fact of the profile. */
#ifndef ASSAY_SESSION_PYTHONFACTS_H
#define ASSAY_SESSION_PYTHONFACTS_H

#include "base/base.h"
#include "capture/bpf/engine.h"
#include "ingest/modules.h"
#include "model/profile.h"

/* Sets FACT_PYTHON if the target has an interpreter and frames are missing. @e: NULL without BPF. */
void python_facts(struct profile *p, const struct modules *m, const struct engine_info *e);

#endif
