/*
 * Detects that a target has exited, by pidfd: a zombie counts as exited, also if nobody reaps it
 * (containers without an init), and a process that reused a pid is not mistaken for the target. At
 * most one descriptor is open, whatever the number of processes.
 */
#ifndef ASSAY_HOST_WATCH_H
#define ASSAY_HOST_WATCH_H

#include "base/base.h"
#include "host/procend.h"
#include "host/target.h"

struct watch {
	const struct target *target; /* borrowed; NULL: never exits */
	size_t nr_ended;             /* processes at the head of the list that have exited */
	size_t nr_known;             /* of these, how many it is known of how they ended */
	int signal;                  /* that killed one of them; 0: none that is known */
	int pid_fd;                  /* of the next one, -1 = not opened */
};

#define WATCH_INIT(t)                        \
	{                                    \
		.target = (t), .pid_fd = -1, \
	}
void watch_release(struct watch *w);
/*
 * Returns whether all processes and threads of the target have exited; does not wait. To be called before
 * the target may exit as well: the first call opens the descriptor that tells how it ended.
 */
bool watch_has_ended(struct watch *w);
/* How the processes of a target that has ended did so; a signal if one of them was killed. */
struct procend watch_end(const struct watch *w);

#endif
