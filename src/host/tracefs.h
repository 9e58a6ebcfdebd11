/*
 * The kernel's trace file system: which tracepoints there are, and what each one tells. Where it
 * is not mounted (containers, minimal systems) it is mounted privately: a mount that hangs nowhere,
 * seen by this process only and gone with the descriptor.
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
 * A descriptor of its root directory. -EACCES: not for this user (the hint says who may).
 * -ENOTSUP: a kernel without tracepoints.
 */
int tracefs_open(int *ret_fd, struct err *err);
/* -EACCES and its remedy, for who was refused later, when attaching. */
int tracefs_refused(struct err *err);

struct tracefs_names {
	VEC(struct sv) names; /* "sched:sched_switch", sorted */
	struct arena arena;   /* where they live */
};
void tracefs_names_release(struct tracefs_names *n);
int tracefs_list(struct tracefs_names *ret_n, int fd, struct err *err);
/* Appends the format file of "system:event" (source: Documentation/trace/events.rst). -ENOENT. */
int tracefs_format(struct buf *to, int fd, struct sv name, struct err *err);

/* The number by which perf_event_open knows "system:event". -ENOENT: there is none. */
int tracefs_id(uint32_t *ret_id, int fd, struct sv name, struct err *err);

#endif
