/*
 * Reads tracefs: the list of tracepoints and the format of each. Where it is not mounted
 * (containers, minimal systems) it is mounted detached (fsmount): visible to this process only, and
 * unmounted when the descriptor is closed.
 */
#ifndef ASSAY_HOST_TRACEFS_H
#define ASSAY_HOST_TRACEFS_H

#include "base/arena.h"
#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/sv.h"
#include "base/vec.h"

/*
 * Opens tracefs's root directory. -EACCES: no permission (the hint has the remedy). -ENOTSUP: the
 * kernel has no tracepoints.
 */
int tracefs_open(int *ret_fd, struct err *err);
/* Keeps it open for tracefs_open after rights are dropped. Does nothing if it cannot be opened. */
void tracefs_hold(void);
/*
 * Sets @err to the message and hint for a missing permission, and returns -EACCES. For callers to
 * which the kernel refused to attach a tracepoint.
 */
int tracefs_refused(struct err *err);

struct tracefs_names {
	VEC(struct sv) names; /* "sched:sched_switch", sorted */
	struct arena arena;   /* owns their text */
};
void tracefs_names_release(struct tracefs_names *n);
int tracefs_list(struct tracefs_names *ret_n, int fd, struct err *err);
/*
 * Appends the format file of "system:event" (source: Documentation/trace/events.rst).
 * -ENOENT: there is no such tracepoint.
 */
int tracefs_format(struct buf *to, int fd, struct sv name, struct err *err);

/*
 * Returns the id (perf_event_attr.config) of "system:event". -ENOENT: there is no such tracepoint.
 */
int tracefs_id(uint32_t *ret_id, int fd, struct sv name, struct err *err);

#endif
