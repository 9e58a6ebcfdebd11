/* Checks and stops threads; see quiesce.h. */
#ifdef __x86_64__ /* others: remote_none.c */
#include "base/base.h"
#include "remote/patch/quiesce.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/vec.h"
#include "remote/patch/heapspace.h"
#include "remote/ptrace/tracee.h"
#include "host/proc.h"
#include "host/boost.h"

#define TRIES_MAX        50u
#define SEIZE_ROUNDS_MAX 10u
#define STACK_MAX        ((size_t)1 << 20) /* more of a stack is not searched */
#define STOP_TIMEOUT_NS  (10 * NS_PER_SEC) /* a request to stop cannot be withdrawn */

/* ---- one after the other -------------------------------------------------------------------- */

enum thread_place { THREAD_OUTSIDE, THREAD_INSIDE, THREAD_RUNNING };

static enum thread_place inspect_waiting(int32_t pid, int32_t tid, const struct heap_ranges *ranges)
{
	struct proc_wait w;
	int rc = proc_wait(pid, tid, &w);
	if (rc)
		return rc == -ENOENT || rc == -ESRCH ? THREAD_OUTSIDE : THREAD_RUNNING;
	return heap_ranges_have(ranges, w.pc) ? THREAD_INSIDE : THREAD_OUTSIDE;
}

/* Stops a thread to read its registers. -ESRCH: it has ended. */
static int read_registers(int32_t pid, int32_t tid, struct user_regs_struct *ret_regs,
			  uint64_t *longest_ns, struct err *err)
{
	struct host_boost boost;
	bool was_traced = false;
	TRY(tracee_acquire(pid, tid, 0, &was_traced, err));
	bool is_child = tid == pid && tracee_is_child(pid);
	host_boost_begin(&boost);
	host_boost_thread(&boost, tid);
	uint64_t begin_ns = clock_mono_ns();
	int rc = tracee_interrupt(tid, is_child, begin_ns + 10 * NS_PER_SEC, ret_regs);
	if (!rc)
		tracee_release(tid, was_traced);
	uint64_t stopped_ns = clock_mono_ns() - begin_ns;
	host_boost_end(&boost);
	if (!rc)
		*longest_ns = MAX(*longest_ns, stopped_ns);
	return rc;
}

static enum thread_place inspect_stopped(int32_t pid, int32_t tid, const struct heap_ranges *ranges,
					 uint64_t *longest_ns, struct err *err)
{
	struct user_regs_struct regs;
	int rc = read_registers(pid, tid, &regs, longest_ns, err);
	if (rc)
		return rc == -ESRCH ? THREAD_OUTSIDE : THREAD_RUNNING;
	return heap_ranges_have(ranges, regs.rip) ? THREAD_INSIDE : THREAD_OUTSIDE;
}

