/*
 * The ledger without BPF programs; see switches.h.
 *
 *	sampler.c ── SAMPLE, SWITCH, FORK, EXIT, MAP ──> on_event ──> waitaccount.c ── rows ──> sink
 *	procpoll.c ── looks, kept until the stream has come to their time ──┘
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

#define SETTLE_NS  5000000u /* more than records stay in the sampler's rings */
#define SHORT_NS   (2 * PROCPOLL_PERIOD_NS)
#define LOOK_SHARE 20 /* looking takes at most one part in so many of a CPU */
#define COPY_MIN   (8u << 10)
#define COPY_MAX   (256u << 10)
#define LEARN_MAX  8 /* call sites asked for after each drain */

enum switches_level { SWITCHES_STACKS = 0, SWITCHES_TIMES = 1, SWITCHES_POLLED = 2 };

struct look_note {
	int32_t pid;
	int32_t tid;
	uint64_t from_ns;
	uint64_t to_ns;
	struct why why;
};

struct unlearned {
	int32_t pid;
	int32_t tid;
	uint64_t ip;
	uint64_t caller;
};

struct switches {
	const struct target *target;
	enum switches_level level;
	bool is_side;     /* others deliver mappings, names, births and ends */
	uint64_t nr_lost; /* records that the kernel dropped; counted as lost in the profile */
	struct sampler *sampler; /* NULL when polled */
	struct procpoll *poll;   /* NULL unless polled */
	struct account account;
	struct waitcalls calls;
	struct copyrefs refs;
	size_t nr_copy;
	uint64_t border_ns; /* end of the second in hand */
	uint64_t stop_ns;   /* events after it are not booked */
	uint64_t next_look_ns;
	VEC(struct look_note) looks; /* by time */
	size_t nr_looks_taken;
	VEC(struct unlearned) unlearned;
	bool is_started;
	const struct event_sink *sink; /* during a call */
};

