/*
 * Off-CPU accounting without BPF; see switches.h.
 *
 *	sampler.c ── SAMPLE, SWITCH, FORK, EXIT, MAP ──> on_event ──> waitaccount.c ── rows ──> sink
 *	procpoll.c ── polls, held back until the events of their time are read ──┘
 *
 * A switch comes as two records of one thread and CPU: the sample of the switch event (registers,
 * stack), then PERF_RECORD_SWITCH. So the reason is known when the interval begins.
 */
#include "base/base.h"
#include "capture/wait/switches.h"

#include <errno.h>
#include <sys/syscall.h>

#include "arch.h"
#include "base/clock.h"
#include "base/mem.h"
#include "capture/bpf/copyref.h"
#include "capture/wait/procpoll.h"
#include "capture/perf/sampler.h"
#include "capture/wait/waitaccount.h"
#include "capture/wait/calls.h"
#include "capture/wait/waitsource.h"
#include "host/limits.h"
#include "host/privileges.h"
#include "host/proc.h"

#define RING_DELAY_NS  5000000u /* records older than this have been read from the rings */
#define SHORT_NS       (2 * PROCPOLL_PERIOD_NS)
#define POLL_CPU_SHARE 20 /* polls take at most 1/20 of a CPU */
#define COPY_MIN       (8u << 10)
#define COPY_MAX       (256u << 10)
#define LEARN_MAX      8 /* call sites looked up in /proc after each drain */

enum switches_level { SWITCHES_STACKS = 0, SWITCHES_TIMES = 1, SWITCHES_POLLED = 2 };

struct poll_result {
	int32_t pid;
	int32_t tid;
	uint64_t from_ns;
	uint64_t to_ns;
	struct wait_cause cause;
};

struct unknown_site {
	int32_t pid;
	int32_t tid;
	uint64_t ip;
	uint64_t caller;
};

struct switches {
	const struct target *target;
	enum switches_level level;
	bool has_sampler; /* another source delivers mappings, names, forks and exits */
	uint64_t nr_lost; /* records that the kernel dropped; counted as lost in the profile */
	struct sampler *sampler; /* NULL when polled */
	struct procpoll *poll;   /* NULL unless polled */
	struct waitaccount account;
	struct waitcalls calls;
	struct copyrefs refs;
	size_t nr_copy_bytes;
	uint64_t rows_end_ns; /* open intervals are split and rows delivered then */
	uint64_t stop_ns;     /* later events are not accounted */
	uint64_t next_poll_ns;
	VEC(struct poll_result) polls; /* in order of time */
	size_t nr_polls_applied;
	VEC(struct unknown_site) unknown_sites;
	bool is_started;
	const struct event_sink *sink; /* during a call */
};

static const struct {
	const char *accuracy;
	const char *remedy;
} levels[] = {
	[SWITCHES_STACKS] = {"times, counts and stacks of waits are exact; wakers and blame are "
			     "not recorded; wake-up latency is exact per thread and second, "
			     "estimated per wait",
			     "for wakers and blame run as root on a kernel with BPF"},
	[SWITCHES_TIMES] = {"times and counts on and off the CPU are exact; reasons of waits under "
			    "20 ms are estimated by polling /proc",
			    "for exact reasons and stacks run as root, or set "
			    "kernel.perf_event_paranoid to 1 or lower"},
	[SWITCHES_POLLED] = {"time on the CPU and in the run queue is exact; wait reasons are "
			     "estimated by polling /proc; the number of waits is the number of "
			     "times the thread was scheduled",
			     "for exact waits run as root, or allow perf events "
			     "(kernel.perf_event_paranoid 2 or lower, no seccomp filter)"},
};

/* ---- opening ------------------------------------------------------------------------------ */

static int open_sampler(struct switches *s, unsigned flags, struct err *err)
{
	struct sampler_spec spec = {.target = s->target,
				    .flags = flags | PERFOPEN_SWITCHES,
				    .ring_bytes = host_ring_share(),
				    .prog_fd = -1};
	return sampler_open(&s->sampler, &spec, err);
}

