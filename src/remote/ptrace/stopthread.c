/*
 * Finds and stops a thread; see stopthread.h.
 *
 * Order: threads that wait for input or time (no allocator lock is held there), then other waiting
 * threads, then running ones. A stopped thread is checked: its pc, and each word of its stack that
 * points into the code to avoid and follows a call instruction, hence may be a return address.
 * Stale words in live frames look the same. Therefore other threads are tried, then the same ones
 * again a little later; and in the second half of the timeout a thread that waits for input is
 * accepted by its system call alone, because no allocator waits for input.
 */
#ifdef __x86_64__ /* others: remote_none.c */
#include "base/base.h"
#include "remote/ptrace/stopthread.h"

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "host/proc.h"
#include "remote/ptrace/tracee.h"

#define STACK_MAX_BYTES (128u << 10) /* of a stack that are searched */
#define THREADS_MAX     4096u        /* threads examined */
#define TRIES_MAX       16u          /* threads stopped per attempt */
#define NT_X86_SHSTK_   0x204

/* How suitable a thread is; smaller is better. */
enum rank {
	RANK_INPUT = 0, /* waits for input or time */
	RANK_POLL,      /* as well; its timeout starts again if assay is killed meanwhile */
	RANK_WAITING,
	RANK_RUNNING,
	RANK_NR
};

struct candidate {
	int32_t tid;
	enum rank rank;
};

struct candidates {
	VEC(struct candidate) v;
};

static bool is_input_wait(int64_t nr)
{
	switch (nr) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_poll:
	case SYS_ppoll:
	case SYS_select:
	case SYS_pselect6:
	case SYS_accept:
	case SYS_accept4:
	case SYS_recvfrom:
	case SYS_recvmsg:
		return true;
	}
	return false;
}

/* In these waits no allocator holds a lock. */
static bool is_idle_wait(int64_t nr)
{
	return is_input_wait(nr) || nr == SYS_nanosleep || nr == SYS_clock_nanosleep;
}

static int by_rank(const void *a, const void *b)
{
	const struct candidate *x = a;
	const struct candidate *y = b;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static bool is_avoided(const struct stopped_thread *t, uint64_t addr)
{
	size_t nr = upper_bound(t->avoid.p, t->avoid.n, start, addr);
	return nr && addr < t->avoid.p[nr - 1].end;
}

/* Whether a call instruction ends at @addr. Intel SDM volume 2, CALL: e8, and ff /2. */
static bool follows_call(const struct stopped_thread *t, uint64_t addr)
{
	uint8_t b[7];
	if (pread(t->mem_fd, b, sizeof(b), (off_t)(addr - sizeof(b))) != sizeof(b))
		return true;
	if (b[2] == 0xe8)
		return true;
	for (size_t i = 0; i < 6; i++) /* a one byte ModRM at least */
		if (b[i] == 0xff && (b[i + 1] >> 3 & 7) == 2)
			return true;
	return false;
}

static bool is_stack_safe(const struct stopped_thread *t, uint64_t sp)
{
	CLEANUP(free_p) uint64_t *words = xmalloc(STACK_MAX_BYTES);
	/* Aligned down: a stack pointer need not be a multiple of 8. */
	ssize_t n = pread(t->mem_fd, words, STACK_MAX_BYTES, (off_t)(sp & ~7ull));
	for (ssize_t i = 0; i < n / 8; i++)
		if (is_avoided(t, words[i]) && follows_call(t, words[i]))
			return false;
	return n > 0;
}

/*
 * Checks what can be seen without stopping the thread. False: it cannot be stopped soon or at all,
 * or waits with a frame in the code to avoid.
 */
static bool is_candidate(const struct stopped_thread *t, int32_t tid, bool is_strict,
			 enum rank *ret_w)
{
	struct proc_task f;
	struct proc_wait w;
	*ret_w = RANK_RUNNING;
	if (proc_task(t->pid, tid, &f) || (f.state != 'R' && f.state != 'S' && f.state != 'T'))
		return false;
	if (f.state == 'R')
		return true;
	*ret_w = RANK_WAITING;
	if (proc_wait(t->pid, tid, &w)) /* "running", or not permitted */
		return true;
	if (is_input_wait(w.nr))
		*ret_w = w.nr == SYS_poll ? RANK_POLL : RANK_INPUT;
	if (!t->avoid.n || (!is_strict && is_idle_wait(w.nr)))
		return true;
	return !is_avoided(t, w.pc) && is_stack_safe(t, w.sp);
}

static int find_candidates(const struct stopped_thread *t, struct candidates *c, bool is_strict,
			   struct err *err)
{
	CLEANUP(pid_list_release) struct pid_list tids = {0};
	size_t nr_good = 0;
	int rc = proc_threads(&tids, t->pid, err);
	if (rc)
		return rc == -ENOENT ? -ESRCH : rc;
	for (size_t i = 0; i < tids.pids.n && i < THREADS_MAX && nr_good < TRIES_MAX; i++) {
		struct candidate one = {.tid = tids.pids.p[i]};
		if (!is_candidate(t, one.tid, is_strict, &one.rank))
			continue;
		vec_push(&c->v, one);
		nr_good += one.rank <= RANK_POLL || !t->avoid.n;
	}
	if (c->v.n)
		qsort(c->v.p, c->v.n, sizeof(*c->v.p), by_rank);
	return 0;
}

/*
 * The kernel moves a thread that is in a restartable sequence (rseq(2)) to its abort handler when
 * the thread returns to user mode there; after a call it would not. So this sets the pc.
 */
static void abort_rseq(struct stopped_thread *t)
{
	struct __ptrace_rseq_configuration conf = {0};
	uint64_t cs_addr = 0;
	struct {
		uint32_t version;
		uint32_t flags;
		uint64_t start;
		uint64_t nr_bytes;
		uint64_t abort;
	} cs;
	if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, t->tid, sizeof(conf), &conf) < 0 ||
	    !conf.rseq_abi_pointer)
		return;
	/* struct rseq: cpu_id_start, cpu_id, rseq_cs */
	if (pread(t->mem_fd, &cs_addr, 8, (off_t)(conf.rseq_abi_pointer + 8)) != 8 || !cs_addr ||
	    pread(t->mem_fd, &cs, sizeof(cs), (off_t)cs_addr) != sizeof(cs))
		return;
	if (t->regs.rip - cs.start < cs.nr_bytes)
		t->regs.rip = cs.abort;
}

