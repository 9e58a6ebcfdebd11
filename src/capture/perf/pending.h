/*
 * Forks that the kernel has told and nobody has read yet: a look ahead into the rings that
 * consumes nothing. For who must know all children of a thread now (sampler_grow).
 */
#ifndef ASSAY_CAPTURE_PERF_PENDING_H
#define ASSAY_CAPTURE_PERF_PENDING_H

#include <linux/perf_event.h>

#include "base/base.h"
#include "base/vec.h"
#include "capture/perf/ring.h"

struct pending_fork {
	int32_t tid;
	int32_t ptid;
	uint64_t time_ns;
};

struct pending_forks {
	VEC(struct pending_fork) list; /* ring by ring, in each by time */
};

/* Adds what lies in the ring from its oldest unread record to where the kernel writes now. */
void pending_forks_add(struct pending_forks *f, const struct ring *r,
		       const struct perf_event_attr *attr);
void pending_forks_release(struct pending_forks *f);

#endif
