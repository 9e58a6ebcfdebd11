/* Sysctls, resource limits and remedies; see limits.h. */
#include "base/base.h"
#include "host/limits.h"

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include <linux/capability.h>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "base/sv.h"
#include "host/privileges.h"
#include "host/proc.h"

int64_t host_sysctl(const char *name, int64_t fallback)
{
	CLEANUP(free_p) char *path = xasprintf("/proc/sys/kernel/%s", name);
	CLEANUP(buf_release) struct buf text = {0};
	int64_t v;
	if (file_read(&text, path, 4096, NULL) || !sv_to_i64(sv_trim(buf_sv(&text)), &v))
		return fallback;
	return v;
}

size_t host_cpus(int32_t *cpus, size_t cap)
{
	CLEANUP(buf_release) struct buf text = {0};
	size_t n = 0;
	if (file_read(&text, "/sys/devices/system/cpu/online", 1 << 16, NULL)) {
		long nr = sysconf(_SC_NPROCESSORS_ONLN);
		for (int32_t c = 0; c < nr && n < cap; c++)
			cpus[n++] = c;
		return n;
	}
	struct sv rest = sv_trim(buf_sv(&text));
	while (rest.n) {
		struct sv range = sv_split(&rest, ',');
		struct sv first = sv_split(&range, '-');
		uint64_t lo;
		uint64_t hi;
		if (!sv_to_u64(first, &lo))
			continue;
		if (!sv_to_u64(range, &hi))
			hi = lo;
		for (uint64_t c = lo; c <= hi && c < 65536; c++, n++)
			if (n < cap)
				cpus[n] = (int32_t)c;
	}
	return n;
}

unsigned host_nr_cpus(void)
{
	return (unsigned)host_cpus(NULL, 0);
}

uint64_t host_raise_nofile(void)
{
	struct rlimit rl;
	if (getrlimit(RLIMIT_NOFILE, &rl))
		return 1024;
	if (rl.rlim_cur < rl.rlim_max) {
		rl.rlim_cur = rl.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &rl); /* on failure the old limit stays */
	}
	return getrlimit(RLIMIT_NOFILE, &rl) ? 1024 : rl.rlim_cur;
}

/* BPF maps, programs and links, events, and the binaries that are mapped. */
#define FILES_MIN 256

int host_need_files(struct err *err)
{
	uint64_t limit = host_raise_nofile();
	if (limit >= FILES_MIN)
		return 0;
	(void)err_set(err, -EMFILE,
		      "this process may open %" PRIu64 " files; assay needs at least %d", limit,
		      FILES_MIN);
	(void)err_hint(err, "raise the limit of open files: ulimit -n 65536");
	return -EMFILE;
}

#define RAISED_NICE (-10)

void host_raise_priority(void)
{
	(void)setpriority(PRIO_PROCESS, 0, RAISED_NICE); /* without the right it stays */
}

void host_lower_priority(void)
{
	if (getpriority(PRIO_PROCESS, 0) == RAISED_NICE)
		(void)setpriority(PRIO_PROCESS, 0, 0); /* lowering is always permitted */
}

bool host_is_root(void)
{
	return geteuid() == 0;
}

uint32_t host_ring_share(void)
{
	struct rlimit rl;
	if (host_sysctl("perf_event_paranoid", 2) < 0 || host_has_cap(CAP_IPC_LOCK) ||
	    getrlimit(RLIMIT_MEMLOCK, &rl) || rl.rlim_cur == RLIM_INFINITY)
		return 0;
	uint64_t a_cpu = (uint64_t)MAX(host_sysctl("perf_event_mlock_kb", 516), (int64_t)0) << 10;
	uint64_t all = a_cpu + rl.rlim_cur / MAX(host_nr_cpus(), 1u);
	return (uint32_t)MIN(all / 2, (uint64_t)1 << 24);
}

void host_perf_remedy(struct buf *to, int refusal, int32_t pid)
{
	if (refusal == -EMFILE || refusal == -ENFILE) {
		buf_addf(to, "raise the limit of open files: ulimit -n 65536");
		return;
	}
	if (refusal == -ESRCH) {
		buf_addf(to, "the process has exited; check with: ps -p %d", pid);
		return;
	}
	int64_t paranoid = host_sysctl("perf_event_paranoid", 2);
	uint32_t uid = 0;
	bool is_foreign = pid > 0 && !proc_uid(pid, &uid, NULL) && uid != getuid();
	if (is_foreign) {
		buf_addf(
			to,
			"process %d belongs to uid %u: run as that user or with sudo, or give assay "
			"CAP_PERFMON and CAP_SYS_PTRACE",
			pid, uid);
		return;
	}
	buf_addf(
		to,
		"kernel.perf_event_paranoid is %" PRId64
		": run with sudo, or: sudo sysctl kernel.perf_event_paranoid=%d; in a container add "
		"--cap-add PERFMON and a seccomp profile that allows perf_event_open",
		paranoid, pid < 0 ? 0 : 1);
}

uint64_t host_steal_ns(void)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct sv field = {0};
	uint64_t ticks;
	long per_second = sysconf(_SC_CLK_TCK);
	if (file_read(&text, "/proc/stat", 16 << 20, NULL) || per_second <= 0)
		return 0;
	struct sv rest = buf_sv(&text);
	struct sv line = sv_split(&rest, '\n');
	/* "cpu  user nice system idle iowait irq softirq steal ..." */
	for (int i = 0; i <= 8 && line.n; i++) {
		field = sv_split(&line, ' ');
		line = sv_trim(line);
	}
	if (!sv_to_u64(field, &ticks))
		return 0;
	return ticks * (NS_PER_SEC / (uint64_t)per_second);
}

void host_describe_cpu(struct buf *to)
{
	CLEANUP(buf_release) struct buf text = {0};
	if (file_read(&text, "/proc/cpuinfo", 16 << 20, NULL))
		return;
	struct sv rest = buf_sv(&text);
	while (rest.n) {
		struct sv line = sv_split(&rest, '\n');
		struct sv key = sv_trim(sv_split(&line, ':'));
		if (sv_eq_str(key, "model name") || sv_eq_str(key, "CPU part")) {
			buf_add_sv(to, sv_trim(line));
			return;
		}
	}
}