int quiesce_threads(int32_t pid, const struct heap_ranges *ranges, uint64_t deadline_ns,
		    uint64_t *ret_longest_ns, struct err *err)
{
	CLEANUP(pid_list_release) struct pid_list tids = {0};
	int rc = proc_threads(&tids, pid, err);
	if (rc)
		return rc == -ENOENT ? -ESRCH : rc;
	/* Threads created later cannot enter the ranges. */
	for (size_t i = 0; i < tids.pids.n; i++) {
		int32_t tid = tids.pids.p[i];
		for (unsigned try = 0;; try++) {
			enum thread_place s = inspect_waiting(pid, tid, ranges);
			if (s == THREAD_RUNNING && try > 1) /* give it a chance to wait first */
				s = inspect_stopped(pid, tid, ranges, ret_longest_ns, err);
			if (s == THREAD_OUTSIDE)
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

/* ---- stacks --------------------------------------------------------------------------------- */

struct stack_search {
	int32_t pid;
	const struct heap_ranges *ranges;
	const struct heapspace *space;
	uint64_t *words; /* STACK_MAX bytes */
};

/*
 * Whether a word is where a signal handler returns to: code that calls rt_sigreturn. The handler may
 * run on a stack of its own, and what it interrupted have frames on another one.
 */
static bool is_of_handler(const struct stack_search *s, uint64_t word)
{
	static const uint8_t calls[][9] = {
		{0x48, 0xc7, 0xc0, SYS_rt_sigreturn, 0, 0, 0, 0x0f, 0x05},
		{0xb8, SYS_rt_sigreturn, 0, 0, 0, 0x0f, 0x05},
	};
	static const size_t lengths[] = {9, 7};
	uint8_t code[9];
	const struct heapspace_map *m = word >> 47 ? NULL : heapspace_at(s->space, word);
	if (!m || !m->is_exec || m->end - word < sizeof(code))
		return false;
	struct iovec local = {code, sizeof(code)};
	struct iovec remote = {(void *)(uintptr_t)word, sizeof(code)};
	if (process_vm_readv(s->pid, &local, 1, &remote, 1, 0) != (ssize_t)sizeof(code))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		if (!memcmp(code, calls[i], lengths[i]))
			return true;
	return false;
}

/* Whether a word between the stack pointer and the end of its mapping is in the ranges. */
static bool is_on_stack(const struct stack_search *s, uint64_t sp)
{
	const struct heapspace_map *m = heapspace_at(s->space, sp);
	sp &= ~(uint64_t)7;
	if (!m || m->end - sp > STACK_MAX)
		return true; /* cannot be excluded */
	struct iovec local = {s->words, m->end - sp};
	struct iovec remote = {(void *)(uintptr_t)sp, m->end - sp};
	ssize_t got = process_vm_readv(s->pid, &local, 1, &remote, 1, 0);
	if (got != (ssize_t)(m->end - sp))
		return true;
	for (size_t i = 0; i < (size_t)got / sizeof(*s->words); i++)
		if (heap_ranges_have(s->ranges, s->words[i]) || is_of_handler(s, s->words[i]))
			return true;
	return false;
}

/* A process that shares the memory may exist while a thread waits in one of these calls. */
static bool is_fork(int64_t nr)
{
	return nr == SYS_vfork || nr == SYS_clone || nr == SYS_clone3;
}

static bool may_return_into(const struct stack_search *s, int32_t tid, uint64_t *longest_ns)
{
	struct proc_wait w;
	struct user_regs_struct regs;
	int rc = proc_wait(s->pid, tid, &w);
	if (rc == -ENOENT || rc == -ESRCH)
		return false;
	if (!rc)
		return is_fork(w.nr) || heap_ranges_have(s->ranges, w.pc) || is_on_stack(s, w.sp);
	rc = read_registers(s->pid, tid, &regs, longest_ns, NULL);
	return rc ? rc != -ESRCH
		  : heap_ranges_have(s->ranges, regs.rip) || is_on_stack(s, regs.rsp);
}

bool quiesce_may_return(int32_t pid, const struct heap_ranges *ranges, uint64_t *ret_longest_ns)
{
	CLEANUP(pid_list_release) struct pid_list tids = {0};
	CLEANUP(heapspace_release) struct heapspace space = {0};
	if (proc_threads(&tids, pid, NULL) || heapspace_read(&space, pid, NULL))
		return true;
	struct stack_search s = {pid, ranges, &space, xmalloc(STACK_MAX)};
	bool may = false;
	for (size_t i = 0; i < tids.pids.n && !may; i++)
		may = may_return_into(&s, tids.pids.p[i], ret_longest_ns);
	free(s.words);
	return may;
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

static void release_all(struct stopped_list *l)
{
	vec_foreach(t, &l->v)
		if (t->is_stopped)
			tracee_release(t->tid, t->was_traced);
	vec_release(&l->v);
}

static bool has_thread(const struct stopped_list *l, int32_t tid)
{
	vec_foreach(t, &l->v)
		if (t->tid == tid)
			return true;
	return false;
}

/* Seizes threads that are not traced yet, without stopping them. */
static int seize_new(int32_t pid, struct stopped_list *l, struct err *err)
{
	CLEANUP(pid_list_release) struct pid_list tids = {0};
	TRY(proc_threads(&tids, pid, err));
	vec_foreach(tid, &tids.pids) {
		struct stopped t = {.tid = *tid};
		struct proc_task f;
		if (has_thread(l, t.tid) || proc_task(pid, t.tid, &f) ||
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

/* Stops threads from @first on: interrupts all, then waits for each. */
static void stop_from(int32_t pid, struct stopped_list *l, size_t first)
{
	bool is_child = tracee_is_child(pid);
	for (size_t i = first; i < l->v.n; i++)
		(void)ptrace(PTRACE_INTERRUPT, l->v.p[i].tid, 0, 0);
	for (size_t i = first; i < l->v.n; i++) {
		struct stopped *t = &l->v.p[i];
		struct user_regs_struct regs;
		if (tracee_interrupt(t->tid, is_child && t->tid == pid,
				     clock_mono_ns() + STOP_TIMEOUT_NS, &regs))
			continue;
		t->is_stopped = true;
		t->pc = regs.rip;
	}
}

static bool is_any_inside(const struct stopped_list *l, const struct heap_ranges *ranges)
{
	vec_foreach(t, &l->v)
		if (t->is_stopped && heap_ranges_have(ranges, t->pc))
			return true;
	return false;
}

int stop_all_threads(int32_t pid, const struct heap_ranges *ranges,
		     int (*change)(void *ctx, struct err *err), void *ctx, uint64_t *ret_longest_ns,
		     struct err *err)
{
	for (unsigned try = 0; try < TRIES_MAX; try++) {
		struct stopped_list l = {0};
		struct host_boost boost;
		int rc = seize_new(pid, &l, err);
		size_t nr_seen = 0;
		host_boost_begin(&boost);
		uint64_t begin_ns = clock_mono_ns();
		for (unsigned pass = 0; !rc && nr_seen < l.v.n && pass < SEIZE_ROUNDS_MAX; pass++) {
			stop_from(pid, &l, nr_seen);
			nr_seen = l.v.n;
			rc = seize_new(pid, &l, err); /* threads created meanwhile */
		}
		size_t nr_new = l.v.n - nr_seen;
		bool is_free = !rc && !nr_new && !is_any_inside(&l, ranges);
		if (is_free)
			rc = change(ctx, err);
		else
			stop_from(pid, &l, nr_seen); /* detaching needs a stopped tracee */
		release_all(&l);
		host_boost_end(&boost);
		*ret_longest_ns = MAX(*ret_longest_ns, clock_mono_ns() - begin_ns);
		if (rc || is_free)
			return rc;
		(void)nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
	}
	return err_set(err, -EBUSY, "threads of pid %d do not leave the code to be changed", pid);
}

#endif
