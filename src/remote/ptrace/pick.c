/*
 * Which thread may be borrowed; see remote.h.
 *
 * First those that wait in a system call in which nobody holds an allocator's lock, then others
 * that wait, then those that run. Each is judged while it stands: its pc and every word of its
 * stack that would be a return address (it points behind a call instruction) into the code to
 * avoid. Old words in live frames look the same; they are why another thread, or the same a
 * little later, is tried, and why in the second half of the time a thread that waits for input is
 * taken by its system call alone: no allocator waits for input.
 */
#ifdef __x86_64__ /* others: remote_none.c */
#include "base/base.h"
#include "remote/ptrace/remotepriv.h"

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

#define STACK_MAX_BYTES (128u << 10) /* of a stack that is looked through */
#define LOOKED_AT_MAX   4096u        /* threads */
#define TRIED_MAX       16u          /* in one pass */
#define NT_X86_SHSTK_   0x204

/* Smaller is better. */
enum worth {
	WORTH_INPUT = 0, /* waits for input or time */
	WORTH_WAITS = 1,
	WORTH_RUNS = 2,
	WORTH_NR
};

struct candidate {
	int32_t tid;
	enum worth worth;
};

struct candidates {
	VEC(struct candidate) v;
};

static bool waits_for_input(int64_t nr)
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

static int by_worth(const void *a, const void *b)
{
	const struct candidate *x = a;
	const struct candidate *y = b;
	if (x->worth != y->worth)
		return x->worth < y->worth ? -1 : 1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static bool is_avoided(const struct remote *r, uint64_t addr)
{
	size_t nr = nr_upto(r->avoid.p, r->avoid.n, start, addr);
	return nr && addr < r->avoid.p[nr - 1].end;
}

/* Does a call instruction end here? Intel SDM volume 2, CALL: e8, and ff /2 with its operands. */
static bool is_behind_call(const struct remote *r, uint64_t addr)
{
	uint8_t b[7];
	if (pread(r->mem_fd, b, sizeof(b), (off_t)(addr - sizeof(b))) != sizeof(b))
		return true;
	if (b[2] == 0xe8)
		return true;
	for (size_t i = 0; i < 6; i++) /* a one byte ModRM at least */
		if (b[i] == 0xff && (b[i + 1] >> 3 & 7) == 2)
			return true;
	return false;
}

static bool is_stack_safe(const struct remote *r, uint64_t sp)
{
	CLEANUP(free_p) uint64_t *words = xmalloc(STACK_MAX_BYTES);
	/* Aligned down: a stack pointer need not be a multiple of 8. */
	ssize_t n = pread(r->mem_fd, words, STACK_MAX_BYTES, (off_t)(sp & ~7ull));
	for (ssize_t i = 0; i < n / 8; i++)
		if (is_avoided(r, words[i]) && is_behind_call(r, words[i]))
			return false;
	return n > 0;
}

/*
 * False for a thread that could not be stopped soon, or not at all, or that waits with a frame in
 * code to avoid: what can be seen without stopping it.
 */
static bool is_candidate(const struct remote *r, int32_t tid, bool is_strict, enum worth *ret_w)
{
	struct proc_task t;
	struct proc_wait w;
	*ret_w = WORTH_RUNS;
	if (proc_task(r->pid, tid, &t) || (t.state != 'R' && t.state != 'S' && t.state != 'T'))
		return false;
	if (t.state == 'R')
		return true;
	*ret_w = WORTH_WAITS;
	if (proc_wait(r->pid, tid, &w)) /* "running", or it may not be seen */
		return true;
	if (waits_for_input(w.nr))
		*ret_w = WORTH_INPUT;
	if (!r->avoid.n || (!is_strict && *ret_w == WORTH_INPUT))
		return true;
	return !is_avoided(r, w.pc) && is_stack_safe(r, w.sp);
}

static int find_candidates(const struct remote *r, struct candidates *c, bool is_strict,
			   struct err *err)
{
	CLEANUP(pid_list_release) struct pid_list tids = {0};
	size_t nr_good = 0;
	int rc = proc_threads(&tids, r->pid, err);
	if (rc)
		return rc == -ENOENT ? -ESRCH : rc;
	for (size_t i = 0; i < tids.pids.n && i < LOOKED_AT_MAX && nr_good < TRIED_MAX; i++) {
		struct candidate one = {.tid = tids.pids.p[i]};
		if (!is_candidate(r, one.tid, is_strict, &one.worth))
			continue;
		vec_push(&c->v, one);
		nr_good += one.worth == WORTH_INPUT || !r->avoid.n;
	}
	if (c->v.n)
		qsort(c->v.p, c->v.n, sizeof(*c->v.p), by_worth);
	return 0;
}

/*
 * A thread inside a restartable sequence (rseq(2)) would be sent to its abort handler when it
 * returned to user mode; being made to run elsewhere first it would not. So it is sent there now.
 */
static void abort_sequence(struct remote *r)
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
	if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, r->tid, sizeof(conf), &conf) < 0 ||
	    !conf.rseq_abi_pointer)
		return;
	/* struct rseq: cpu_id_start, cpu_id, rseq_cs */
	if (pread(r->mem_fd, &cs_addr, 8, (off_t)(conf.rseq_abi_pointer + 8)) != 8 || !cs_addr ||
	    pread(r->mem_fd, &cs, sizeof(cs), (off_t)cs_addr) != sizeof(cs))
		return;
	if (r->saved.rip - cs.start < cs.nr_bytes)
		r->saved.rip = cs.abort;
}

