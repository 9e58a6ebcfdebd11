/* Counts events by perf counters; see perfcounts.h. */
#include "base/base.h"
#include "capture/events/perfcounts.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/vec.h"
#include "capture/events/counts.h"
#include "capture/perf/synth.h"
#include "host/limits.h"
#include "host/privileges.h"

#define CPUS_MAX 4096

struct counter {
	int fd;
	uint32_t event;
	int32_t pid; /* COUNTS_ELSEWHERE: counter of a CPU */
	int32_t tid;
	uint64_t value; /* as last read */
};

struct perfcounts {
	const struct counts_spec *counts;
	const struct target *target;
	VEC(struct counter) counters;
	struct buf refused;
	bool is_user_only;
	uint64_t start_ns;
	int last_refusal;
};

static void perfcounts_free(void *s)
{
	struct perfcounts *c = s;
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

static bool is_permission_error(int rc)
{
	return rc == -EACCES || rc == -EPERM;
}

/* Ordinary users may count some events of their own processes, in user mode only. */
static bool is_unprivileged(const struct named_event *e)
{
	return e->software && e->software->unprivileged &&
	       !strcmp(e->software->unprivileged, perfcounts_source.name);
}

static int open_any(struct perfcounts *c, const struct named_event *e, int32_t tid, int32_t cpu)
{
	bool is_child = c->target->child && tid == c->target->child;
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = e->software ? PERF_TYPE_SOFTWARE : PERF_TYPE_TRACEPOINT,
		.config = e->config,
		.disabled = 1,
		.inherit = cpu < 0,
		.enable_on_exec = is_child,
	};
	int fd = open_counter(&attr, tid, cpu);
	if (!is_permission_error(fd) || !is_unprivileged(e))
		return fd;
	attr.exclude_kernel = 1;
	fd = open_counter(&attr, tid, cpu);
	c->is_user_only |= fd >= 0;
	return fd;
}

/* Opens a counter; false: this event cannot be counted at all. */
static bool add_counter(struct perfcounts *c, uint32_t event, int32_t pid, int32_t tid, int32_t cpu)
{
	const struct named_event *e = &c->counts->set->events.p[event];
	int fd = open_any(c, e, tid, cpu);
	if (fd >= 0)
		vec_push(&c->counters, (struct counter){fd, event, pid, tid, 0});
	else
		c->last_refusal = fd;
	return fd >= 0 || fd == -ESRCH ||
	       fd == -ENODEV; /* the thread has exited, or the CPU is offline */
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
	const struct target *t = c->target;
	bool is_fine = !t->child || add_counter(c, event, t->child, t->child, -1);
	for (size_t i = 0; is_fine && i < t->pids.pids.n; i++)
		is_fine = add_process(c, event, t->pids.pids.p[i]);
	for (size_t i = 0; is_fine && i < t->tids.pids.n; i++) {
		int32_t tid = t->tids.pids.p[i];
		int32_t pid;
		if (!proc_tgid(tid, &pid, NULL))
			is_fine = add_counter(c, event, pid, tid, -1);
	}
	if (!t->is_system || !is_fine)
		return is_fine;
	int32_t cpus[CPUS_MAX];
	size_t nr = MIN(host_cpus(cpus, CPUS_MAX), (size_t)CPUS_MAX);
	for (size_t i = 0; is_fine && i < nr; i++)
		is_fine = add_counter(c, event, COUNTS_ELSEWHERE, -1, cpus[i]);
	return is_fine;
}

/* Other events would count 0 in user mode only. */
static bool needs_kernel_mode(const struct named_event *e)
{
	bool has_rights =
		host_sysctl("perf_event_paranoid", 2) < 2 || host_has_cap(HOST_CAP_PERFMON);
	return e->software && !has_rights && !is_unprivileged(e);
}