static void switches_free(void *self)
{
	struct switches *s = self;
	sampler_free(s->sampler);
	procpoll_free(s->poll);
	waitaccount_release(&s->account);
	waitcalls_release(&s->calls);
	copyrefs_release(&s->refs);
	vec_release(&s->polls);
	vec_release(&s->unknown_sites);
	free(s);
}

static int switches_open(void **ret_s, const struct source_env *env, struct err *err)
{
	struct switches *s = xcalloc(1, sizeof(*s));
	CLEANUP(err_release) struct err refusal = {0};
	s->target = env->target;
	s->has_sampler = env->has_sampler;
	s->nr_copy_bytes = COPY_MIN;
	s->level = SWITCHES_STACKS;
	int rc = open_sampler(s, 0, &refusal);
	if (rc && rc != -ESRCH) {
		err_release(&refusal);
		s->level = SWITCHES_TIMES;
		rc = open_sampler(s, PERFOPEN_SIDEBAND, &refusal);
	}
	if (rc == -ESRCH) {
		switches_free(s);
		return err_move(err, &refusal);
	}
	if (rc) {
		s->poll = procpoll_new(s->target);
		s->level = SWITCHES_POLLED;
	}
	*ret_s = s;
	return 0;
}

/* ---- end of a second ---------------------------------------------------------------------- */

/* Run queue time by schedstat that is in no row yet passed after wake-ups: distributes it. */
static void distribute_queue(struct switches *s, struct waitaccount_thread *t)
{
	struct procpoll_schedstat sums;
	if (t->state == THREAD_EXITED || procpoll_schedstat(t->pid, t->tid, &sums))
		return;
	uint64_t total_ns = sums.queue_ns - MIN(t->queue_schedstat_ns, sums.queue_ns);
	bool is_first = t->queue_schedstat_ns == UINT64_MAX;
	uint64_t seen_ns = t->queue_accounted_ns;
	t->queue_schedstat_ns = sums.queue_ns;
	t->queue_accounted_ns = 0;
	if (!is_first && total_ns > seen_ns)
		waitaccount_distribute_queue(&s->account, t, total_ns - seen_ns);
	t->queue_accounted_ns = 0; /* what was just distributed is in schedstat already */
}

/* Delivers the rows after waitaccount_end_slice or waitaccount_finish. */
static int flush(struct switches *s, struct err *err)
{
	for (size_t i = 0; s->sampler && i < s->account.threads.n; i++)
		distribute_queue(s, &s->account.threads.p[i]);
	waitcalls_forget_files(&s->calls);
	return waitaccount_flush(&s->account, s->sink, err);
}

/* ---- polls -------------------------------------------------------------------------------- */

static struct procpoll_env poll_env(struct switches *s)
{
	return (struct procpoll_env){&s->account, &s->calls, &s->refs, s->sink, s->nr_copy_bytes};
}

static void apply_polls(struct switches *s, uint64_t time_ns)
{
	for (; s->nr_polls_applied < s->polls.n; s->nr_polls_applied++) {
		const struct poll_result *l = &s->polls.p[s->nr_polls_applied];
		if (l->to_ns > time_ns)
			return;
		struct waitaccount_thread *t = waitaccount_find(&s->account, l->tid);
		if (t)
			waitaccount_add_poll(&s->account, t, l->from_ns, l->to_ns, &l->cause);
	}
	vec_clear(&s->polls);
	s->nr_polls_applied = 0;
}

static int flush_until(struct switches *s, uint64_t time_ns, struct err *err)
{
	for (; s->rows_end_ns <= time_ns; s->rows_end_ns += SOURCE_ROWS_NS) {
		apply_polls(s,
			    s->rows_end_ns); /* all that is known of a thread without any event */
		waitaccount_end_slice(&s->account, s->rows_end_ns);
		TRY(flush(s, err));
	}
	return 0;
}