static bool has_shadow_stack(int32_t tid)
{
	uint64_t ssp = 0;
	struct iovec v = {&ssp, sizeof(ssp)};
	return !ptrace(PTRACE_GETREGSET, tid, NT_X86_SHSTK_, &v) && ssp;
}

int remote_take(struct remote *r, bool is_strict)
{
	if (r->saved.cs != 0x33) /* 32 bit code */
		return -EOPNOTSUPP;
	if (has_shadow_stack(r->tid))
		return -EOPNOTSUPP;
	if (is_avoided(r, r->saved.rip))
		return -EAGAIN;
	if (r->avoid.n && is_strict && !is_stack_safe(r, r->saved.rsp))
		return -EAGAIN;
	abort_sequence(r);
	TRY(remote_block_signals(r));
	r->is_stopped = true;
	return 0;
}

/* Filters are looked at before anything is tried: some kill. */
static int seize(struct remote *r, struct err *err)
{
	struct proc_task facts;
	if (proc_task(r->pid, r->tid, &facts))
		return -EAGAIN; /* the thread has ended; the process may live */
	r->ignored = facts.ignored;
	r->has_filter = facts.seccomp != 0;
	if (!r->has_filter)
		return tracee_take(r->pid, r->tid, 0, &r->is_ours, err);
	if (tracee_take(r->pid, r->tid, PTRACE_O_SUSPEND_SECCOMP, &r->is_ours, NULL))
		return tracee_seize(r->pid, r->tid, 0, err);
	r->has_filter = r->is_ours;
	r->is_suspended = !r->is_ours;
	return 0;
}

static int try_thread(struct remote *r, const struct candidate *c, bool is_strict,
		      uint64_t deadline_ns, struct err *err)
{
	r->tid = c->tid;
	r->is_child = c->tid == r->pid && tracee_is_child(r->pid);
	int rc = seize(r, err);
	if (rc == -ESRCH)
		return -EAGAIN;
	if (rc)
		return rc;
	host_boost_thread(&r->boost, r->tid);
	r->stopped_at_ns = clock_mono_ns();
	rc = tracee_interrupt(r->tid, r->is_child, deadline_ns, &r->saved);
	if (rc == -ESRCH)
		return -EAGAIN;
	if (rc) {
		return err_set(err, rc, "thread %d of pid %d does not stop (it waits for a device)",
			       r->tid, r->pid);
	}
	bool is_input = (int64_t)r->saved.rax < 0 && waits_for_input((int64_t)r->saved.orig_rax);
	rc = remote_take(r, is_strict || !is_input);
	if (!rc)
		return 0;
	tracee_let_go(r->tid, r->is_ours);
	if (rc == -EOPNOTSUPP)
		return err_set(err, rc,
			       "pid %d runs 32 bit code or has a shadow stack: cannot call into it",
			       r->pid);
	return rc == -ESRCH ? -EAGAIN : rc;
}

static int try_all(struct remote *r, const struct candidates *c, bool is_strict,
		   uint64_t deadline_ns, struct err *err)
{
	for (size_t i = 0; i < c->v.n && i < TRIED_MAX; i++) {
		/* A busy one may just have become uninterruptible. */
		enum worth now;
		if (!is_candidate(r, c->v.p[i].tid, is_strict, &now))
			continue;
		int rc = try_thread(r, &c->v.p[i], is_strict, deadline_ns + 10 * NS_PER_SEC, err);
		if (rc != -EAGAIN)
			return rc;
		if (clock_mono_ns() > deadline_ns)
			break;
	}
	return -EAGAIN;
}

int remote_pick(struct remote *r, struct err *err)
{
	uint64_t start_ns = clock_mono_ns();
	uint64_t wait_ns = 50000;
	for (;;) {
		CLEANUP(vec_free_p) struct candidates c = {0};
		uint64_t spent_ns = clock_mono_ns() - start_ns;
		bool is_strict = spent_ns < r->timeout_ns / 2;
		TRY(find_candidates(r, &c, is_strict, err));
		int rc = try_all(r, &c, is_strict, start_ns + r->timeout_ns, err);
		if (rc != -EAGAIN)
			return rc;
		if (kill(r->pid, 0) && errno == ESRCH)
			return err_set(err, -ESRCH, "pid %d has ended", r->pid);
		spent_ns = clock_mono_ns() - start_ns;
		if (spent_ns > r->timeout_ns)
			break;
		struct timespec t = {.tv_nsec = (long)wait_ns};
		(void)nanosleep(&t, NULL);
		wait_ns = MIN(wait_ns * 2, 5 * NS_PER_MS);
	}
	return err_set(err, -EAGAIN,
		       "no thread of pid %d could be borrowed: each is inside the allocator or in "
		       "an uninterruptible wait",
		       r->pid);
}

#endif
