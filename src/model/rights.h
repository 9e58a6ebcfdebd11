/*
 * What kernel, user and container allow a profiler: as host/features.h tried it, for whoever judges
 * it (analyze/rightsreport.h).
 */
#ifndef ASSAY_MODEL_RIGHTS_H
#define ASSAY_MODEL_RIGHTS_H

#include <linux/capability.h>

#include "base/base.h"

/* linux/capability.h; newer than the headers of Debian 12 may be. */
#define HOST_CAP_PERFMON            38u
#define HOST_CAP_BPF                39u
#define HOST_CAP_CHECKPOINT_RESTORE 40u

/*
 * Whether who has these capabilities (bit n = capability n) may do what @cap (CAP_*, HOST_CAP_*)
 * permits; CAP_SYS_ADMIN is those that were split off it: PERFMON, BPF, CHECKPOINT_RESTORE, SYSLOG.
 */
static inline bool rights_permit(uint64_t caps, unsigned cap)
{
	bool is_part_of_admin = cap == HOST_CAP_PERFMON || cap == HOST_CAP_BPF ||
				cap == HOST_CAP_CHECKPOINT_RESTORE || cap == CAP_SYSLOG;
	return caps >> cap & 1 || (is_part_of_admin && caps >> CAP_SYS_ADMIN & 1);
}

#define FEATURES_NO_OTHERS 1 /* in place of a result: no process of another user is in sight */

struct features {
	/* perf events by the CPU clock */
	int perf_own;     /* of own processes, user code */
	int perf_kernel;  /* and kernel code */
	int perf_others;  /* of a process of another user; or FEATURES_NO_OTHERS */
	int perf_system;  /* of every process */
	int pmu;          /* hardware cycles of an own process; -ENOENT: there are no counters */
	int bpf;          /* a program for perf events loads */
	int tracepoints;  /* the list of tracepoints can be read */
	int uprobes;      /* a probe on a function can be opened */
	int foreign_maps; /* what is mapped in a process of another user; or FEATURES_NO_OTHERS */
	int foreign_root; /* its root directory; or FEATURES_NO_OTHERS */
	int foreign_pid;  /* the process that was tried, 0 = none */
	bool has_btf;     /* the kernel describes its types */
	bool has_kernel_names;
	bool is_first_pidns; /* numbers of processes are those of the kernel */
	bool has_cgroup_v2;
	bool has_cgroup_v1;
	uint64_t caps;   /* effective */
	uint32_t uid;    /* effective */
	int64_t seccomp; /* 0 none, 1 strict, 2 a filter; -1 not known */
	bool has_no_new_privs;
	/* settings, -1 where they cannot be read (perf_event_paranoid: 2) */
	int64_t paranoid;
	int64_t kptr_restrict;
	int64_t unprivileged_bpf;
	int64_t ptrace_scope;
	int64_t mlock_kb;
	int64_t max_sample_rate;
	int64_t max_stack;
	uint64_t nofile;  /* the hard limit */
	uint64_t memlock; /* bytes, UINT64_MAX = no limit */
};

#endif
