/* Threads looked at and stopped; see quiesce.h. */
#ifdef __x86_64__ /* others: remote_none.c */
#include "base/base.h"
#include "remote/patch/quiesce.h"

#include <errno.h>
#include <sys/ptrace.h>
#include <time.h>

#include "base/clock.h"
#include "base/vec.h"
#include "remote/ptrace/tracee.h"
#include "host/proc.h"
#include "host/boost.h"

#define TRIES    50u
#define PASSES   10u
#define LIMIT_NS (10 * NS_PER_SEC) /* ptrace cannot take back a request to stop */

/* ---- one after the other -------------------------------------------------------------------- */

enum seen { SEEN_OUTSIDE, SEEN_INSIDE, SEEN_RUNNING };

static enum seen look(int32_t pid, int32_t tid, const struct heap_ranges *ranges)
{
	struct proc_wait w;
	int rc = proc_wait(pid, tid, &w);
	if (rc)
		return rc == -ENOENT || rc == -ESRCH ? SEEN_OUTSIDE : SEEN_RUNNING;
	return heap_ranges_have(ranges, w.pc) ? SEEN_INSIDE : SEEN_OUTSIDE;
}

static enum seen stop_and_look(int32_t pid, int32_t tid, const struct heap_ranges *ranges,
			       uint64_t *longest_ns, struct err *err)
{
	struct user_regs_struct regs;
	struct host_boost boost;
	bool was_traced = false;
	int rc = tracee_acquire(pid, tid, 0, &was_traced, err);
	if (rc)
		return rc == -ESRCH ? SEEN_OUTSIDE : SEEN_RUNNING;
	bool is_child = tid == pid && tracee_is_child(pid);
	host_boost_begin(&boost);
	host_boost_thread(&boost, tid);
	uint64_t begin_ns = clock_mono_ns();
	rc = tracee_interrupt(tid, is_child, begin_ns + 10 * NS_PER_SEC, &regs);
	if (!rc)
		tracee_release(tid, was_traced);
	uint64_t stood_ns = clock_mono_ns() - begin_ns;
	host_boost_end(&boost);
	if (rc)
		return rc == -ESRCH ? SEEN_OUTSIDE : SEEN_RUNNING;
	*longest_ns = MAX(*longest_ns, stood_ns);
	return heap_ranges_have(ranges, regs.rip) ? SEEN_INSIDE : SEEN_OUTSIDE;
}

int quiesce_threads(int32_t pid, const struct heap_ranges *ranges, uint64_t deadline_ns,
		    uint64_t *ret_longest_ns, struct err *err)
{
	CLEANUP(pid_list_release) struct pid_list tids = {0};
	int rc = proc_threads(&tids, pid, err);
	if (rc)
		return rc == -ENOENT ? -ESRCH : rc;
	/* Threads that are born later were never there. */
	for (size_t i = 0; i < tids.pids.n; i++) {
		int32_t tid = tids.pids.p[i];
		for (unsigned turn = 0;; turn++) {
			enum seen s = look(pid, tid, ranges);
			if (s == SEEN_RUNNING && turn > 1) /* it may be about to wait */
				s = stop_and_look(pid, tid, ranges, ret_longest_ns, err);
			if (s == SEEN_OUTSIDE)
				break;
			if (clock_mono_ns() > deadline_ns)
				return err_set(err, -EBUSY,
					       "thread %d of pid %d does not leave the recorder",
					       tid, pid);
			(void)nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
		}
	}
	return 0;
}

/* ---- all at once ---------------------------------------------------------------------------- */

struct stopped {
	int32_t tid;
	bool was_traced;
	bool is_stopped;
	uint64_t pc;
};

struct stopped_list {
	VEC(struct stopped) v;
};

static void let_all_go(struct stopped_list *l)
{
	vec_foreach(t, &l->v)
		if (t->is_stopped)
			tracee_release(t->tid, t->was_traced);
	vec_release(&l->v);
}

static bool is_known(const struct stopped_list *l, int32_t tid)
{
	vec_foreach(t, &l->v)
		if (t->tid == tid)
			return true;
	return false;
}

/* Traced from now on, but not stopped: that takes no time of theirs. */
static int take_new(int32_t pid, struct stopped_list *l, struct err *err)
{
	CLEANUP(pid_list_release) struct pid_list tids = {0};
	TRY(proc_threads(&tids, pid, err));
	vec_foreach(tid, &tids.pids) {
		struct stopped t = {.tid = *tid};
		struct proc_task f;
		if (is_known(l, t.tid) || proc_task(pid, t.tid, &f) ||
		    (f.state != 'R' && f.state != 'S'))
			continue;
		int rc = tracee_acquire(pid, t.tid, 0, &t.was_traced, err);
		if (!rc)
			vec_push(&l->v, t);
		else if (rc != -ESRCH)
			return rc;
	}
	return 0;
}

/* Threads from @first on: all are asked at once, then each is waited for. */
static void stop_from(int32_t pid, struct stopped_list *l, size_t first)
{
	bool is_child = tracee_is_child(pid);
	for (size_t i = first; i < l->v.n; i++)
		(void)ptrace(PTRACE_INTERRUPT, l->v.p[i].tid, 0, 0);
	for (size_t i = first; i < l->v.n; i++) {
		struct stopped *t = &l->v.p[i];
		struct user_regs_struct regs;
		if (tracee_interrupt(t->tid, is_child && t->tid == pid, clock_mono_ns() + LIMIT_NS,
				     &regs))
			continue;
		t->is_stopped = true;
		t->pc = regs.rip;
	}
}

static bool is_any_within(const struct stopped_list *l, const struct heap_ranges *ranges)
{
	vec_foreach(t, &l->v)
		if (t->is_stopped && heap_ranges_have(ranges, t->pc))
			return true;
	return false;
}

int heapstop_all(int32_t pid, const struct heap_ranges *ranges,
		 int (*change)(void *ctx, struct err *err), void *ctx, uint64_t *ret_longest_ns,
		 struct err *err)
{
	for (unsigned turn = 0; turn < TRIES; turn++) {
		struct stopped_list l = {0};
		struct host_boost boost;
		int rc = take_new(pid, &l, err);
		size_t nr_seen = 0;
		host_boost_begin(&boost);
		uint64_t begin_ns = clock_mono_ns();
		for (unsigned pass = 0; !rc && nr_seen < l.v.n && pass < PASSES; pass++) {
			stop_from(pid, &l, nr_seen);
			nr_seen = l.v.n;
			rc = take_new(pid, &l, err); /* who was born meanwhile */
		}
		size_t nr_new = l.v.n - nr_seen;
		bool is_free = !rc && !nr_new && !is_any_within(&l, ranges);
		if (is_free)
			rc = change(ctx, err);
		else
			stop_from(pid, &l, nr_seen); /* only one that stands can be let go */
		let_all_go(&l);
		host_boost_end(&boost);
		*ret_longest_ns = MAX(*ret_longest_ns, clock_mono_ns() - begin_ns);
		if (rc || is_free)
			return rc;
		(void)nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
	}
	return err_set(err, -EBUSY, "threads of pid %d never leave what is to be changed", pid);
}

#endif
