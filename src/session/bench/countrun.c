/* Counts the events of a target; see countrun.h. */
#include "base/base.h"
#include "session/bench/countrun.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/sv.h"
#include "host/limits.h"

#define CPUS_MAX      4096
#define POLL_SHARE    50 /* polls take 1 / this of the time */
#define POLL_LEAST_NS (20 * NS_PER_MS)

void countrun_release(struct countrun *r)
{
	for (size_t i = 0; i < r->tasks.n; i++) {
		if (r->tasks.p[i]->has_counters)
			counter_fds_close(&r->tasks.p[i]->fds);
		free(r->tasks.p[i]);
	}
	vec_release(&r->tasks);
	map_release(&r->by_tid);
	pid_list_release(&r->family.pids);
}

/* ---- threads ---------------------------------------------------------------------------------- */

static unsigned open_flags(const struct countrun *r)
{
	return r->flags & COUNTRUN_THREADS ? 0 : COUNTERS_INHERIT;
}

/* schedstat: "ON_CPU_NS RUN_QUEUE_NS SLICES". False: the thread has ended. */
static bool read_schedstat(int32_t pid, int32_t tid, uint64_t *ret_ran_ns, uint64_t *ret_queue_ns)
{
	char text[64];
	char path[64];
	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", pid, tid);
	CLEANUP(close_p) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	struct sv left = {text, (size_t)n};
	return sv_to_u64(sv_split(&left, ' '), ret_ran_ns) &&
	       sv_to_u64(sv_split(&left, ' '), ret_queue_ns);
}

/* A name may change: kept is the last one. */
static void set_name(struct countrun_task *t)
{
	CLEANUP(buf_release) struct buf name = {0};
	if (!proc_comm(&name, t->pid, t->tid, NULL) && name.n < sizeof(t->name))
		memcpy(t->name, buf_str(&name), name.n + 1);
}

/* The task of a thread, a new one if there is none, or if the id is that of another thread now. */
static struct countrun_task *task_of(struct countrun *r, int32_t pid, int32_t tid, bool *ret_is_new)
{
	uint32_t *idx = map_put(&r->by_tid, (uint32_t)tid, NULL);
	*ret_is_new = !*idx || r->tasks.p[*idx - 1]->has_ended;
	if (!*ret_is_new)
		return r->tasks.p[*idx - 1];
	struct countrun_task *t = xcalloc(1, sizeof(*t));
	*t = (struct countrun_task){.pid = pid, .tid = tid};
	vec_push(&r->tasks, t);
	*idx = (uint32_t)r->tasks.n;
	return t;
}

static bool is_child(const struct countrun *r, const struct countrun_task *t)
{
	return r->child && t->pid == r->child && t->tid == r->child;
}

static int open_counters(struct countrun *r, struct countrun_task *t, struct err *err)
{
	unsigned flags = open_flags(r) | (is_child(r, t) ? COUNTERS_ON_EXEC : 0);
	TRY(counter_fds_open(&t->fds, r->set, t->pid < 0 ? -1 : t->tid, t->pid < 0 ? t->tid : -1,
			     t->pid < 0 ? 0 : flags, err));
	t->has_counters = true;
	return 0;
}

/* Before the start: a thread that exists. -ESRCH: it has exited. */
static int add_thread(struct countrun *r, int32_t pid, int32_t tid, struct err *err)
{
	bool is_new;
	struct countrun_task *t = task_of(r, pid, tid, &is_new);
	int rc = is_new ? open_counters(r, t, err) : 0;
	if (rc == -ESRCH) {
		t->has_ended = true;
		err_release(err);
		*err = (struct err){0};
		return 0;
	}
	return rc;
}

static int add_process(struct countrun *r, int32_t pid, struct err *err)
{
	CLEANUP(pid_list_release) struct pid_list tids = {0};
	if (proc_threads(&tids, pid, NULL))
		return 0;
	for (size_t i = 0; i < tids.pids.n; i++)
		TRY(add_thread(r, pid, tids.pids.p[i], err));
	return 0;
}

