/*
 * A command under a memory limit: the group that it runs in, what was seen of it while it ran, and
 * what can be said at the end.
 *
 *	limitgroup_open   the group is there, with its limits and its keeper
 *	limitgroup_put    the command, held before its exec, goes in
 *	limitgroup_look   many times a second, and at once when limitgroup_fd is readable
 *	limitgroup_close  the last numbers are taken, the group goes
 *	limitgroup_free
 *
 * Without a group (LIMIT_RLIMIT) the limit is RLIMIT_DATA: of each process for itself, and of
 * private memory that is asked for, not of memory that is used.
 */
#ifndef ASSAY_HOST_MEMORY_LIMITGROUP_H
#define ASSAY_HOST_MEMORY_LIMITGROUP_H

#include "base/base.h"
#include "base/err.h"
#include "base/vec.h"
#include "host/memory/cgroup.h"

struct limitgroup;

int limitgroup_open(struct limitgroup **ret_l, const struct limit_spec *spec, struct err *err);
int limitgroup_put(struct limitgroup *l, int32_t pid, struct err *err);
void limitgroup_look(struct limitgroup *l);
/* Wakes when memory runs out; -1 = nothing does. */
int limitgroup_fd(const struct limitgroup *l);
/* The group's folder, NULL = none. */
const char *limitgroup_path(const struct limitgroup *l);
/* May be called again; the error is that of taking the group away. */
int limitgroup_close(struct limitgroup *l, struct err *err);
const struct limit_outcome *limitgroup_outcome(const struct limitgroup *l);
void limitgroup_free(struct limitgroup *l);
DEFINE_FREE_P(limitgroup, struct limitgroup)

#endif
