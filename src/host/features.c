/* Tests of what this host allows; see features.h. */
#include "base/base.h"
#include "host/features.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/sv.h"
#include "host/bpfrights.h"
#include "host/privileges.h"
#include "host/limits.h"
#include "host/memory/cgroup.h"
#include "host/proc.h"
#include "host/reader/hostfile.h"
#include "host/tracefs.h"

#define NR_FOREIGN  8 /* other users' processes tried at most */
#define TEXT_LIMIT  ((size_t)64 << 10)
#define HELPER_LOOP 181 /* BPF_FUNC_loop, which linux/bpf.h may be too old to have */

/* ---- perf events --------------------------------------------------------------------------- */

static int try_event(struct perf_event_attr attr, int32_t pid, int32_t cpu)
{
	attr.size = sizeof(attr);
	attr.disabled = 1;
	attr.exclude_hv = 1;
	CLEANUP(close_p)
	int fd = (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : 0;
}

static int try_clock(int32_t pid, bool is_user_only)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .config = PERF_COUNT_SW_CPU_CLOCK,
				       .sample_period = 1000000,
				       .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN,
				       .exclude_callchain_kernel = is_user_only,
				       .exclude_kernel = is_user_only};
	return try_event(attr, pid, pid < 0 ? 0 : -1);
}

static int try_cycles(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE,
				       .config = PERF_COUNT_HW_CPU_CYCLES,
				       .exclude_kernel = 1};
	return try_event(attr, 0, -1);
}

/* Opens a uprobe on the ELF header of assay's own executable, which holds no code. */
static int try_uprobe(void)
{
	CLEANUP(buf_release) struct buf text = {0};
	uint64_t type;
	if (file_read(&text, "/sys/bus/event_source/devices/uprobe/type", 64, NULL) ||
	    !sv_to_u64(sv_trim(buf_sv(&text)), &type))
		return -ENOTSUP;
	struct perf_event_attr attr = {.type = (uint32_t)type,
				       .config1 = (uint64_t)(uintptr_t) "/proc/self/exe",
				       .sample_period = 1};
	int rc = try_event(attr, 0, -1);
	/* any other error is not about rights */
	return rc == -EACCES || rc == -EPERM || rc == -ENOSYS ? rc : 0;
}

/* ---- BPF programs, tracepoints, kernel symbols --------------------------------------------- */

/* @log: for the verifier's message, or NULL. */
static int try_program(const struct bpf_insn *code, uint32_t nr, char *log, uint32_t nr_log)
{
	static const char license[] = "GPL";
	union bpf_attr attr = {.prog_type = BPF_PROG_TYPE_PERF_EVENT,
			       .insns = (uint64_t)(uintptr_t)code,
			       .insn_cnt = nr,
			       .license = (uint64_t)(uintptr_t)license,
			       .log_level = log != NULL,
			       .log_buf = (uint64_t)(uintptr_t)log,
			       .log_size = log ? nr_log : 0};
	CLEANUP(close_p) int fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
	return fd < 0 ? -errno : 0;
}

static int try_bpf(void)
{
	CLEANUP(err_release) struct err err = {0};
	int rc = host_bpf_rights(HOST_BTF_PATH, &err);
	if (rc == -ENOTSUP)
		return rc;
	const struct bpf_insn code[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0},
					{.code = BPF_JMP | BPF_EXIT}};
	return try_program(code, ARRAY_LEN(code), NULL, 0);
}

/*
 * Whether the verifier knows a helper: it refuses the call without arguments in any case, but an
 * unknown one by "invalid func" or "unknown func".
 */
static bool has_helper(int32_t helper)
{
	char log[4096] = "";
	const struct bpf_insn code[] = {{.code = BPF_JMP | BPF_CALL, .imm = helper},
					{.code = BPF_JMP | BPF_EXIT}};
	int rc = try_program(code, ARRAY_LEN(code), log, sizeof(log));
	log[sizeof(log) - 1] = 0;
	return !rc || (!strstr(log, "invalid func") && !strstr(log, "unknown func"));
}

