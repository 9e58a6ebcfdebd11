/*
 * Follows a launched command and its descendants; see follow.h.
 *
 * A new thread or child is found by its first stop, whoever reads the stop of its parent: a session
 * (remote/ptrace/remote.h) on the parent may consume that.
 */
#include "base/base.h"
#include "remote/patch/follow.h"

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/vec.h"
#include "host/proc.h"
#include "remote/patch/launch.h"
#include "remote/ptrace/tracee.h"

#define EVENTS_MAX 4096u /* of one poll: a program that forks all the time must not stop assay */
#define FREE_TRIES 64u
/* How soon after its fork a child has its first stop, also on a busy machine. */
#define FIRST_STOP_NS (20 * NS_PER_MS)

struct follower {
	struct heaplaunch *l;
	int32_t tid;
	bool is_held;
	bool is_forked;
	uint64_t since_ns;
};

struct heapfollow {
	unsigned flags;
	VEC(struct follower) list;
	uint64_t empty_ns; /* since when there is none in the list; 0 = there are some */
};

static struct follower *find(const struct heapfollow *f, int32_t tid)
{
	vec_foreach(t, &f->list)
		if (t->tid == tid)
			return t;
	return NULL;
}

static void drop(struct heapfollow *f, struct follower *t)
{
	heaplaunch_free(t->l);
	*t = f->list.p[--f->list.n];
}

static void add(struct heapfollow *f, struct heaplaunch *l, int32_t tid, bool is_held)
{
	vec_push(&f->list, (struct follower){.l = l,
					     .tid = tid,
					     .is_held = is_held,
					     .is_forked = is_held,
					     .since_ns = clock_mono_ns()});
}

/* The next thread with a stop that was not read yet, 0 = none. */
static int32_t next_stopped(void)
{
	siginfo_t si = {0};
	int options = WSTOPPED | WNOHANG | WNOWAIT | __WALL | __WNOTHREAD;
	return waitid(P_ALL, 0, &si, options) ? 0 : si.si_pid;
}

static bool is_own_tracee(int32_t tid, int32_t pid)
{
	struct proc_task t;
	return !proc_task(pid, tid, &t) && t.tracer == (int32_t)syscall(SYS_gettid);
}

/* False: it is not a tracee of this thread, and stays as it is. */
static bool adopt(struct heapfollow *f, int32_t tid)
{
	struct heaplaunch *l = NULL;
	int32_t pid = 0;
	bool is_held = false;
	if (proc_tgid(tid, &pid, NULL) || !is_own_tracee(tid, pid))
		return false;
	if (!heaplaunch_adopt(&l, tid, pid == tid, &is_held))
		add(f, l, tid, is_held);
	return true;
}

static void poll_one(struct heapfollow *f, struct follower *t)
{
	bool is_held = false;
	if (t->is_held)
		return;
	if (heaplaunch_poll(t->l, 0, &is_held, NULL)) {
		drop(f, t);
		return;
	}
	if (!is_held)
		return;
	t->is_held = true;
	t->is_forked = false;
	t->since_ns = clock_mono_ns();
}

static void find_new(struct heapfollow *f)
{
	for (size_t n = 0; n < EVENTS_MAX; n++) {
		int32_t tid = next_stopped();
		struct follower *t = tid ? find(f, tid) : NULL;
		if (!tid || (t && t->is_held))
			return;
		if (t)
			poll_one(f, t);
		else if (!adopt(f, tid))
			return;
	}
}

/*
 * A traced thread that has ended is gone for its process and its parent only when its tracer has waited
 * for it. Those in the list are waited for by poll_one. Others ended before their first stop was read,
 * or were killed when they were to be detached.
 *
 * waitid reports ptrace stops even if only WEXITED is asked for (wait_task_stopped in kernel/exit.c): that
 * of a child that has come since find_new. Waiting for it would consume the stop, and nothing would resume
 * the child, nor its parent in vfork.
 */