static bool has_shadow_stack(int32_t tid)
{
	uint64_t ssp = 0;
	struct iovec v = {&ssp, sizeof(ssp)};
	return !ptrace(PTRACE_GETREGSET, tid, NT_X86_SHSTK_, &v) && ssp;
}

static int add_stack(void *ctx, const struct proc_map *m, struct err *err UNUSED)
{
	struct stopped_thread *t = ctx;
	struct heap_range range = {m->start, m->end};
	if (!strcmp(m->path, "[stack]"))
		t->main_stack = range;
	else if (m->is_read && m->is_write)
		vec_push(&t->stacks, range);
	return 0;
}

int stopthread_read_stacks(struct stopped_thread *t, struct err *err)
{
	vec_clear(&t->stacks);
	int rc = t->stack_bytes ? proc_maps(t->pid, add_stack, t, err) : 0;
	return rc == -ENOENT ? -ESRCH : rc;
}

/*
 * Whether the memory below the stack pointer is known to be free stack: the main thread's, or one
 * of glibc or musl, at whose top is the thread control block that the thread pointer points to. A
 * coroutine's stack may be a small block of the heap.
 */
static bool has_stack_left(const struct stopped_thread *t)
{
	uint64_t sp = t->regs.rsp;
	size_t nr = upper_bound(t->stacks.p, t->stacks.n, start, sp);
	struct heap_range range = nr ? t->stacks.p[nr - 1] : (struct heap_range){0};
	if (sp >= t->main_stack.start && sp < t->main_stack.end)
		range = t->main_stack;
	else if (sp >= range.end || t->regs.fs_base <= sp || t->regs.fs_base >= range.end)
		return false;
	return sp - range.start >= t->stack_bytes + STOPTHREAD_RED_ZONE;
}

int stopthread_prepare(struct stopped_thread *t, bool is_strict)
{
	if (t->regs.cs != 0x33) /* 32 bit code */
		return -EOPNOTSUPP;
	if (has_shadow_stack(t->tid))
		return -EOPNOTSUPP;
	if (is_avoided(t, t->regs.rip))
		return -EAGAIN;
	if (t->stack_bytes && !has_stack_left(t))
		return -EAGAIN;
	if (t->avoid.n && is_strict && !is_stack_safe(t, t->regs.rsp))
		return -EAGAIN;
	if (ptrace(PTRACE_GETSIGMASK, t->tid, sizeof(t->mask), &t->mask))
		return -errno;
	abort_rseq(t);
	t->is_stopped = true;
	return 0;
}