/* Opens all counters; an error only if none of the events can be counted. */
static int perfcounts_open(void **ret_c, const struct source_env *env, struct err *err)
{
	struct perfcounts *c = xcalloc(1, sizeof(*c));
	const struct target *t = env->target;
	c->counts = env->counts;
	c->target = t;
	(void)host_raise_nofile();
	const struct event_set *set = c->counts->set;
	bool is_counted = false;
	for (uint32_t i = 0; i < set->events.n; i++) {
		const struct named_event *e = &set->events.p[i];
		bool is_others = needs_kernel_mode(e) && e->software->unprivileged;
		is_counted |= is_others;
		if (!is_others && (needs_kernel_mode(e) || !add_event(c, i)))
			buf_addf(&c->refused, "%s%s", c->refused.n ? ", " : "", e->name);
	}
	if (c->counters.n || is_counted) {
		*ret_c = c;
		return 0;
	}
	int rc = c->last_refusal ? c->last_refusal : -EACCES;
	CLEANUP(buf_release) struct buf remedy = {0};
	int32_t pid = t->is_system ? -1 : t->pids.pids.n ? t->pids.pids.p[0] : 0;
	host_perf_remedy(&remedy, rc, pid);
	err_set(err, rc, "none of the events can be counted: %s", strerror(-rc));
	perfcounts_free(c);
	return err_hint(err, "%s", buf_str(&remedy));
}

static int emit_name(const struct counter *one, uint64_t time_ns, const struct event_sink *sink,
		     struct err *err)
{
	struct event ev = event_comm(one->pid, one->tid, time_ns, COUNTS_ELSEWHERE_NAME);
	return one->pid < 0 ? sink->event(sink->ctx, &ev, err)
			    : synth_name(one->pid, one->tid, time_ns, sink, err);
}

static int perfcounts_start(void *s, const struct source_env *env, const struct event_sink *sink,
			    struct err *err)
{
	struct perfcounts *c = s;
	c->start_ns = env->start_ns;
	for (size_t i = 0; i < c->counters.n; i++) {
		const struct counter *one = &c->counters.p[i];
		bool is_first = !i || one->tid != c->counters.p[i - 1].tid;
		if (one->tid != c->target->child || !c->target->child)
			(void)ioctl(one->fd, PERF_EVENT_IOC_ENABLE,
				    0); /* fails if the thread has exited */
		TRY(is_first ? emit_name(one, c->start_ns, sink, err) : 0);
	}
	return 0;
}

static int perfcounts_drain(void *s, const struct event_sink *sink, struct err *err)
{
	struct perfcounts *c = s;
	uint64_t now_ns = clock_mono_ns();
	uint64_t second = now_ns > c->start_ns ? (now_ns - c->start_ns) / NS_PER_SEC : 0;
	for (size_t i = 0; i < c->counters.n; i++) {
		struct counter *one = &c->counters.p[i];
		uint64_t value;
		if (read(one->fd, &value, sizeof(value)) != sizeof(value) || value <= one->value)
			continue;
		int64_t values[] = {(int64_t)(value - one->value), 0};
		one->value = value;
		struct event ev = event_aggregate(c->counts->first_spec + one->event, one->pid,
						  one->pid < 0 ? COUNTS_ELSEWHERE : one->tid,
						  c->start_ns + second * NS_PER_SEC, values);
		TRY(sink->event(sink->ctx, &ev, err));
	}
	return 0;
}

static void perfcounts_facts(const void *s, struct profile *p)
{
	const struct perfcounts *c = s;
	if (c->counters.n)
		profile_fact(p, FACT_ACCURACY,
			     c->is_user_only
				     ? "counters of the kernel, by thread, faults of user code "
				       "only; no outcomes, no stacks"
				     : "counters of the kernel, by thread; no outcomes, no stacks");
	if (c->refused.n)
		profile_fact(p, FACT_EVENTS_REFUSED, buf_str(&c->refused));
}

const struct source perfcounts_source = {
	.name = "perfcounts",
	.fills = TABLE_SET(EVENTS),
	.is_fallback = true,
	.open = perfcounts_open,
	.start = perfcounts_start,
	.drain = perfcounts_drain,
	.stop = perfcounts_drain,
	.facts = perfcounts_facts,
	.free = perfcounts_free,
};
