/*
 * What the kernel, the user's capabilities and the container allow a profiler to do.
 * host/features.h fills it by trying each facility; analyze/rightsreport.h evaluates it.
 */
#ifndef ASSAY_MODEL_RIGHTS_H
#define ASSAY_MODEL_RIGHTS_H

#include <linux/capability.h>

#include "base/base.h"

/* As CAP_* in linux/capability.h, which may be too old to have them. */
#define HOST_CAP_PERFMON            38u
#define HOST_CAP_BPF                39u
#define HOST_CAP_CHECKPOINT_RESTORE 40u

/*
 * Whether the capability set @caps (bit n = capability n) grants what @cap (CAP_*, HOST_CAP_*)
 * permits. CAP_SYS_ADMIN includes the capabilities that were split off it: PERFMON, BPF,
 * CHECKPOINT_RESTORE, SYSLOG.
 */
static inline bool rights_permit(uint64_t caps, unsigned cap)
{
	bool is_part_of_admin = cap == HOST_CAP_PERFMON || cap == HOST_CAP_BPF ||
				cap == HOST_CAP_CHECKPOINT_RESTORE || cap == CAP_SYSLOG;
	return caps >> cap & 1 || (is_part_of_admin && caps >> CAP_SYS_ADMIN & 1);
}

#define FEATURES_NOT_TRIED 1 /* instead of a result: there is no process of another user */

/* What works on this machine. An `int` member is the result of trying it: 0 or negative errno. */
struct features {
	/* perf events with the CPU clock */
	int perf_own;    /* of own processes, user code */
	int perf_kernel; /* of own processes, user and kernel code */
	int perf_others; /* of a process of another user; or FEATURES_NOT_TRIED */
	int perf_system; /* of all processes (system-wide) */
	int pmu;         /* hardware cycles of an own process; -ENOENT: no hardware counters */
	int bpf;         /* load a BPF program for perf events */
	int tracepoints; /* read the list of tracepoints in tracefs */
	int uprobes;     /* open a uprobe */
	int limit;       /* create a memory cgroup */
	int other_maps;  /* /proc/PID/maps of another user's process; or FEATURES_NOT_TRIED */
	int other_root;  /* /proc/PID/root of that process; or FEATURES_NOT_TRIED */
	int other_pid;   /* the process of another user that was tried, 0 = none */
	bool has_btf;    /* the kernel has BTF type information */
	bool has_kernel_names; /* /proc/kallsyms shows addresses */
	bool is_init_pidns;    /* assay runs in the initial PID namespace */
	bool has_cgroup_v2;
	bool has_cgroup_v1;
	uint64_t caps;   /* effective */
	uint32_t uid;    /* effective */
	int64_t seccomp; /* 0 none, 1 strict, 2 filter; -1 unknown */
	bool has_no_new_privs;
	/* Values of sysctls; -1 if they cannot be read, but 2 for perf_event_paranoid. */
	int64_t paranoid; /* kernel.perf_event_paranoid */
	int64_t kptr_restrict;
	int64_t unprivileged_bpf;
	int64_t ptrace_scope;
	int64_t mlock_kb;
	int64_t max_sample_rate;
	int64_t max_stack;
	uint64_t nofile;  /* hard limit of RLIMIT_NOFILE */
	uint64_t memlock; /* RLIMIT_MEMLOCK in bytes, UINT64_MAX = no limit */
};

#endif
