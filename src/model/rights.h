/*
 * What the kernel, the user's capabilities and the container allow a profiler to do, and what a
 * command needs of it. host/features.h fills struct features by trying each facility; the needs are
 * columns of the command table (cmd/cmd_table.h); analyze/rightsjudge.h compares the two.
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
	/* What of BPF this kernel is too old for, or was built without; NULL: nothing */
	const char *bpf_lacks;
	bool has_btf;          /* the kernel has BTF type information */
	bool has_kernel_names; /* /proc/kallsyms shows addresses */
	bool is_init_pidns;    /* assay runs in the initial PID namespace */
	bool has_cgroup_v2;
	bool has_cgroup_v1;
	uint64_t caps;   /* effective */
	uint32_t uid;    /* effective */
	int64_t seccomp; /* 0 none, 1 strict, 2 filter; -1 unknown */
	bool has_no_new_privs;
	bool is_locked_down; /* lockdown mode "confidentiality": BPF and perf read no kernel memory */
	bool has_tracefs;    /* the kernel has tracefs, mounted or not */
	char release[65];    /* of the kernel: "6.1.0-31-amd64"; its characters are printable */
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

/* What a command needs, and its fallbacks. */
enum rights_need {
	RIGHTS_NOTHING = 1 << 0, /* no privilege and no target */
	RIGHTS_PERF = 1 << 1,    /* perf events are sufficient, without BPF programs */
	RIGHTS_BPF = 1 << 2,     /* BPF programs are required */
	RIGHTS_TRACEPOINTS = 1 << 3,
	RIGHTS_UPROBES = 1 << 4,
	RIGHTS_FALLS_TO_PROC = 1 << 5,   /* without perf events it polls /proc */
	RIGHTS_FALLS_TO_COUNTS = 1 << 6, /* without BPF it has counts, but no stacks */
	RIGHTS_IS_ALONE = 1 << 7,        /* does not need a target process */
	RIGHTS_HAS_NO_SYSTEM = 1 << 8,   /* has no -a */
	RIGHTS_PTRACE = 1 << 9,          /* changes the target */
	RIGHTS_MEMORY = 1 << 10,         /* reads the target's page tables and memory */
	RIGHTS_CGROUP = 1 << 11,
	RIGHTS_PARTS = 1 << 12,       /* runs what it may of `parts`, but not without the first */
	RIGHTS_ONLY_COUNTS = 1 << 13, /* counts perf events: no BPF, stacks or names */
};

/* The capabilities for BPF programs and names of kernel functions. */
#define RIGHTS_STACKS \
	((uint64_t)1 << HOST_CAP_BPF | (uint64_t)1 << HOST_CAP_PERFMON | (uint64_t)1 << CAP_SYSLOG)

struct rights_needs {
	unsigned bits;     /* enum rights_need; 0: no needs (the end of a list) */
	uint64_t caps;     /* least capabilities for the full function */
	const char *form;  /* "tracepoints": of this use of the command; NULL: of the command */
	const char *parts; /* RIGHTS_PARTS: names of commands, separated by a space */
};

#endif