/* What the recorder's BPF programs use and this kernel may be too old for. */
static const char *bpf_lacks(void)
{
	union bpf_attr ring = {.map_type = BPF_MAP_TYPE_RINGBUF, .max_entries = 1u << 16};
	CLEANUP(close_p) int fd = (int)syscall(SYS_bpf, BPF_MAP_CREATE, &ring, sizeof(ring));
	if (fd < 0 && errno == EINVAL)
		return "BPF ring buffers: since Linux 5.8";
	return has_helper(HELPER_LOOP) ? NULL : "bpf_loop: since Linux 5.17";
}

static int try_tracepoints(void)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(close_p) int fd = -1;
	TRY(tracefs_open(&fd, &err));
	CLEANUP(close_p)
	int list = openat(fd, "events/sched/sched_switch/id", O_RDONLY | O_CLOEXEC);
	return list < 0 ? -errno : 0;
}

/* Returns whether kallsyms shows addresses: hidden ones read as zeros. */
static bool try_kernel_symbols(void)
{
	CLEANUP(close_p) int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	char text[4096];
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text));
	struct sv rest = {text, n > 0 ? (size_t)n : 0};
	for (int i = 0; i < 16 && rest.n; i++) {
		struct sv line = sv_split(&rest, '\n');
		for (size_t k = 0; k < line.n && line.p[k] != ' '; k++)
			if (line.p[k] != '0')
				return true;
	}
	return false;
}

/* ---- other users' processes ---------------------------------------------------------------- */

static bool is_user_process(int32_t pid)
{
	CLEANUP(buf_release) struct buf text = {0};
	return !proc_cmdline(&text, pid, NULL) && text.n; /* kernel threads have none */
}

static int stop_at_first(void *ctx, const struct proc_map *m UNUSED, struct err *err UNUSED)
{
	*(bool *)ctx = true;
	return 1;
}

static int try_other_maps(int32_t pid)
{
	bool has_any = false;
	int rc = proc_maps(pid, stop_at_first, &has_any, NULL);
	return has_any ? 0 : rc ? rc : -EACCES;
}

static int try_other_root(int32_t pid)
{
	CLEANUP(close_p) int fd = hostfile_open_root(pid);
	return MIN(fd, 0);
}

static void try_one(struct features *f, int32_t pid)
{
	f->other_pid = pid;
	f->perf_others = try_clock(pid, f->perf_kernel != 0);
	f->other_maps = try_other_maps(pid);
	f->other_root = try_other_root(pid);
}

int features_probe_process(struct features *f, int32_t pid)
{
	uint32_t uid;
	int rc = try_clock(pid, true);
	bool is_own = !proc_uid(pid, &uid, NULL) && uid == f->uid;
	if (is_own)
		f->perf_own = rc;
	else
		try_one(f, pid);
	return rc;
}

/*
 * Tries the newest processes first: the oldest are system services. A single process may refuse for
 * reasons of its own (not dumpable, more capabilities than assay), so several are tried; one that
 * permits is enough.
 */
static void try_others(struct features *f)
{
	CLEANUP(pid_list_release) struct pid_list all = {0};
	f->perf_others = f->other_maps = f->other_root = FEATURES_NOT_TRIED;
	if (proc_list(&all, NULL))
		return;
	unsigned nr = 0;
	for (size_t i = all.pids.n; i > 0 && nr < NR_FOREIGN; i--) {
		int32_t pid = all.pids.p[i - 1];
		uint32_t of;
		if (pid == 1 || proc_uid(pid, &of, NULL) || of == f->uid || !is_user_process(pid))
			continue;
		try_one(f, pid);
		if (!f->perf_others && !f->other_maps)
			return;
		nr++;
	}
}

/* ---- memory -------------------------------------------------------------------------------- */

