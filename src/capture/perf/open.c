/* Chooses and opens perf sampling events; see open.h. */
#include "base/base.h"
#include "capture/perf/open.h"

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "arch.h"

#ifndef PERF_FORMAT_LOST
#define PERF_FORMAT_LOST (1U << 4)
#endif

static int perf_event_open(const struct perf_event_attr *attr, int32_t pid, int32_t cpu)
{
	return (int)syscall(SYS_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static const struct {
	const char *name;
	uint32_t type;
	uint64_t config;
} clocks[] = {
	{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
	{"cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
	{"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
	{"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
};

const char *perfopen_event_name(size_t i)
{
	return i < ARRAY_LEN(clocks) ? clocks[i].name : NULL;
}

static void init_attr(struct perf_event_attr *a, uint32_t freq_hz, unsigned flags)
{
	*a = (struct perf_event_attr){
		.size = sizeof(*a),
		.sample_freq = freq_hz,
		.freq = 1,
		.disabled = 1,
		.inherit = !(flags & PERFOPEN_SYSTEM),
		.enable_on_exec = !!(flags & PERFOPEN_ON_EXEC),
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.sample_id_all = 1,
		/*
		 * Not for the whole system: the kernel leaves PERF_RECORD_MISC_MMAP_BUILD_ID set in
		 * the same record for other perf users, who did not request it; perf 6 crashes on
		 * it.
		 */
		.build_id = !(flags & PERFOPEN_SYSTEM),
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.exclude_guest = 1,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD,
		.read_format = PERF_FORMAT_LOST,
	};
	if (flags & PERFOPEN_USER_ONLY)
		a->exclude_kernel = 1;
	if (flags & PERFOPEN_SWITCHES)
		a->context_switch = 1;
	if (flags & (PERFOPEN_NO_STACKS | PERFOPEN_PROG))
		return;
	a->sample_type |= PERF_SAMPLE_CALLCHAIN;
	if (!(flags & PERFOPEN_FP)) {
		a->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
		a->exclude_callchain_user = 1;
		a->sample_regs_user = ARCH_PERF_REGS_MASK;
		a->sample_stack_user = PERFOPEN_STACK_MIN;
	}
}

/*
 * Tries to open the event; without the attributes that older kernels lack (build ids, lost counts),
 * then without kernel frames if these are not permitted. Returns 0 or -errno of the last attempt.
 */
static int try_open(struct perfopen *p, int32_t pid, int32_t cpu)
{
	for (;;) {
		int fd = perf_event_open(&p->attr, pid, cpu);
		if (fd >= 0) {
			close(fd);
			return 0;
		}
		int e = errno;
		if ((e == EINVAL || e == E2BIG) && p->attr.read_format) {
			p->attr.read_format = 0;
		} else if ((e == EINVAL || e == E2BIG) && p->attr.build_id) {
			p->attr.build_id = 0;
		} else if ((e == EACCES || e == EPERM) && !p->attr.exclude_kernel && pid >= 0) {
			p->attr.exclude_kernel = 1;
			p->attr.exclude_hv = 1;
			p->is_refused_kernel = true;
		} else {
			return -e;
		}
	}
}

static int choose_sideband(struct perfopen *ret_p, int32_t pid, unsigned flags, struct err *err)
{
	struct perfopen p = {.event = "none", .is_software = true};
	init_attr(&p.attr, 0, flags | PERFOPEN_NO_STACKS);
	p.attr.freq = 0;
	p.attr.exclude_kernel = 1; /* nothing is sampled, so this needs no privilege */
	p.attr.type = PERF_TYPE_SOFTWARE;
	p.attr.config = PERF_COUNT_SW_DUMMY;
	int rc = try_open(&p, pid, flags & PERFOPEN_SYSTEM ? 0 : -1);
	if (rc)
		return err_set(err, rc, "cannot follow mmap and fork events of %s %d: %s",
			       pid < 0 ? "the whole system, cpu" : "pid", pid < 0 ? 0 : pid,
			       strerror(-rc));
	*ret_p = p;
	return 0;
}

/* Switches happen in kernel mode: none would be counted without permission to sample it. */
static int choose_switches(struct perfopen *ret_p, int32_t pid, unsigned flags, struct err *err)
{
	struct perfopen p = {.event = "context-switches", .is_software = true};
	init_attr(&p.attr, 0, flags);
	p.attr.freq = 0;
	p.attr.sample_period = 1;
	p.attr.sample_type &= ~(uint64_t)PERF_SAMPLE_CALLCHAIN;
	p.attr.exclude_callchain_user = 0;
	p.attr.sample_stack_user = PERFOPEN_STACK_SWITCH;
	p.attr.type = PERF_TYPE_SOFTWARE;
	p.attr.config = PERF_COUNT_SW_CONTEXT_SWITCHES;
	int rc = try_open(&p, pid, flags & PERFOPEN_SYSTEM ? 0 : -1);
	if (!rc && p.is_refused_kernel)
		rc = -EACCES;
	if (rc)
		return err_set(err, rc, "cannot record context switches of pid %d: %s", pid,
			       strerror(-rc));
	*ret_p = p;
	return 0;
}

static int choose_faults(struct perfopen *ret_p, int32_t pid, uint32_t freq_hz, unsigned flags,
			 struct err *err)
{
	struct perfopen p = {.event = "page-faults", .is_software = true};
	init_attr(&p.attr, freq_hz, flags);
	p.attr.type = PERF_TYPE_SOFTWARE;
	p.attr.config = PERF_COUNT_SW_PAGE_FAULTS;
	int rc = try_open(&p, pid, flags & PERFOPEN_SYSTEM ? 0 : -1);
	if (rc)
		return err_set(err, rc, "cannot sample the page faults of pid %d: %s", pid,
			       strerror(-rc));
	p.is_user_only = p.attr.exclude_kernel;
	*ret_p = p;
	return 0;
}

int perfopen_choose(struct perfopen *ret_p, int32_t pid, const char *event, uint32_t freq_hz,
		    unsigned flags, struct err *err)
{
	if (flags & PERFOPEN_SIDEBAND)
		return choose_sideband(ret_p, pid, flags, err);
	if (flags & PERFOPEN_SWITCHES)
		return choose_switches(ret_p, pid, flags, err);
	if (flags & PERFOPEN_FAULTS)
		return choose_faults(ret_p, pid, freq_hz, flags, err);
	bool is_choice = !event || !event[0];
	int rc = -ENOENT;
	bool is_known = false;
	for (size_t i = 0; i < ARRAY_LEN(clocks); i++) {
		if (is_choice ? i > 1 : strcmp(event, clocks[i].name))
			continue;
		is_known = true;
		struct perfopen p = {.event = clocks[i].name,
				     .is_software = clocks[i].type == PERF_TYPE_SOFTWARE};
		init_attr(&p.attr, freq_hz, flags);
		p.attr.type = clocks[i].type;
		p.attr.config = clocks[i].config;
		rc = try_open(&p, pid, flags & PERFOPEN_SYSTEM ? 0 : -1);
		if (!rc) {
			p.is_user_only = p.attr.exclude_kernel;
			*ret_p = p;
			return 0;
		}
	}
	if (!is_known) {
		err_set(err, -EINVAL, "unknown event '%s'", event);
		return err_hint(err, "CPU time is sampled by: cycles, cpu-clock, task-clock, "
				     "instructions");
	}
	err_set(err, rc, "cannot open event '%s' for %s %d: %s", is_choice ? "cpu-clock" : event,
		pid < 0 ? "the whole system, cpu" : "pid", pid < 0 ? 0 : pid, strerror(-rc));
	if (rc == -ENOENT)
		err_hint(err,
			 "this machine has no hardware counters (a virtual machine?): leave out "
			 "-e to use cpu-clock");
	return rc;
}

int perfopen_event(const struct perfopen *p, int32_t tid, int32_t cpu, uint32_t stack_bytes,
		   struct err *err)
{
	struct perf_event_attr attr = p->attr;
	if (attr.sample_type & PERF_SAMPLE_STACK_USER)
		attr.sample_stack_user = stack_bytes;
	int fd = perf_event_open(&attr, tid, cpu);
	if (fd < 0)
		return err_sys(err, "cannot open event '%s' for thread %d", p->event, tid);
	return fd;
}

struct perfopen_counts perfopen_read(int fd)
{
	uint64_t v[2] = {0}; /* value, and lost if the kernel reports it */
	ssize_t n = read(fd, v, sizeof(v));
	return (struct perfopen_counts){.value = n >= 8 ? v[0] : 0, .nr_lost = n >= 16 ? v[1] : 0};
}
