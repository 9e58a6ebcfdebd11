/* Counts events of threads; see counters.h. */
#include "base/base.h"
#include "capture/perf/counters.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "host/limits.h"

#define HEAD_WORDS 3 /* nr, time_enabled, time_running */

static bool is_software(const struct counter_event *e)
{
	return e->type == PERF_TYPE_SOFTWARE || e->type == PERF_TYPE_TRACEPOINT;
}

static int open_event(const struct counter_event *e, bool is_user_only, int32_t tid, int32_t cpu,
		      int leader_fd, unsigned flags)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = e->type,
		.config = e->config,
		.disabled = leader_fd < 0,
		.inherit = !!(flags & COUNTERS_INHERIT),
		.enable_on_exec = leader_fd < 0 && flags & COUNTERS_ON_EXEC,
		.exclude_user = e->has_no_user,
		.exclude_kernel = e->has_no_kernel || is_user_only,
		.exclude_hv = is_user_only,
		.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED |
			       PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID,
	};
	int fd =
		(int)syscall(SYS_perf_event_open, &attr, tid, cpu, leader_fd, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static bool is_refusal(int rc)
{
	return rc == -EACCES || rc == -EPERM;
}

/* These happen in the kernel: in user mode alone none would be counted. */
static bool needs_kernel(const struct counter_event *e)
{
	return e->type == PERF_TYPE_TRACEPOINT ||
	       (e->type == PERF_TYPE_SOFTWARE && (e->config == PERF_COUNT_SW_CONTEXT_SWITCHES ||
						  e->config == PERF_COUNT_SW_CPU_MIGRATIONS));
}

/* Opens one event alone, or in the group of @leader_fd; without kernel mode if that is refused. */
static int try_event(struct counter_set *s, size_t i, int32_t tid, int32_t cpu, int leader_fd)
{
	const struct counter_event *e = &s->events.p[i];
	s->is_user_only[i] = false;
	int fd = open_event(e, false, tid, cpu, leader_fd, COUNTERS_INHERIT * (tid >= 0));
	if (!is_refusal(fd) || e->has_no_kernel || needs_kernel(e))
		return fd;
	s->is_user_only[i] = true;
	return open_event(e, true, tid, cpu, leader_fd, COUNTERS_INHERIT * (tid >= 0));
}

static enum counter_state state_of(int rc)
{
	return rc >= 0          ? COUNTER_COUNTED
	       : is_refusal(rc) ? COUNTER_NOT_PERMITTED
				: COUNTER_NOT_SUPPORTED;
}

/* The last event before @i with the same family that leads a group; SIZE_MAX: none. */
static size_t find_leader(const struct counter_set *s, size_t i)
{
	const struct counter_event *e = &s->events.p[i];
	for (size_t k = i; k-- > 0;) {
		const struct counter_event *other = &s->events.p[k];
		if (s->state[k] == COUNTER_COUNTED && s->leader[k] == k &&
		    is_software(other) == is_software(e) && other->family == e->family)
			return k;
	}
	return SIZE_MAX;
}

int counter_set_probe(struct counter_set *s, bool is_system, struct err *err)
{
	int fds[COUNTERS_MAX];
	int32_t cpu = -1;
	int rc = 0;
	int32_t tid = is_system ? -1 : 0;
	if (is_system)
		(void)host_cpus(&cpu, 1);
	for (size_t i = 0; i < s->events.n; i++) {
		size_t leader = find_leader(s, i);
		fds[i] = -EINVAL;
		s->leader[i] = (uint8_t)i;
		if (leader != SIZE_MAX)
			fds[i] = try_event(s, i, tid, cpu, fds[leader]);
		if (fds[i] >= 0)
			s->leader[i] = (uint8_t)leader;
		else
			fds[i] = try_event(s, i, tid, cpu, -1);
		s->state[i] = state_of(fds[i]);
		if (fds[i] == -EMFILE)
			rc = -EMFILE;
	}
	for (size_t i = 0; i < s->events.n; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return rc ? err_set(err, rc, "cannot open the counters: %s", strerror(-rc)) : 0;
}

bool counter_set_has_hardware(const struct counter_set *s)
{
	for (size_t i = 0; i < s->events.n; i++)
		if (!is_software(&s->events.p[i]) && s->state[i] == COUNTER_COUNTED)
			return true;
	return false;
}

bool counter_set_wants_hardware(const struct counter_set *s)
{
	for (size_t i = 0; i < s->events.n; i++)
		if (!is_software(&s->events.p[i]))
			return true;
	return false;
}

void counter_fds_init(struct counter_fds *f)
{
	memset(f, 0, sizeof(*f));
	for (size_t i = 0; i < COUNTERS_MAX; i++)
		f->fd[i] = -1;
}

void counter_fds_close(struct counter_fds *f)
{
	for (size_t i = COUNTERS_MAX; i-- > 0;) /* leaders last */
		close_p(&f->fd[i]);
}

static int open_error(const struct counter_set *s, size_t i, int32_t tid, int rc, struct err *err)
{
	err_set(err, rc, "cannot count '%s' of thread %d: %s", s->events.p[i].name, tid,
		strerror(-rc));
	if (rc == -EMFILE)
		return err_hint(err,
				"each thread takes a file descriptor for each event: raise the "
				"limit (ulimit -n), or count fewer events (-e)");
	if (is_refusal(rc)) {
		CLEANUP(buf_release) struct buf remedy = {0};
		host_perf_remedy(&remedy, rc, tid);
		return err_hint(err, "%s", buf_str(&remedy));
	}
	return rc;
}

int counter_fds_open(struct counter_fds *f, const struct counter_set *s, int32_t tid, int32_t cpu,
		     unsigned flags, struct err *err)
{
	counter_fds_init(f);
	for (size_t i = 0; i < s->events.n; i++) {
		if (s->state[i] != COUNTER_COUNTED)
			continue;
		int leader_fd = s->leader[i] == i ? -1 : f->fd[s->leader[i]];
		int fd =
			open_event(&s->events.p[i], s->is_user_only[i], tid, cpu, leader_fd, flags);
		if (fd < 0) {
			counter_fds_close(f);
			return open_error(s, i, tid, fd, err);
		}
		f->fd[i] = fd;
		(void)ioctl(fd, PERF_EVENT_IOC_ID, &f->id[i]);
	}
	return 0;
}

void counter_fds_enable(const struct counter_fds *f, const struct counter_set *s)
{
	for (size_t i = 0; i < s->events.n; i++)
		if (f->fd[i] >= 0 && s->leader[i] == i)
			(void)ioctl(f->fd[i], PERF_EVENT_IOC_ENABLE,
				    0); /* fails if it has exited */
}

int counter_parse_group(struct counter_raw *ret, const uint64_t *ids, size_t nr, const void *bytes,
			size_t nr_bytes)
{
	uint64_t head[HEAD_WORDS];
	const uint8_t *at = bytes;
	if (nr_bytes < sizeof(head))
		return -EINVAL;
	memcpy(head, at, sizeof(head));
	if (head[0] > COUNTERS_MAX || nr_bytes != sizeof(head) + head[0] * 16)
		return -EINVAL;
	int nr_found = 0;
	for (uint64_t k = 0; k < head[0]; k++) {
		uint64_t pair[2];
		memcpy(pair, at + sizeof(head) + k * sizeof(pair), sizeof(pair));
		for (size_t i = 0; i < nr; i++) {
			if (!pair[1] || ids[i] != pair[1])
				continue;
			ret[i] = (struct counter_raw){pair[0], head[1], head[2]};
			nr_found++;
		}
	}
	return nr_found;
}

void counter_add(struct counter_value *to, const struct counter_raw *before,
		 const struct counter_raw *now)
{
	uint64_t value = now->value - MIN(before->value, now->value);
	uint64_t enabled_ns = now->enabled_ns - MIN(before->enabled_ns, now->enabled_ns);
	uint64_t running_ns = now->running_ns - MIN(before->running_ns, now->running_ns);
	if (running_ns && running_ns < enabled_ns)
		to->value += (double)value * ((double)enabled_ns / (double)running_ns);
	else
		to->value += (double)value;
	to->enabled_ns += enabled_ns;
	to->running_ns += running_ns;
}

void counter_fds_read(struct counter_fds *f, const struct counter_set *s,
		      struct counter_value *values)
{
	uint64_t words[HEAD_WORDS + 2 * COUNTERS_MAX];
	struct counter_raw now[COUNTERS_MAX];
	memcpy(now, f->last, sizeof(now));
	for (size_t i = 0; i < s->events.n; i++) {
		if (f->fd[i] < 0 || s->leader[i] != i)
			continue;
		ssize_t n = read(f->fd[i], words, sizeof(words));
		if (n > 0)
			(void)counter_parse_group(now, f->id, s->events.n, words, (size_t)n);
	}
	for (size_t i = 0; i < s->events.n; i++) {
		if (f->fd[i] < 0)
			continue;
		counter_add(&values[i], &f->last[i], &now[i]);
		f->last[i] = now[i];
	}
}