static int poll_thread(struct switches *s, const struct waitaccount_thread *t, struct err *err)
{
	struct procpoll_env to = poll_env(s);
	struct poll_result l = {.pid = t->pid, .tid = t->tid, .from_ns = clock_mono_ns()};
	int rc = procpoll_thread(&to, l.pid, l.tid, &l.cause, err);
	if (err && err->code)
		return err->code;
	l.to_ns = clock_mono_ns();
	if (!rc)
		vec_push(&s->polls, l);
	return 0;
}

/* Polls all threads but those in a long wait whose cause is known. */
static int poll_threads(struct switches *s, struct err *err)
{
	uint64_t now = clock_mono_ns();
	if (now < s->next_poll_ns)
		return 0;
	for (size_t i = 0; i < s->account.threads.n; i++) {
		const struct waitaccount_thread *t = &s->account.threads.p[i];
		bool is_long = t->has_cause && now - t->start_ns > SHORT_NS;
		if (t->state == THREAD_EXITED || is_long)
			continue; /* others are polled: their state here is some ms old */
		TRY(poll_thread(s, t, err));
	}
	uint64_t took_ns = clock_mono_ns() - now;
	s->next_poll_ns = now + MAX(took_ns * POLL_CPU_SHARE, (uint64_t)PROCPOLL_PERIOD_NS);
	return 0;
}

/* Reads the numbers of calls through syscall(2) from /proc, if their threads still wait in them. */
static void learn_sites(struct switches *s)
{
	for (size_t i = 0; i < s->unknown_sites.n && i < LEARN_MAX; i++) {
		const struct unknown_site *u = &s->unknown_sites.p[s->unknown_sites.n - 1 - i];
		struct call call;
		if (!procpoll_call(u->pid, u->tid, &call) && call.ip == u->ip)
			waitcalls_learn(&s->calls, u->pid, &call, u->caller);
	}
	vec_clear(&s->unknown_sites);
}

/* ---- events ------------------------------------------------------------------------------- */

static int on_sample(struct switches *s, const struct event *ev, struct err *err)
{
	const struct event_sample *sample = &ev->sample;
	if (!sample->regs || sample->is_compat)
		return 0;
	uint64_t caller = 0;
	if (sample->nr_stack >= sizeof(caller))
		memcpy(&caller, sample->stack, sizeof(caller));
	struct call call = waitcalls_from_regs(&s->calls, ev->pid, sample->regs, caller);
	if (call.nr == CALL_UNKNOWN && s->unknown_sites.n < 1000)
		vec_push(&s->unknown_sites,
			 (struct unknown_site){ev->pid, ev->tid, call.ip, caller});
	struct wait_cause cause = {0};
	waitcalls_cause(&s->calls, &s->account.objects, ev->pid, &call, &cause);
	int rc = copyrefs_emit(&s->refs, ev, sample->regs, sample->stack, sample->nr_stack, s->sink,
			       &cause.ref, err);
	struct waitaccount_thread *t =
		waitaccount_thread(&s->account, ev->pid, ev->tid, ev->time_ns);
	t->cause = cause;
	t->has_cause = true;
	if (t->state == THREAD_STATE_UNKNOWN)
		t->state = THREAD_ON_CPU; /* it ran until this switch */
	return rc;
}

static void on_switch(struct switches *s, const struct event *ev)
{
	if (ev->tid <= 0)
		return;
	struct waitaccount_thread *t =
		waitaccount_thread(&s->account, ev->pid, ev->tid, ev->time_ns);
	if (!ev->sw.is_out) {
		waitaccount_switch_in(&s->account, t, ev->time_ns);
		return;
	}
	struct wait_cause cause = t->cause;
	bool has_cause = t->has_cause && t->state == THREAD_ON_CPU;
	enum offcpu_kind kind = OFFCPU_WAIT;
	if (ev->sw.is_preempt)
		kind = has_cause && cause.syscall == SYS_sched_yield ? OFFCPU_YIELDED
								     : OFFCPU_PREEMPTED;
	if (!has_cause)
		cause = (struct wait_cause){.reason = WAIT_UNKNOWN, .syscall = -1};
	waitaccount_switch_out(&s->account, t, ev->time_ns, kind,
			       has_cause || kind != OFFCPU_WAIT ? &cause : NULL);
}

