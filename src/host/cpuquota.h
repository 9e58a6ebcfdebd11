/*
 * How long the CPU quota of a process's cgroup (docker run --cpus, Kubernetes' limits, systemd's
 * CPUQuota) held back its threads, versions 1 and 2. The process may change its cgroup: call
 * cpuquota_update() about once a second and at the end.
 */
#ifndef ASSAY_HOST_CPUQUOTA_H
#define ASSAY_HOST_CPUQUOTA_H

#include "base/base.h"
#include "base/buf.h"

struct cpuquota {
	struct buf path;  /* folder of the cgroup at the last update, empty = none */
	uint64_t seen_ns; /* of that cgroup and its ancestors, since they were made */
	uint64_t
		total_ns; /* since the first update; threads on several CPUs are held back on each */
};

void cpuquota_release(struct cpuquota *q);
/* What cannot be read counts as no time. @root: "/". */
void cpuquota_update(struct cpuquota *q, const char *root, int32_t pid);

#endif