static int try_limit(void)
{
	struct memgroup_tree tree = MEMGROUP_TREE_INIT;
	struct memgroup g = MEMGROUP_INIT;
	int rc = memgroup_tree_open(&tree, "/", NULL);
	rc = rc ? rc : memgroup_make(&g, &tree, NULL);
	if (!rc)
		(void)memgroup_remove(&g, NULL, NULL); /* it was just created, and is empty */
	memgroup_release(&g);
	memgroup_tree_release(&tree);
	return rc;
}

/* ---- settings and limits ------------------------------------------------------------------- */

static int64_t own_status(const struct buf *status, const char *key)
{
	int64_t v;
	return sv_to_i64(proc_status_field(status, key), &v) ? v : -1;
}

static void read_limits(struct features *f)
{
	struct rlimit rl;
	f->nofile = getrlimit(RLIMIT_NOFILE, &rl) ? 0 : rl.rlim_max;
	f->memlock = getrlimit(RLIMIT_MEMLOCK, &rl) ? 0
		     : rl.rlim_cur == RLIM_INFINITY ? UINT64_MAX
						    : rl.rlim_cur;
}

static bool has_text(const char *path, const char *text)
{
	CLEANUP(buf_release) struct buf b = {0};
	return !file_read(&b, path, TEXT_LIMIT, NULL) && strstr(buf_str(&b), text);
}

static void read_settings(struct features *f)
{
	f->paranoid = host_sysctl("perf_event_paranoid", 2);
	f->kptr_restrict = host_sysctl("kptr_restrict", -1);
	f->unprivileged_bpf = host_sysctl("unprivileged_bpf_disabled", -1);
	f->ptrace_scope = host_sysctl("yama/ptrace_scope", -1);
	f->mlock_kb = host_sysctl("perf_event_mlock_kb", -1);
	f->max_sample_rate = host_sysctl("perf_event_max_sample_rate", -1);
	f->max_stack = host_sysctl("perf_event_max_stack", -1);
	f->has_btf = !access(HOST_BTF_PATH, R_OK);
	f->is_init_pidns = host_is_first_pidns();
	f->has_cgroup_v2 = !access("/sys/fs/cgroup/cgroup.controllers", F_OK) ||
			   !access("/sys/fs/cgroup/unified/cgroup.controllers", F_OK);
	f->has_cgroup_v1 =
		!access("/sys/fs/cgroup/cpu", F_OK) || !access("/sys/fs/cgroup/memory", F_OK);
	CLEANUP(buf_release) struct buf status = {0};
	if (file_read(&status, "/proc/self/status", TEXT_LIMIT, NULL))
		buf_clear(&status);
	f->seccomp = own_status(&status, "Seccomp");
	f->has_no_new_privs = own_status(&status, "NoNewPrivs") == 1;
	f->is_locked_down = has_text("/sys/kernel/security/lockdown", "[confidentiality]");
	f->has_tracefs = has_text("/proc/filesystems", "\ttracefs\n");
	struct utsname u;
	if (!uname(&u))
		snprintf(f->release, sizeof(f->release), "%s", u.release);
}

void features_probe(struct features *ret_f)
{
	struct features f = {.caps = host_effective_caps(), .uid = geteuid()};
	read_settings(&f);
	f.limit = try_limit();
	read_limits(&f);
	f.perf_own = try_clock(0, true);
	f.perf_kernel = try_clock(0, false);
	f.perf_system = try_clock(-1, false);
	f.pmu = try_cycles();
	f.bpf = try_bpf();
	f.bpf_lacks = f.bpf ? NULL : bpf_lacks();
	f.bpf = f.bpf_lacks ? -ENOTSUP : f.bpf;
	f.tracepoints = try_tracepoints();
	f.uprobes = try_uprobe();
	f.has_kernel_names = try_kernel_symbols();
	try_others(&f);
	*ret_f = f;
}