static const struct {
	const char *accuracy;
	const char *remedy;
} levels[] = {
	[SWITCHES_STACKS] = {"times, counts and stacks of waits are exact; there are no wakers and "
			     "no blame, and the run queue after a wake is a share of the thread's "
			     "sum",
			     "for wakers and blame run as root on a kernel with BPF"},
	[SWITCHES_TIMES] = {"times and counts on and off the CPU are exact; what waits under 20 ms "
			    "were for is estimated from looks at /proc",
			    "for exact reasons and stacks run as root, or set "
			    "kernel.perf_event_paranoid to 1 or lower"},
	[SWITCHES_POLLED] = {"time on the CPU and in the run queue is exact; what waits were for "
			     "is estimated from looks at /proc, their number is that of the "
			     "thread's runs",
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
	vec_release(&s->looks);
	vec_release(&s->unlearned);
	free(s);
}

static int switches_open(void **ret_s, const struct source_env *env, struct err *err)
{
	struct switches *s = xcalloc(1, sizeof(*s));
	CLEANUP(err_release) struct err refusal = {0};
	s->target = env->target;
	s->is_side = env->has_sampler;
	s->nr_copy = COPY_MIN;
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

/* ---- borders ------------------------------------------------------------------------------ */

/* The scheduler's sum of this thread against what is booked: the rest is the queue after wakes. */
static void share_queue(struct switches *s, struct waitaccount_thread *t)
{
	struct procpoll_sums sums;
	if (t->state == THREAD_GONE || procpoll_sums(t->pid, t->tid, &sums))
		return;
	uint64_t total_ns = sums.queue_ns - MIN(t->queue_total_ns, sums.queue_ns);
	bool is_first = t->queue_total_ns == UINT64_MAX;
	uint64_t seen_ns = t->queue_seen_ns;
	t->queue_total_ns = sums.queue_ns;
	t->queue_seen_ns = 0;
	if (!is_first && total_ns > seen_ns)
		waitaccount_share_queue(&s->account, t, total_ns - seen_ns);
	t->queue_seen_ns = 0; /* what was just shared out is in the sum already */
}

static int flush(struct switches *s, uint64_t time_ns, bool is_end, struct err *err)
{
	waitaccount_cut(&s->account, time_ns, is_end);
	for (size_t i = 0; s->sampler && i < s->account.threads.n; i++)
		share_queue(s, &s->account.threads.p[i]);
	waitcalls_forget_files(&s->calls);
	return waitaccount_flush(&s->account, s->sink, err);
}

static int flush_until(struct switches *s, uint64_t time_ns, struct err *err)
{
	for (; s->border_ns <= time_ns; s->border_ns += NS_PER_SEC)
		TRY(flush(s, s->border_ns, false, err));
	return 0;
}

/* ---- looks -------------------------------------------------------------------------------- */

static struct procpoll_to looking(struct switches *s)
{
	return (struct procpoll_to){&s->account, &s->calls, &s->refs, s->sink, s->nr_copy};
}

static void take_looks(struct switches *s, uint64_t time_ns)
{
	for (; s->nr_looks_taken < s->looks.n; s->nr_looks_taken++) {
		const struct look_note *l = &s->looks.p[s->nr_looks_taken];
		if (l->to_ns > time_ns)
			return;
		struct waitaccount_thread *t = waitaccount_find(&s->account, l->tid);
		if (t)
			waitaccount_look(&s->account, t, l->from_ns, l->to_ns, &l->why);
	}
	vec_clear(&s->looks);
	s->nr_looks_taken = 0;
}

static int look_at(struct switches *s, const struct waitaccount_thread *t, struct err *err)
{
	struct procpoll_to to = looking(s);
	struct look_note l = {.pid = t->pid, .tid = t->tid, .from_ns = clock_mono_ns()};
	int rc = procpoll_look(&to, l.pid, l.tid, &l.why, err);
	if (err && err->code)
		return err->code;
	l.to_ns = clock_mono_ns();
	if (!rc)
		vec_push(&s->looks, l);
	return 0;
}

/* All threads but those of which nothing new is to be seen. */
static int look_around(struct switches *s, struct err *err)
{
	uint64_t now = clock_mono_ns();
	if (now < s->next_look_ns)
		return 0;
	for (size_t i = 0; i < s->account.threads.n; i++) {
		const struct waitaccount_thread *t = &s->account.threads.p[i];
		bool is_long = t->has_why && now - t->began_ns > SHORT_NS;
		if (t->state == THREAD_GONE || is_long)
			continue; /* else as it comes: what the book says is some ms old */
		TRY(look_at(s, t, err));
	}
	uint64_t took_ns = clock_mono_ns() - now;
	s->next_look_ns = now + MAX(took_ns * LOOK_SHARE, (uint64_t)PROCPOLL_PERIOD_NS);
	return 0;
}

/* A call through syscall(2) while its thread still waits in it: /proc knows the number. */
static void learn_sites(struct switches *s)
{
	for (size_t i = 0; i < s->unlearned.n && i < LEARN_MAX; i++) {
		const struct unlearned *u = &s->unlearned.p[s->unlearned.n - 1 - i];
		struct call call;
		if (!procpoll_call(u->pid, u->tid, &call) && call.ip == u->ip)
			waitcalls_learn(&s->calls, u->pid, &call, u->caller);
	}
	vec_clear(&s->unlearned);
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
	if (call.nr == CALL_UNKNOWN && s->unlearned.n < 1000)
		vec_push(&s->unlearned, (struct unlearned){ev->pid, ev->tid, call.ip, caller});
	struct why why = {0};
	waitcalls_why(&s->calls, &s->account.objects, ev->pid, &call, &why);
	int rc = copyrefs_emit(&s->refs, ev, sample->regs, sample->stack, sample->nr_stack, s->sink,
			       &why.ref, err);
	struct waitaccount_thread *t =
		waitaccount_thread(&s->account, ev->pid, ev->tid, ev->time_ns);
	t->why = why;
	t->has_why = true;
	if (t->state == THREAD_UNSURE)
		t->state = THREAD_ON; /* it was running to here */
	return rc;
}

static void on_switch(struct switches *s, const struct event *ev)
{
	if (ev->tid <= 0)
		return;
	struct waitaccount_thread *t =
		waitaccount_thread(&s->account, ev->pid, ev->tid, ev->time_ns);
	if (!ev->sw.is_out) {
		waitaccount_on(&s->account, t, ev->time_ns);
		return;
	}
	struct why why = t->why;
	bool has_why = t->has_why && t->state == THREAD_ON;
	enum waitaccount_how how = WAITACCOUNT_WAIT;
	if (ev->sw.is_preempt)
		how = has_why && why.syscall == SYS_sched_yield ? WAITACCOUNT_YIELDED
								: WAITACCOUNT_PREEMPTED;
	if (!has_why)
		why = (struct why){.reason = WAIT_UNKNOWN, .syscall = -1};
	waitaccount_off(&s->account, t, ev->time_ns, how,
			has_why || how != WAITACCOUNT_WAIT ? &why : NULL);
}

/* A thread is born runnable: it waits for its first turn. */
static void on_birth(struct switches *s, const struct event *ev)
{
	struct waitaccount_thread *t = waitaccount_find(&s->account, ev->tid);
	if (t)
		waitaccount_gone(&s->account, t, ev->time_ns);
	t = waitaccount_thread(&s->account, ev->pid, ev->tid, ev->time_ns);
	t->state = THREAD_OFF;
	t->how = WAITACCOUNT_WOKEN;
	t->why = (struct why){.reason = WAIT_RUN_QUEUE, .syscall = -1};
	t->queue_total_ns = 0;
}

static void note(struct switches *s, const struct event *ev)
{
	struct waitaccount_thread *t;
	switch (ev->kind) {
	case EVENT_FORK:
		on_birth(s, ev);
		break;
	case EVENT_EXIT:
		t = waitaccount_find(&s->account, ev->tid);
		if (t)
			waitaccount_gone(&s->account, t, ev->time_ns);
		break;
	case EVENT_COMM: /* of a thread that was there before, or of a command that begins */
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
	copyrefs_note(&s->refs, ev);
	if (ev->time_ns <= s->stop_ns) {
		take_looks(s, ev->time_ns);
		TRY(flush_until(s, ev->time_ns, err));
		TRY(ev->kind == EVENT_SAMPLE ? on_sample(s, ev, err) : 0);
		note(s, ev);
	}
	bool is_ours = ev->kind == EVENT_SAMPLE || ev->kind == EVENT_SWITCH;
	if (is_ours || (s->is_side && ev->kind != EVENT_LOST))
		return 0;
	return s->sink->event(s->sink->ctx, ev, err);
}

/* ---- the life of a capture ---------------------------------------------------------------- */

/* Begins the ledger, feeds what was there before. */
static int switches_start(void *self, const struct source_env *env, const struct event_sink *sink,
			  struct err *err)
{
	struct switches *s = self;
	struct event_sink ours = {on_event, s};
	s->sink = sink;
	s->stop_ns = UINT64_MAX;
	s->border_ns = env->start_ns + NS_PER_SEC;
	waitaccount_init(&s->account, env->start_ns, SHORT_NS);
	s->is_started = true;
	if (!s->sampler)
		return 0;
	TRY(sampler_start(s->sampler, &ours, err));
	vec_foreach(t, &s->account.threads) {
		struct procpoll_sums sums;
		if (!procpoll_sums(t->pid, t->tid, &sums))
			t->queue_total_ns = sums.queue_ns;
	}
	TRY(look_around(s, err));
	vec_foreach(l, &s->looks)
		l->why.evidence |= EVIDENCE_AT_START;
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
	if (rc || now < s->next_look_ns)
		return rc;
	struct procpoll_to to = looking(s);
	rc = procpoll_round(s->poll, &to, err);
	uint64_t took_ns = clock_mono_ns() - now;
	s->next_look_ns = now + MAX(took_ns * LOOK_SHARE, (uint64_t)PROCPOLL_PERIOD_NS);
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
	TRY(flush_until(s, now - SETTLE_NS, err));
	TRY(s->level == SWITCHES_TIMES ? look_around(s, err) : 0);
	learn_sites(s);
	return 0;
}

/* Ends the ledger: open intervals are booked up to now. */
static int switches_stop(void *self, const struct event_sink *sink, struct err *err)
{
	struct switches *s = self;
	struct event_sink ours = {on_event, s};
	s->sink = sink;
	if (!s->is_started)
		return 0;
	s->is_started = false;
	s->next_look_ns = 0;
	TRY(s->poll ? poll_round(s, err) : 0);
	s->stop_ns = clock_mono_ns();
	TRY(s->sampler ? sampler_stop(s->sampler, &ours, err) : 0);
	take_looks(s, s->stop_ns);
	TRY(flush_until(s, s->stop_ns, err));
	return flush(s, s->stop_ns, true, err);
}

static void switches_grow(void *self, int32_t tid, uint64_t nr_bytes)
{
	struct switches *s = self;
	if (s->level == SWITCHES_STACKS)
		sampler_grow(s->sampler, tid, nr_bytes);
	else if (nr_bytes >= s->nr_copy && s->nr_copy < COPY_MAX)
		s->nr_copy *= 4;
}

static void switches_facts(const void *self, struct profile *p)
{
	const struct switches *s = self;
	profile_fact(p, FACT_ACCURACY,
		     s->nr_lost
			     ? "records of switches were lost (see there): counts are too small, "
			       "and intervals beside lost records too long; the sums hold"
			     : levels[s->level].accuracy);
	profile_fact(p, FACT_REMEDY,
		     s->nr_lost ? "so many switches can only be followed by BPF programs: "
				  "run as root on a kernel with BPF"
				: levels[s->level].remedy);
}

const struct source switches_source = {
	.name = "switches",
	.fills = WAIT_TABLES,
	.is_fallback = true,
	.open = switches_open,
	.start = switches_start,
	.drain = switches_drain,
	.stop = switches_stop,
	.facts = switches_facts,
	.fds = switches_fds,
	.poll_timeout = switches_poll_timeout,
	.grow = switches_grow,
	.free = switches_free,
};
