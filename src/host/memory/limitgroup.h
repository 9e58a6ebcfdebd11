/*
 * Runs a command under a memory limit: creates its cgroup, samples the memory in use while it runs,
 * and returns the outcome (limit, peak, OOM kills).
 *
 *	limitgroup_open    creates the cgroup with its limits and its cleanup process (cgroup.h)
 *	limitgroup_put     moves the command in, before its execve
 *	limitgroup_sample  called many times a second, and when limitgroup_fd is readable
 *	limitgroup_close   reads the last numbers and removes the cgroup
 *	limitgroup_free
 *
 * Without a cgroup (LIMIT_RLIMIT) the limit is RLIMIT_DATA: it applies to each process by itself,
 * and to the private memory that a process allocates, not to what is resident.
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
void limitgroup_sample(struct limitgroup *l);
/* Descriptor that becomes readable when the cgroup runs out of memory; -1 = none. Borrowed. */
int limitgroup_fd(const struct limitgroup *l);
/* Returns the cgroup's path, NULL = none. */
const char *limitgroup_path(const struct limitgroup *l);
/* Fails if the cgroup cannot be removed. A second call does nothing. */
int limitgroup_close(struct limitgroup *l, struct err *err);
const struct limit_outcome *limitgroup_outcome(const struct limitgroup *l);
void limitgroup_free(struct limitgroup *l);
DEFINE_FREE_P(limitgroup, struct limitgroup)

#endif