static int add_cpus(struct countrun *r, struct err *err)
{
	int32_t cpus[CPUS_MAX];
	size_t nr = MIN(host_cpus(cpus, CPUS_MAX), (size_t)CPUS_MAX);
	for (size_t i = 0; i < nr; i++)
		TRY(add_thread(r, -1, cpus[i], err));
	return 0;
}

int countrun_open(struct countrun *r, const struct counter_set *set, struct target *target,
		  int32_t child, unsigned flags, struct err *err)
{
	bool is_any = false;
	*r = (struct countrun){.set = set, .target = target, .child = child, .flags = flags};
	(void)host_raise_nofile();
	if (child) {
		vec_push(&r->family.pids.pids, child);
		TRY(add_thread(r, child, child, err));
	}
	if (target && target->is_system)
		TRY(add_cpus(r, err));
	for (size_t i = 0; target && i < target->pids.pids.n; i++)
		TRY(add_process(r, target->pids.pids.p[i], err));
	for (size_t i = 0; target && i < target->tids.pids.n; i++) {
		int32_t pid;
		if (!proc_tgid(target->tids.pids.p[i], &pid, NULL))
			TRY(add_thread(r, pid, target->tids.pids.p[i], err));
	}
	for (size_t i = 0; i < r->tasks.n; i++)
		is_any |= r->tasks.p[i]->has_counters;
	return is_any ? 0 : err_set(err, -ESRCH, "the target has ended");
}

void countrun_start(struct countrun *r)
{
	r->stolen_ns = host_steal_ns();
	r->read_ns = clock_mono_ns();
	for (size_t i = 0; i < r->tasks.n; i++) {
		struct countrun_task *t = r->tasks.p[i];
		if (t->pid >= 0)
			(void)read_schedstat(t->pid, t->tid, &t->ran_ns, &t->queue_ns);
		if (t->has_counters && !is_child(r, t))
			counter_fds_enable(&t->fds, r->set);
	}
}

/* ---- polls -------------------------------------------------------------------------------------- */

/* A thread that was created after the start. Its creator's counters count it, unless each has its own. */
static void meet_thread(struct countrun *r, int32_t pid, int32_t tid, bool is_counted)
{
	CLEANUP(err_release) struct err err = {0};
	bool is_new;
	struct countrun_task *t = task_of(r, pid, tid, &is_new);
	if (is_new && !is_counted) {
		if (!open_counters(r, t, &err))
			counter_fds_enable(&t->fds, r->set);
		else if (err.code != -ESRCH)
			r->nr_unopened++;
	}
}

static void meet_threads(struct countrun *r, int32_t pid, bool is_counted)
{
	CLEANUP(pid_list_release) struct pid_list tids = {0};
	if (proc_threads(&tids, pid, NULL))
		return;
	for (size_t i = 0; i < tids.pids.n; i++)
		meet_thread(r, pid, tids.pids.p[i], is_counted);
}

/* Processes that join the target's cgroup: those that a counted one forked are counted already. */
static void meet_joined(struct countrun *r)
{
	struct target *t = r->target;
	for (size_t i = target_list_joined(t); i < t->pids.pids.n; i++) {
		int32_t pid = t->pids.pids.p[i];
		int32_t parent;
		bool is_forked = !proc_parent(pid, &parent, NULL) && target_has_pid(t, parent);
		meet_threads(r, pid, is_forked && !(r->flags & COUNTRUN_THREADS));
	}
}

static void read_queue(struct countrun *r, struct countrun_task *t)
{
	uint64_t ran_ns;
	uint64_t queue_ns;
	if (t->has_ended || t->pid < 0)
		return;
	if (!read_schedstat(t->pid, t->tid, &ran_ns, &queue_ns)) {
		t->has_ended = true;
		return;
	}
	uint64_t more_ns = queue_ns - MIN(t->queue_ns, queue_ns);
	uint64_t ran_more_ns = ran_ns - MIN(t->ran_ns, ran_ns);
	r->part.has_queue = true;
	r->part.queue_ns += more_ns;
	r->part.ran_ns += ran_more_ns;
	t->new_queue_ns += more_ns;
	t->new_ran_ns += ran_more_ns;
	t->queue_ns = queue_ns;
	t->ran_ns = ran_ns;
	if (r->flags & COUNTRUN_THREADS)
		set_name(t);
}

