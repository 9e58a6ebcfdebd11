/*
 * Privilege only as long as it is needed: each stage of the tool keeps what it still uses and
 * gives the rest up for good. Of the calling thread and of threads that it starts later; a command
 * that was launched before keeps its own. Without privileges nothing happens.
 */
#ifndef ASSAY_HOST_CAPS_H
#define ASSAY_HOST_CAPS_H

#include "base/base.h"
#include "model/rights.h"

/* Whether we may do what the capability permits: rights_permit(). */
bool host_has_cap(unsigned cap);
uint64_t host_effective_caps(void); /* bit n = capability n */

enum host_stage {
	HOST_CAPTURING, /* perf events, /proc of other users, their files */
	HOST_NAMING,    /* reading binaries and kernel symbols */
	HOST_WRITING,   /* results into folders of other users (sudo) */
};

void host_keep_caps(enum host_stage stage);

#endif
