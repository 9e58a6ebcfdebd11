/*
 * Whether a target still lives. By pidfd: a zombie that nobody reaps has ended (containers without
 * an init, parents that do not wait), and a recycled number is not the target. One descriptor at
 * a time, whatever the number of processes.
 */
#ifndef ASSAY_HOST_WATCH_H
#define ASSAY_HOST_WATCH_H

#include "base/base.h"
#include "host/target.h"

struct watch {
	const struct target *target; /* borrowed, may be NULL: then it never ends */
	size_t nr_ended;             /* of its processes, from the first */
	int pid_fd;                  /* of the first that lives, -1 = not opened */
};

#define WATCH_INIT(t)                        \
	{                                    \
		.target = (t), .pid_fd = -1, \
	}
void watch_release(struct watch *w);
/* True once all processes and threads have ended; does not wait. */
bool watch_has_ended(struct watch *w);

#endif
