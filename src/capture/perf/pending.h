/*
 * Fork records that the kernel has written to a perf ring but that have not been read yet: looks
 * ahead in the rings without consuming. For a caller that must know all children of a thread at
 * this moment (sampler_grow).
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
	VEC(struct pending_fork) list; /* ring by ring, within a ring sorted by time */
};

/* Adds the forks in a ring, from its oldest unread record to the kernel's write position. */
void pending_forks_add(struct pending_forks *f, const struct ring *r,
		       const struct perf_event_attr *attr);
void pending_forks_release(struct pending_forks *f);

#endif