/* A new thread is runnable: it is on the run queue until it is first switched in. */
static void on_fork(struct switches *s, const struct event *ev)
{
	struct waitaccount_thread *t = waitaccount_find(&s->account, ev->tid);
	if (t)
		waitaccount_exit(&s->account, t, ev->time_ns);
	t = waitaccount_thread(&s->account, ev->pid, ev->tid, ev->time_ns);
	t->state = THREAD_OFF_CPU;
	t->kind = OFFCPU_WOKEN;
	t->cause = (struct wait_cause){.reason = WAIT_RUN_QUEUE, .syscall = -1};
	t->queue_schedstat_ns = 0;
}

static void account_event(struct switches *s, const struct event *ev)
{
	struct waitaccount_thread *t;
	switch (ev->kind) {
	case EVENT_FORK:
		on_fork(s, ev);
		break;
	case EVENT_EXIT:
		t = waitaccount_find(&s->account, ev->tid);
		if (t)
			waitaccount_exit(&s->account, t, ev->time_ns);
		break;
	case EVENT_COMM: /* an existing thread, or the exec of a launched command */
		(void)waitaccount_thread(&s->account, ev->pid, ev->tid, ev->time_ns);
		break;
	case EVENT_SWITCH:
		on_switch(s, ev);
		break;
	case EVENT_LOST:
		s->nr_lost += ev->lost.nr;
		break;
	default:
		break;
	}
}

static int on_event(void *ctx, const struct event *ev, struct err *err)
{
	struct switches *s = ctx;
	copyrefs_apply(&s->refs, ev);
	if (ev->time_ns <= s->stop_ns) {
		apply_polls(s, ev->time_ns);
		TRY(flush_until(s, ev->time_ns, err));
		TRY(ev->kind == EVENT_SAMPLE ? on_sample(s, ev, err) : 0);
		account_event(s, ev);
	}
	bool is_ours = ev->kind == EVENT_SAMPLE || ev->kind == EVENT_SWITCH;
	if (is_ours || (s->has_sampler && ev->kind != EVENT_LOST))
		return 0;
	return s->sink->event(s->sink->ctx, ev, err);
}

/* ---- start, drain, stop ------------------------------------------------------------------- */

/*
 * A thread without an event was on the CPU all the time or waits all the time. If it may not be polled
 * (/proc/PID/syscall needs the right to trace it), its state shows which.
 */
static void mark_blocked(const struct switches *s, struct waitaccount_thread *t)
{
	struct proc_task task;
	vec_foreach(l, &s->polls)
		if (l->tid == t->tid)
			return;
	if (t->state != THREAD_STATE_UNKNOWN || proc_task(t->pid, t->tid, &task) ||
	    task.state == 'R')
		return;
	t->state = THREAD_OFF_CPU;
	t->kind = OFFCPU_WAIT;
}

/* Begins the accounting with the threads that exist. */
static int switches_start(void *self, const struct source_env *env, const struct event_sink *sink,
			  struct err *err)
{
	struct switches *s = self;
	struct event_sink ours = {on_event, s};
	s->sink = sink;
	s->stop_ns = UINT64_MAX;
	s->rows_end_ns = env->start_ns + SOURCE_ROWS_NS;
	waitaccount_init(&s->account, env->start_ns, SHORT_NS);
	s->is_started = true;
	if (!s->sampler)
		return 0;
	TRY(sampler_start(s->sampler, &ours, err));
	vec_foreach(t, &s->account.threads) {
		struct procpoll_schedstat sums;
		if (!procpoll_schedstat(t->pid, t->tid, &sums))
			t->queue_schedstat_ns = sums.queue_ns;
	}
	TRY(poll_threads(s, err));
	vec_foreach(l, &s->polls)
		l->cause.evidence |= EVIDENCE_AT_START;
	vec_foreach(t, &s->account.threads)
		mark_blocked(s, t);
	return 0;
}

static const int *switches_fds(const void *self, size_t *ret_nr)
{
	const struct switches *s = self;
	*ret_nr = 0;
	return s->sampler ? sampler_fds(s->sampler, ret_nr) : NULL;
}

