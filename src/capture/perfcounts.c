/* Counting events by the kernel's counters; see perfcounts.h. */
#include "base/base.h"
#include "capture/perfcounts.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/vec.h"
#include "host/limits.h"
#include "wait_reason.h"

#define CPUS_MAX 4096

struct counter {
	int fd;
	uint32_t event;
	int32_t pid; /* COUNTS_ELSEWHERE: a CPU's */
	int32_t tid;
	uint64_t value; /* as last read */
};

struct perfcounts {
	struct perfcounts_spec spec;
	VEC(struct counter) counters;
	struct buf refused;
	bool is_user_only;
	uint64_t start_ns;
	int last_refusal;
};

void perfcounts_free(struct perfcounts *c)
{
	if (!c)
		return;
	vec_foreach(one, &c->counters)
		close_p(&one->fd);
	vec_release(&c->counters);
	buf_release(&c->refused);
	free(c);
}

static int open_counter(const struct perf_event_attr *attr, int32_t tid, int32_t cpu)
{
	int fd = (int)syscall(SYS_perf_event_open, attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static bool is_refusal(int rc)
{
	return rc == -EACCES || rc == -EPERM;
}

/* Without the kernel side, ordinary users count faults of their own programs. */
static int open_any(struct perfcounts *c, const struct named_event *e, int32_t tid, int32_t cpu)
{
	bool is_child = c->spec.child && tid == c->spec.child;
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = e->is_software ? PERF_TYPE_SOFTWARE : PERF_TYPE_TRACEPOINT,
		.config = e->config,
		.disabled = 1,
		.inherit = cpu < 0,
		.enable_on_exec = is_child,
	};
	int fd = open_counter(&attr, tid, cpu);
	bool has_user_side = e->is_software && strstr(e->name, "faults");
	if (!is_refusal(fd) || !has_user_side)
		return fd;
	attr.exclude_kernel = 1;
	fd = open_counter(&attr, tid, cpu);
	c->is_user_only |= fd >= 0;
	return fd;
}

/* False: this event cannot be counted at all. */
static bool add_counter(struct perfcounts *c, uint32_t event, int32_t pid, int32_t tid, int32_t cpu)
{
	const struct named_event *e = &c->spec.counts->set->events.p[event];
	int fd = open_any(c, e, tid, cpu);
	if (fd >= 0)
		vec_push(&c->counters, (struct counter){fd, event, pid, tid, 0});
	else
		c->last_refusal = fd;
	return fd >= 0 || fd == -ESRCH || fd == -ENODEV; /* a thread, a CPU that has gone */
}

static bool add_process(struct perfcounts *c, uint32_t event, int32_t pid)
{
	struct pid_list threads = {0};
	bool is_fine = true;
	if (!proc_threads(&threads, pid, NULL))
		for (size_t i = 0; is_fine && i < threads.pids.n; i++)
			is_fine = add_counter(c, event, pid, threads.pids.p[i], -1);
	pid_list_release(&threads);
	return is_fine;
}

static bool add_event(struct perfcounts *c, uint32_t event)
{
	const struct perfcounts_spec *s = &c->spec;
	bool is_fine = !s->child || add_counter(c, event, s->child, s->child, -1);
	for (size_t i = 0; is_fine && s->pids && i < s->pids->pids.n; i++)
		is_fine = add_process(c, event, s->pids->pids.p[i]);
	for (size_t i = 0; is_fine && s->tids && i < s->tids->pids.n; i++) {
		int32_t tid = s->tids->pids.p[i];
		int32_t pid;
		if (!proc_tgid(tid, &pid, NULL))
			is_fine = add_counter(c, event, pid, tid, -1);
	}
	if (!s->is_system || !is_fine)
		return is_fine;
	int32_t cpus[CPUS_MAX];
	size_t nr = MIN(host_cpus(cpus, CPUS_MAX), (size_t)CPUS_MAX);
	for (size_t i = 0; is_fine && i < nr; i++)
		is_fine = add_counter(c, event, COUNTS_ELSEWHERE, -1, cpus[i]);
	return is_fine;
}

/* Nobody may count switches and migrations without the kernel side: they read 0. */
static bool is_pointless(const struct named_event *e)
{
	bool has_rights = host_sysctl("perf_event_paranoid", 2) < 2 || host_is_root();
	return e->is_software && !has_rights && !strstr(e->name, "faults");
}

int perfcounts_open(struct perfcounts **ret_c, const struct perfcounts_spec *spec, struct err *err)
{
	struct perfcounts *c = xcalloc(1, sizeof(*c));
	c->spec = *spec;
	(void)host_raise_nofile();
	const struct event_set *set = spec->counts->set;
	for (uint32_t i = 0; i < set->events.n; i++) {
		if (!is_pointless(&set->events.p[i]) && add_event(c, i))
			continue;
		buf_addf(&c->refused, "%s%s", c->refused.n ? ", " : "", set->events.p[i].name);
	}
	if (c->counters.n) {
		*ret_c = c;
		return 0;
	}
	int rc = c->last_refusal ? c->last_refusal : -EACCES;
	CLEANUP(buf_release) struct buf remedy = {0};
	int32_t pid = spec->is_system                    ? -1
		      : spec->pids && spec->pids->pids.n ? spec->pids->pids.p[0]
							 : 0;
	host_perf_remedy(&remedy, rc, pid);
	err_set(err, rc, "none of the events can be counted: %s", strerror(-rc));
	perfcounts_free(c);
	return err_hint(err, "%s", buf_str(&remedy));
}

static int tell_name(const struct counter *one, uint64_t time_ns, const struct event_sink *sink,
		     struct err *err)
{
	CLEANUP(buf_release) struct buf name = {0};
	if (one->pid < 0)
		buf_add_str(&name, COUNTS_ELSEWHERE_NAME);
	else if (proc_comm(&name, one->pid, one->tid, NULL))
		return 0;
	struct event ev = {.kind = EVENT_COMM,
			   .time_ns = time_ns,
			   .pid = one->pid,
			   .tid = one->tid,
			   .cpu = -1,
			   .comm = {.name = buf_str(&name)}};
	return sink->event(sink->ctx, &ev, err);
}

int perfcounts_start(struct perfcounts *c, uint64_t start_ns, const struct event_sink *sink,
		     struct err *err)
{
	int rc = 0;
	c->start_ns = start_ns;
	for (size_t i = 0; !rc && i < c->counters.n; i++) {
		const struct counter *one = &c->counters.p[i];
		bool is_first = !i || one->tid != c->counters.p[i - 1].tid;
		if (one->tid != c->spec.child || !c->spec.child)
			(void)ioctl(one->fd, PERF_EVENT_IOC_ENABLE, 0); /* a thread that has gone */
		if (is_first)
			rc = tell_name(one, start_ns, sink, err);
	}
	return rc;
}

int perfcounts_collect(struct perfcounts *c, uint64_t now_ns, const struct event_sink *sink,
		       struct err *err)
{
	uint64_t second = now_ns > c->start_ns ? (now_ns - c->start_ns) / NS_PER_SEC : 0;
	int rc = 0;
	for (size_t i = 0; !rc && i < c->counters.n; i++) {
		struct counter *one = &c->counters.p[i];
		uint64_t value;
		if (read(one->fd, &value, sizeof(value)) != sizeof(value) || value <= one->value)
			continue;
		int64_t values[] = {(int64_t)(value - one->value), 0};
		one->value = value;
		struct event ev = {.kind = EVENT_TALLY,
				   .time_ns = c->start_ns + second * NS_PER_SEC,
				   .pid = one->pid,
				   .tid = one->pid < 0 ? COUNTS_ELSEWHERE : one->tid,
				   .cpu = -1,
				   .tally = {.spec = c->spec.counts->first_spec + one->event,
					     .log2_ns = LOG2_NONE,
					     .syscall = -1,
					     .values = values}};
		rc = sink->event(sink->ctx, &ev, err);
	}
	return rc;
}

const char *perfcounts_refused(const struct perfcounts *c)
{
	return buf_str(&c->refused);
}

bool perfcounts_is_user_only(const struct perfcounts *c)
{
	return c->is_user_only;
}
