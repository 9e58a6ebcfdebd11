/* Facts of a profile on what was captured: containers, and why frames of Python code are missing. */
#ifndef ASSAY_SESSION_TARGETFACTS_H
#define ASSAY_SESSION_TARGETFACTS_H

#include "base/base.h"
#include "capture/bpf/engine.h"
#include "host/target.h"
#include "ingest/modules.h"
#include "model/profile.h"

/* The containers of the target, if any. Of several each fact lists all, in the same order. */
void targetfacts_containers(struct profile *p, const struct target *t);
/* Sets FACT_PYTHON if the target has an interpreter and frames are missing. @e: NULL without BPF. */
void targetfacts_python(struct profile *p, const struct modules *m, const struct engine_info *e);

/* Processes that started during the capture in a container, a cgroup, or as a user. */
struct targetfacts_joined {
	uint32_t nr_new;
	uint32_t nr_from_outside; /* that no process of the target had started */
	uint32_t nr_missed;       /* of these, the ones that a source could not record */
};
/* @unprobed: what is recorded in the processes of the start only ("calls"); NULL: nothing. */
void targetfacts_add_joined(struct profile *p, const struct targetfacts_joined *j,
			    const char *unprobed);

#endif