static unsigned switches_poll_timeout(const void *self)
{
	const struct switches *s = self;
	return s->level == SWITCHES_STACKS ? 20 : 10;
}

static int poll_round(struct switches *s, struct err *err)
{
	uint64_t now = clock_mono_ns();
	int rc = flush_until(s, now, err);
	if (rc || now < s->next_poll_ns)
		return rc;
	struct procpoll_env to = poll_env(s);
	rc = procpoll_round(s->poll, &to, err);
	uint64_t took_ns = clock_mono_ns() - now;
	s->next_poll_ns = now + MAX(took_ns * POLL_CPU_SHARE, (uint64_t)PROCPOLL_PERIOD_NS);
	return rc;
}

static int switches_drain(void *self, const struct event_sink *sink, struct err *err)
{
	struct switches *s = self;
	struct event_sink ours = {on_event, s};
	s->sink = sink;
	if (!s->sampler)
		return poll_round(s, err);
	uint64_t now = clock_mono_ns();
	TRY(sampler_drain(s->sampler, &ours, err));
	TRY(flush_until(s, now - RING_DELAY_NS, err));
	TRY(s->level == SWITCHES_TIMES ? poll_threads(s, err) : 0);
	learn_sites(s);
	return 0;
}

/* Ends the accounting: adds open intervals up to now. */
static int switches_stop(void *self, const struct event_sink *sink, struct err *err)
{
	struct switches *s = self;
	struct event_sink ours = {on_event, s};
	s->sink = sink;
	if (!s->is_started)
		return 0;
	s->is_started = false;
	s->next_poll_ns = 0;
	TRY(s->poll ? poll_round(s, err) : 0);
	s->stop_ns = clock_mono_ns();
	TRY(s->sampler ? sampler_stop(s->sampler, &ours, err) : 0);
	apply_polls(s, s->stop_ns);
	TRY(flush_until(s, s->stop_ns, err));
	if (s->poll) {
		struct procpoll_env to = poll_env(s);
		procpoll_finish(s->poll, &to);
	}
	waitaccount_finish(&s->account, s->stop_ns);
	return flush(s, err);
}

static void switches_grow(void *self, int32_t tid, uint64_t nr_bytes)
{
	struct switches *s = self;
	if (s->level == SWITCHES_STACKS)
		sampler_grow(s->sampler, tid, nr_bytes);
	else if (nr_bytes >= s->nr_copy_bytes && s->nr_copy_bytes < COPY_MAX)
		s->nr_copy_bytes *= 4;
}

static uint64_t switches_reach_ns(const void *self)
{
	const struct switches *s = self;
	return s->rows_end_ns ? s->rows_end_ns - SOURCE_ROWS_NS : 0;
}

static void switches_facts(const void *self, struct profile *p)
{
	const struct switches *s = self;
	profile_fact(p, FACT_ACCURACY,
		     s->nr_lost ? "switch records were lost (see losses): counts are too low and "
				  "intervals next to lost records too long; total times are right"
				: levels[s->level].accuracy);
	profile_fact(p, FACT_REMEDY,
		     s->nr_lost ? "only BPF can record this many switches: run as root on a "
				  "kernel with BPF"
				: levels[s->level].remedy);
}

const struct source switches_source = {
	.name = "switches",
	.fills = WAIT_TABLES & ~TABLE_SET(INTERVALS),
	.is_fallback = true,
	/* /proc/PID/task/TID/syscall; events are reopened for larger stack copies */
	.late_caps = HOST_CAP_BIT(CAP_SYS_PTRACE) | HOST_CAP_BIT(HOST_CAP_PERFMON),
	.open = switches_open,
	.start = switches_start,
	.drain = switches_drain,
	.stop = switches_stop,
	.facts = switches_facts,
	.reach_ns = switches_reach_ns,
	.fds = switches_fds,
	.poll_timeout = switches_poll_timeout,
	.enlarge_copies = switches_grow,
	.free = switches_free,
};