static void reap_others(struct heapfollow *f)
{
	int options = WEXITED | WNOHANG | __WALL | __WNOTHREAD;
	for (size_t n = 0; n < EVENTS_MAX; n++) {
		siginfo_t si = {0};
		int32_t pid = 0;
		if (waitid(P_ALL, 0, &si, options | WNOWAIT) || !si.si_pid)
			return;
		struct follower *t = find(f, si.si_pid);
		if (t && t->is_held)
			return;
		if (t) {
			poll_one(f, t);
			continue;
		}
		if (si.si_code == CLD_TRAPPED || si.si_code == CLD_STOPPED) {
			if (!adopt(f, si.si_pid))
				return;
			continue;
		}
		/* Our own children are waited for elsewhere. */
		if (proc_tgid(si.si_pid, &pid, NULL) || (pid == si.si_pid && tracee_is_child(pid)))
			return;
		(void)waitid(P_PID, (id_t)si.si_pid, &si, options);
	}
}

int heapfollow_open(struct heapfollow **ret_f, int32_t child, unsigned flags, struct err *err)
{
	struct heaplaunch *l;
	TRY(heaplaunch_open(&l, child, flags & HEAPFOLLOW_CHILDREN ? HEAPLAUNCH_CHILDREN : 0, err));
	struct heapfollow *f = xcalloc(1, sizeof(*f));
	f->flags = flags;
	add(f, l, child, false);
	*ret_f = f;
	return 0;
}

/* The first stop of a child may come after the last other thread was dropped. */
static bool has_ended(struct heapfollow *f)
{
	uint64_t now = clock_mono_ns();
	if (f->list.n)
		f->empty_ns = 0;
	else if (!f->empty_ns)
		f->empty_ns = now;
	return !f->list.n &&
	       (!(f->flags & HEAPFOLLOW_CHILDREN) || now - f->empty_ns > FIRST_STOP_NS);
}

int heapfollow_poll(struct heapfollow *f)
{
	for (size_t i = f->list.n; i-- > 0;)
		poll_one(f, &f->list.p[i]);
	if (f->flags & HEAPFOLLOW_CHILDREN) {
		find_new(f);
		reap_others(f);
	}
	return has_ended(f) ? -ESRCH : 0;
}

bool heapfollow_held(const struct heapfollow *f, size_t idx, struct heapfollow_held *ret_h)
{
	vec_foreach(t, &f->list) {
		if (!t->is_held || idx--)
			continue;
		*ret_h = (struct heapfollow_held){t->tid, t->is_forked, t->since_ns};
		return true;
	}
	return false;
}

void heapfollow_continue(struct heapfollow *f, int32_t pid)
{
	heapfollow_run_to_main(f, pid, 0);
}

void heapfollow_run_to_main(struct heapfollow *f, int32_t pid, uint64_t addr)
{
	struct follower *t = find(f, pid);
	if (!t || !t->is_held)
		return;
	t->is_held = false;
	if (addr ? heaplaunch_run_to_main(t->l, addr, NULL) : heaplaunch_continue(t->l, NULL))
		drop(f, t);
}

bool heapfollow_has(const struct heapfollow *f, int32_t pid)
{
	return find(f, pid) != NULL;
}

/*
 * Children first: a parent in vfork stops only when its child has executed a program. What is forked
 * meanwhile is found at the end.
 */
void heapfollow_free(struct heapfollow *f)
{
	if (!f)
		return;
	bool has_children = f->flags & HEAPFOLLOW_CHILDREN;
	uint64_t until_ns = f->list.n && has_children ? clock_mono_ns() + FIRST_STOP_NS : 0;
	for (size_t n = 0; n < FREE_TRIES; n++) {
		while (f->list.n)
			drop(f, vec_last(&f->list));
		if (has_children)
			find_new(f);
		if (!f->list.n && clock_mono_ns() >= until_ns)
			break;
		if (!f->list.n)
			(void)nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
	}
	if (has_children)
		reap_others(f);
	vec_release(&f->list);
	free(f);
}
