/*
 * Removes idle waits from a profile, for formats whose readers cannot leave them out: a pool of idle
 * threads has most of the time of a recording. What is idle is decided as on pages (reason.h).
 */
#ifndef ASSAY_ANALYZE_WAIT_IDLEWAITS_H
#define ASSAY_ANALYZE_WAIT_IDLEWAITS_H

#include "base/base.h"
#include "model/profile.h"

struct idlewaits {
	uint64_t nr;
	uint64_t ns;
};

/* Removes the rows of tables "off-cpu" and "intervals"; returns those of "off-cpu". */
struct idlewaits idlewaits_remove(struct profile *p);

#endif