/* Attaches. Reads the seccomp state first: some filters kill the process. */
static int seize_thread(struct stopped_thread *t, struct err *err)
{
	struct proc_task facts;
	if (proc_task(t->pid, t->tid, &facts))
		return -EAGAIN; /* the thread has ended; the process may live */
	t->caught = facts.caught;
	t->ns_tid = facts.ns_tid;
	t->has_filter = facts.seccomp != 0;
	if (!t->has_filter)
		return tracee_acquire(t->pid, t->tid, 0, &t->was_traced, err);
	if (tracee_acquire(t->pid, t->tid, PTRACE_O_SUSPEND_SECCOMP, &t->was_traced, NULL))
		return tracee_seize(t->pid, t->tid, 0, err);
	t->has_filter = t->was_traced;
	t->is_filter_suspended = !t->was_traced;
	return 0;
}

static int try_thread(struct stopped_thread *t, const struct candidate *c, bool is_strict,
		      uint64_t deadline_ns, struct err *err)
{
	t->tid = c->tid;
	t->is_child = c->tid == t->pid && tracee_is_child(t->pid);
	int rc = seize_thread(t, err);
	if (rc == -ESRCH)
		return -EAGAIN;
	if (rc)
		return rc;
	host_boost_thread(&t->boost, t->tid);
	t->stopped_at_ns = clock_mono_ns();
	rc = tracee_interrupt(t->tid, t->is_child, deadline_ns, &t->regs);
	if (rc == -ESRCH)
		return -EAGAIN;
	if (rc) {
		return err_set(err, rc, "thread %d of pid %d does not stop (it waits for a device)",
			       t->tid, t->pid);
	}
	bool is_idle = (int64_t)t->regs.rax < 0 && is_idle_wait((int64_t)t->regs.orig_rax);
	rc = stopthread_prepare(t, is_strict || !is_idle);
	if (!rc)
		return 0;
	tracee_release(t->tid, t->was_traced);
	if (rc == -EOPNOTSUPP)
		return err_set(err, rc,
			       "pid %d runs 32 bit code or has a shadow stack: cannot call into it",
			       t->pid);
	return rc == -ESRCH ? -EAGAIN : rc;
}

static int try_all(struct stopped_thread *t, const struct candidates *c, bool is_strict,
		   uint64_t deadline_ns, struct err *err)
{
	for (size_t i = 0; i < c->v.n && i < TRIES_MAX; i++) {
		/* A running thread may have entered an uninterruptible wait since. */
		enum rank now;
		if (!is_candidate(t, c->v.p[i].tid, is_strict, &now))
			continue;
		int rc = try_thread(t, &c->v.p[i], is_strict, deadline_ns + 10 * NS_PER_SEC, err);
		if (rc != -EAGAIN)
			return rc;
		if (clock_mono_ns() > deadline_ns)
			break;
	}
	return -EAGAIN;
}

int stopthread_find(struct stopped_thread *t, struct err *err)
{
	uint64_t start_ns = clock_mono_ns();
	uint64_t wait_ns = 50000;
	for (;;) {
		CLEANUP(vec_free_p) struct candidates c = {0};
		uint64_t spent_ns = clock_mono_ns() - start_ns;
		bool is_strict = spent_ns < t->timeout_ns / 2;
		TRY(stopthread_read_stacks(t, err));
		TRY(find_candidates(t, &c, is_strict, err));
		int rc = try_all(t, &c, is_strict, start_ns + t->timeout_ns, err);
		if (rc != -EAGAIN)
			return rc;
		if (kill(t->pid, 0) && errno == ESRCH)
			return err_set(err, -ESRCH, "pid %d has ended", t->pid);
		spent_ns = clock_mono_ns() - start_ns;
		if (spent_ns > t->timeout_ns)
			break;
		struct timespec delay = {.tv_nsec = (long)wait_ns};
		(void)nanosleep(&delay, NULL);
		wait_ns = MIN(wait_ns * 2, 5 * NS_PER_MS);
	}
	return err_set(
		err, -EAGAIN,
		"no thread of pid %d can be used for calls: each is inside the allocator, in an "
		"uninterruptible wait, or on a stack that is too small (coroutines)",
		t->pid);
}

#endif