void countrun_poll(struct countrun *r, bool is_last)
{
	uint64_t before_ns = clock_mono_ns();
	bool has_own = r->flags & COUNTRUN_THREADS;
	if (!is_last && before_ns < r->next_poll_ns)
		return;
	if (r->child)
		(void)target_family_grow(&r->family);
	for (size_t i = 0; i < r->family.pids.pids.n; i++)
		meet_threads(r, r->family.pids.pids.p[i], !has_own);
	if (r->target && r->target->groups.n)
		meet_joined(r);
	for (size_t i = 0; r->target && i < r->target->pids.pids.n; i++)
		meet_threads(r, r->target->pids.pids.p[i], !has_own);
	for (size_t i = 0; i < r->tasks.n; i++)
		read_queue(r, r->tasks.p[i]);
	uint64_t took_ns = clock_mono_ns() - before_ns;
	r->next_poll_ns = before_ns + MAX(POLL_SHARE * took_ns, POLL_LEAST_NS);
}

void countrun_read(struct countrun *r, struct countrun_part *ret)
{
	struct countrun_part *p = &r->part;
	uint64_t stolen_ns = host_steal_ns();
	for (size_t i = 0; i < r->tasks.n; i++) {
		struct countrun_task *t = r->tasks.p[i];
		memset(t->values, 0, sizeof(t->values));
		t->part_queue_ns = t->new_queue_ns;
		t->part_ran_ns = t->new_ran_ns;
		t->new_queue_ns = t->new_ran_ns = 0;
		if (!t->has_counters)
			continue;
		counter_fds_read(&t->fds, r->set, t->values);
		for (size_t k = 0; k < r->set->events.n; k++) {
			p->values[k].value += t->values[k].value;
			p->values[k].enabled_ns += t->values[k].enabled_ns;
			p->values[k].running_ns += t->values[k].running_ns;
		}
	}
	p->at_ns = p->at_ns ? p->at_ns : clock_mono_ns();
	p->elapsed_ns = p->at_ns - r->read_ns;
	p->stolen_ns = stolen_ns - r->stolen_ns;
	*ret = *p;
	*p = (struct countrun_part){0};
	r->read_ns = ret->at_ns;
	r->stolen_ns = stolen_ns;
}

/* ---- rows --------------------------------------------------------------------------------------- */

static struct counter_row event_row(const struct counter_set *set, size_t i,
				    const struct counter_value *v)
{
	const struct counter_event *e = &set->events.p[i];
	bool is_never = v->enabled_ns && !v->running_ns;
	return (struct counter_row){
		.name = e->name,
		.role = e->role,
		.state = set->state[i] ? set->state[i]
			 : is_never    ? COUNTER_NOT_COUNTED
				       : COUNTER_COUNTED,
		.is_time = e->is_time,
		.value = v->value,
		.spread_pct = NAN,
		.running_ns = v->running_ns,
		.running_pct =
			v->enabled_ns ? 100 * (double)v->running_ns / (double)v->enabled_ns : 100,
		.metric = NAN,
		.metric_unit = "",
	};
}

static struct counter_row own_row(const char *name, enum counter_role role, uint64_t ns,
				  uint64_t ran_ns)
{
	return (struct counter_row){.name = name,
				    .role = role,
				    .is_time = true,
				    .is_own = true,
				    .value = (double)ns,
				    .running_ns = ran_ns,
				    .spread_pct = NAN,
				    .running_pct = 100,
				    .metric = NAN,
				    .metric_unit = ""};
}

size_t countrun_rows(struct counter_row *ret, const struct counter_set *set,
		     const struct counter_value *values, uint64_t queue_ns, uint64_t ran_ns,
		     uint64_t stolen_ns)
{
	size_t n = 0;
	for (size_t i = 0; i < set->events.n; i++)
		ret[n++] = event_row(set, i, &values[i]);
	if (queue_ns != UINT64_MAX)
		ret[n++] = own_row("run-queue", COUNTER_RUN_QUEUE, queue_ns, ran_ns);
	if (stolen_ns != UINT64_MAX)
		ret[n++] = own_row("stolen", COUNTER_STOLEN, stolen_ns, 0);
	return n;
}
