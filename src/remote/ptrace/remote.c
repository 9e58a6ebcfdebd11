/*
 * Sessions on one thread of another process; see remote.h.
 *
 * remote_open     prepare (open files, find instructions) ... [ stop a thread, check it ]
 * remote_syscall                               run to the entry and the exit of the call
 * remote_call                                  run until the function has returned
 * remote_close                                 [ restore registers and signals, detach ]
 *
 * From [ to ] the thread is kept from its own work.
 *
 * assay may be killed at any time, which resumes the thread. Therefore each change leaves the
 * thread in a state from which it gets back to its own work by itself:
 *
 *  1. The return chain (returnchain.h) is written: below the thread's red zone, where nothing is,
 *     or to memory of the session.
 *  2. The registers are set for the first call, whose return address is in the chain. From now on
 *     the thread ends with rt_sigreturn, which restores its registers, its signal mask and an
 *     interrupted system call.
 *  3. All signals that can be blocked are blocked, so they stay pending in the kernel with their
 *     siginfo. SIGSTOP and signals raised by instructions cannot be; they are kept in
 *     deferred_signals and sent again at the end.
 *  4. Registers are set for further calls, always with the chain behind them.
 *  5. At the end, in an event stop or a signal stop: vector state, signal mask, registers, in this
 *     order. From these stops the kernel itself restarts an interrupted system call, with the rest
 *     of its timeout; rt_sigreturn would start the timeout again.
 *
 * A stop must be harmless if assay dies in it, so there is no single step and no fault: the kernel
 * would deliver the SIGTRAP or SIGSEGV. A system call ends at its exit stop. A function runs without
 * stops at its own system calls, 40 us each; behind it the chain sends the thread a signal that the
 * process ignores, which the tracer sees and nobody else. If the process handles all such signals,
 * or has a seccomp filter, which may not permit tkill, the thread runs to the entry of rt_sigreturn
 * instead, with stops at each system call; from there it completes rt_sigreturn in any case, since
 * a filter would see a system call that is skipped as number -1.
 *
 * orig_rax = -1 prevents the kernel from restarting a system call with the call's registers.
 */
#ifdef __x86_64__ /* others: remote_none.c */
#include "base/base.h"
#include "remote/ptrace/remote.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "host/privileges.h"
#include "host/proc.h"
#include "host/procmem.h"
#include "host/reader/hostfile.h"
#include "remote/ptrace/returnchain.h"
#include "remote/ptrace/stopthread.h"
#include "remote/ptrace/tracee.h"

#define TIMEOUT_NS NS_PER_SEC

#define FLAG_TF 0x100u
#define FLAG_DF 0x400u
#define FLAG_AC 0x40000u

#define UNDO_TRIES    50
#define UNDO_PAUSE_NS 100000000

#define XSTATE_BYTES_MAX 16384u /* with AMX tiles it is 11 kB */
#define STACK_BYTES_MIN  16384u /* of the thread's own stack, for functions */
#define SYSCALL_STOP     (SIGTRAP | 0x80)

/* What the thread would do if it were resumed. */
enum place {
	PLACE_OWN,   /* its own work */
	PLACE_CALL,  /* a call, then the return chain */
	PLACE_RETURN /* rt_sigreturn: it is stopped at the entry */
};

struct remote {
	struct stopped_thread t;
	bool is_caller_tracee; /* traced by the caller, and stays so (remote_open_stopped) */
	bool is_gone;          /* the target has ended or executed another program */
	bool is_at_exit;       /* stopped at the exit of a system call */
	bool is_blocked;       /* its signals are blocked */
	bool has_called;       /* a function, which may have changed the vector state */
	enum place place;
	struct returnchain_code code;
	struct returnchain_state own; /* what the chains restore; tid 0 = not known yet */
	uint8_t *xstate;
	uint64_t chain;       /* address of the chain for system calls; 0 = none yet */
	uint64_t call_chain;  /* of that for functions, whose stack is below it; 0 = none yet */
	uint64_t own_area;    /* memory mapped in the target for the session; 0 = none */
	uint64_t caller_area; /* remote_options.area: not unmapped */
	uint64_t scratch;     /* next free address of scratch memory */
	uint64_t scratch_end;
	uint64_t deferred_signals; /* arrived and could not be blocked: bit n - 1 */
};

/* ---- errors and memory ----------------------------------------------------------------------- */

static int fail(struct remote *r, int code, const char *what, struct err *err)
{
	if (code == -ESRCH) {
		r->is_gone = true;
		return err_set(err, code, "cannot %s: pid %d has ended or executed another program",
			       what, r->t.pid);
	}
	return err_set(err, code, "cannot %s in pid %d: %s", what, r->t.pid, strerror(-code));
}

int remote_read(struct remote *r, uint64_t addr, void *to, size_t n, struct err *err)
{
	ssize_t got = pread(r->t.mem_fd, to, n, (off_t)addr);
	if (got == (ssize_t)n)
		return 0;
	if (!got)
		return fail(r, -ESRCH, "read memory", err);
	return err_set(err, -EFAULT, "cannot read memory of pid %d at 0x%" PRIx64, r->t.pid, addr);
}

int remote_write(struct remote *r, uint64_t addr, const void *from, size_t n, struct err *err)
{
	ssize_t put = pwrite(r->t.mem_fd, from, n, (off_t)addr);
	if (put == (ssize_t)n)
		return 0;
	if (!put)
		return fail(r, -ESRCH, "write memory", err);
	return err_set(err, -EFAULT, "cannot write memory of pid %d at 0x%" PRIx64, r->t.pid, addr);
}

/*
 * The target may have replaced the descriptor by another file. pidfd_getfd copies the descriptor
 * with the target's access mode; opening /proc/PID/fd would use our rights, as root write access to
 * files that the target can only read. Only an unnamed memfd is accepted.
 */
int remote_get_fd(struct remote *r, int fd, int *ret_fd, struct err *err)
{
	struct stat st;
	CLEANUP(close_p) int got = -1;
	CLEANUP(close_p) int pid_fd = (int)syscall(SYS_pidfd_open, r->t.pid, 0);
	if (pid_fd >= 0)
		got = (int)syscall(438 /* pidfd_getfd */, pid_fd, fd, 0);
	if (got < 0 && errno == ENOSYS) {
		err_set(err, -ENOSYS, "cannot take descriptor %d of pid %d", fd, r->t.pid);
		return err_hint(err, "recording inside a process needs Linux 5.6 or newer; "
				     "--method growth does not");
	}
	if (got < 0)
		return err_sys(err, "cannot take descriptor %d of pid %d", fd, r->t.pid);
	if (fstat(got, &st) || !S_ISREG(st.st_mode) || st.st_nlink || fcntl(got, F_GET_SEALS) < 0)
		return err_set(err, -EPROTO,
			       "descriptor %d of pid %d is not the memfd that was created there",
			       fd, r->t.pid);
	*ret_fd = take_fd(&got);
	return 0;
}

/* ---- running --------------------------------------------------------------------------------- */

static bool is_from_instruction(int32_t tid, int sig)
{
	siginfo_t si = {0};
	return sig < 64 && (STOPTHREAD_BIT(sig) & STOPTHREAD_SYNCHRONOUS) &&
	       !ptrace(PTRACE_GETSIGINFO, tid, 0, &si) && si.si_code > 0;
}

/* Whether the stop is for the signal that the chain sends. */
static bool is_notified(const struct remote *r, const struct tracee_stop *s,
			const struct user_regs_struct *regs)
{
	return s->signal == r->own.notify && !s->event && regs->rip == r->code.syscall_ret + 2 &&
	       regs->rsp == r->call_chain + RETURNCHAIN_NOTIFIED * 8;
}

/*
 * Runs to a system call stop, the chain's signal or a signal raised by an instruction; with
 * @is_to_event to an event stop. Other signals are deferred.
 */
static int run_until(struct remote *r, int request, bool is_to_event, uint64_t deadline_ns,
		     struct tracee_stop *ret_s, struct user_regs_struct *ret_regs)
{
	for (;;) {
		if (ptrace(request, r->t.tid, 0, 0))
			return -errno;
		TRY(tracee_wait(r->t.tid, r->t.is_child, deadline_ns, ret_s));
		TRY(tracee_get_regs(r->t.tid, ret_regs));
		r->is_at_exit = false;
		if (ret_s->event == PTRACE_EVENT_STOP) {
			if (is_to_event)
				return 0;
			continue; /* group-stop or SIGCONT of the process: run on */
		}
		if (ret_s->signal == SYSCALL_STOP || is_notified(r, ret_s, ret_regs) ||
		    is_from_instruction(r->t.tid, ret_s->signal))
			return 0;
		if (ret_s->signal && ret_s->signal <= 64)
			r->deferred_signals |= STOPTHREAD_BIT(ret_s->signal);
	}
}

/* Interrupts the thread in a call that does not return. */
static int abandon(struct remote *r)
{
	struct user_regs_struct ignored;
	r->is_at_exit = false;
	return tracee_interrupt(r->t.tid, r->t.is_child, clock_mono_ns() + 10 * NS_PER_SEC,
				&ignored);
}

static int run_or_abandon(struct remote *r, int request, const char *what,
			  struct tracee_stop *ret_s, struct user_regs_struct *regs, struct err *err)
{
	int rc = run_until(r, request, false, clock_mono_ns() + r->t.timeout_ns, ret_s, regs);
	if (rc == -ETIMEDOUT && abandon(r) == -ESRCH)
		rc = -ESRCH;
	return rc ? fail(r, rc, what, err) : 0;
}

/* From the entry of rt_sigreturn to its exit: then all is restored. */
static int complete_return(struct remote *r, struct err *err)
{
	struct tracee_stop s;
	struct user_regs_struct regs;
	if (r->place != PLACE_RETURN)
		return 0;
	TRY(run_or_abandon(r, PTRACE_SYSCALL, "resume a thread", &s, &regs, err));
	r->place = PLACE_OWN;
	r->is_blocked = false;
	r->is_at_exit = true;
	return 0;
}

/* ---- the chain ------------------------------------------------------------------------------- */

/* A signal that the thread neither handles nor blocks, and that is ignored by default. */
static int choose_notify(const struct stopped_thread *t)
{
	static const int ignored[] = {SIGURG, SIGWINCH, SIGCHLD};
	for (size_t i = 0; i < ARRAY_LEN(ignored) && !t->has_filter; i++)
		if (!((t->caught | t->mask) & STOPTHREAD_BIT(ignored[i])))
			return ignored[i];
	return 0;
}

/* The number before an interrupted `mov $NR, %eax; syscall`, or -1. */
static int64_t read_restarted_nr(struct remote *r)
{
	uint8_t b[7];
	int32_t nr;
	if (r->t.regs.orig_rax != SYS_restart_syscall ||
	    remote_read(r, r->t.regs.rip - sizeof(b), b, sizeof(b), NULL) || b[0] != 0xb8 ||
	    b[5] != 0x0f || b[6] != 0x05)
		return -1;
	memcpy(&nr, b + 1, sizeof(nr));
	return nr;
}

/* Reads what the chains are to restore. */
static int read_own_state(struct remote *r)
{
	if (r->own.tid)
		return 0;
	if (!r->xstate)
		r->xstate = xcalloc(1, XSTATE_BYTES_MAX);
	struct iovec v = {r->xstate, XSTATE_BYTES_MAX};
	if (ptrace(PTRACE_GETREGSET, r->t.tid, NT_X86_XSTATE, &v))
		return -errno;
	r->own = (struct returnchain_state){.regs = r->t.regs,
					    .mask = r->t.mask,
					    .xstate = r->xstate,
					    .nr_xstate = v.iov_len,
					    .tid = r->t.ns_tid,
					    .notify = choose_notify(&r->t),
					    .restarted_nr = read_restarted_nr(r)};
	return 0;
}

static int write_chain(struct remote *r, uint64_t top, uint64_t *ret_addr, struct err *err)
{
	CLEANUP(free_p) uint8_t *bytes = xmalloc(returnchain_bytes_max());
	uint64_t addr;
	int rc = read_own_state(r);
	if (rc)
		return fail(r, rc, "save the state of a thread", err);
	size_t n = returnchain_make(&r->code, &r->own, top, bytes, &addr);
	TRY(remote_write(r, addr, bytes, n, err));
	*ret_addr = addr;
	return 0;
}

static void set_scratch(struct remote *r, uint64_t start)
{
	r->scratch = start;
	r->scratch_end = start + (r->t.stack_bytes && r->t.has_filter ? REMOTE_SCRATCH_FILTER_BYTES
								      : REMOTE_SCRATCH_BYTES);
}

/*
 * Writes the first chain. With a filter no area can be mapped: then scratch memory, chain and the
 * stack of functions are below the thread's red zone, in this order.
 */
static int make_chain(struct remote *r, struct err *err)
{
	uint64_t top = r->t.regs.rsp - STOPTHREAD_RED_ZONE;
	if (r->chain)
		return 0;
	if (r->caller_area) {
		top = r->caller_area + REMOTE_STACK_BYTES;
		set_scratch(r, top);
	} else if (r->t.has_filter) {
		top = (top - REMOTE_SCRATCH_FILTER_BYTES) & ~63ull;
		set_scratch(r, top);
	}
	TRY(write_chain(r, top, &r->chain, err));
	if (r->caller_area || r->t.has_filter)
		r->call_chain = r->chain;
	return 0;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* The thread's registers with @pc and arguments; system calls take the fourth in r10. */
static struct user_regs_struct regs_for(const struct remote *r, uint64_t pc, uint64_t sp,
					const uint64_t args[REMOTE_ARGS_MAX])
{
	struct user_regs_struct regs = r->t.regs;
	regs.rip = pc;
	regs.rsp = sp;
	regs.rdi = args[0];
	regs.rsi = args[1];
	regs.rdx = args[2];
	regs.rcx = regs.r10 = args[3];
	regs.r8 = args[4];
	regs.r9 = args[5];
	regs.orig_rax = ~0ull;
	regs.eflags &= ~(unsigned long long)(FLAG_TF | FLAG_DF | FLAG_AC);
	return regs;
}

/* Sets the registers of a call, whose return address is in the chain, and blocks signals. */
static int enter(struct remote *r, const struct user_regs_struct *regs)
{
	uint64_t mask = ~STOPTHREAD_SYNCHRONOUS;
	if (r->own.notify)
		mask &= ~STOPTHREAD_BIT(r->own.notify);
	TRY(tracee_set_regs(r->t.tid, regs));
	r->place = PLACE_CALL;
	if (r->is_blocked)
		return 0;
	if (ptrace(PTRACE_SETSIGMASK, r->t.tid, sizeof(mask), &mask))
		return -errno;
	r->is_blocked = true;
	return 0;
}

int remote_syscall(struct remote *r, long nr, const uint64_t args[REMOTE_ARGS_MAX],
		   int64_t *ret_result, struct err *err)
{
	struct tracee_stop s;
	if (r->is_gone)
		return fail(r, -ESRCH, "make a system call", err);
	if (r->t.has_filter) {
		err_set(err, -EPERM,
			"pid %d has a seccomp filter: assay makes no system call in it", r->t.pid);
		return err_hint(
			err, "run assay with CAP_SYS_ADMIN (sudo, on the host), which can suspend "
			     "the filter during the call");
	}
	TRY(make_chain(r, err));
	TRY(complete_return(r, err));
	struct user_regs_struct regs =
		regs_for(r, r->code.syscall_ret, r->chain + RETURNCHAIN_SYSCALL * 8, args);
	regs.rax = (unsigned long long)nr;
	int rc = enter(r, &regs);
	if (rc)
		return fail(r, rc, "make a system call", err);
	for (int i = 0; i < 2; i++) { /* its entry, its exit */
		TRY(run_or_abandon(r, PTRACE_SYSCALL, "make a system call", &s, &regs, err));
		if (s.signal != SYSCALL_STOP || regs.rip != r->code.syscall_ret + 2)
			return err_set(err, -EFAULT, "a system call in pid %d ended at 0x%llx",
				       r->t.pid, regs.rip);
	}
	r->is_at_exit = true;
	*ret_result = (int64_t)regs.rax;
	return 0;
}

static int map_area(struct remote *r, struct err *err)
{
	TRY(make_chain(r, err));
	if (r->call_chain)
		return 0;
	const uint64_t args[REMOTE_ARGS_MAX] = {
		0, REMOTE_AREA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, ~0ull,
		0};
	int64_t got = 0;
	TRY(remote_syscall(r, SYS_mmap, args, &got, err));
	if (got < 0 && got > -4096)
		return fail(r, (int)got, "map memory", err);
	r->own_area = (uint64_t)got;
	set_scratch(r, r->own_area + REMOTE_STACK_BYTES);
	return write_chain(r, r->own_area + REMOTE_STACK_BYTES, &r->call_chain, err);
}

static int unmap_area(struct remote *r)
{
	int64_t got = 0;
	uint64_t args[REMOTE_ARGS_MAX] = {r->own_area, REMOTE_AREA_BYTES};
	r->own_area = 0;
	return remote_syscall(r, SYS_munmap, args, &got, NULL);
}

int remote_scratch(struct remote *r, size_t nr_bytes, uint64_t *ret_addr, struct err *err)
{
	TRY(map_area(r, err));
	nr_bytes = (nr_bytes + 63) & ~(size_t)63;
	if (nr_bytes > r->scratch_end - r->scratch)
		return err_set(err, -ENOMEM, "no scratch memory left in pid %d", r->t.pid);
	*ret_addr = r->scratch;
	r->scratch += nr_bytes;
	return 0;
}

/* Runs a function until the chain's signal, or until the entry of the chain's rt_sigreturn. */
static int run_function(struct remote *r, struct user_regs_struct *regs, struct err *err)
{
	int request = r->own.notify ? PTRACE_CONT : PTRACE_SYSCALL;
	for (;;) {
		struct tracee_stop s;
		TRY(run_or_abandon(r, request, "call a function", &s, regs, err));
		bool is_return = regs->orig_rax == SYS_rt_sigreturn &&
				 regs->rip == r->code.syscall_ret + 2 &&
				 regs->rsp == r->call_chain + RETURNCHAIN_SIGRETURN * 8;
		if (s.signal == SYSCALL_STOP && is_return)
			r->place = PLACE_RETURN;
		if (is_notified(r, &s, regs) || r->place == PLACE_RETURN)
			return 0;
		if (s.signal != SYSCALL_STOP)
			return err_set(err, -EFAULT,
				       "a function called in pid %d failed at 0x%llx by signal %d",
				       r->t.pid, regs->rip, s.signal);
	}
}

/* Without handlers a program may well have a filter that kills it for rt_sigreturn. */
static int check_filter(const struct remote *r, struct err *err)
{
	if (!r->t.has_filter || r->t.caught)
		return 0;
	err_set(err, -EPERM,
		"pid %d has a seccomp filter that may not permit rt_sigreturn: assay "
		"calls no function in it",
		r->t.pid);
	return err_hint(err, "run assay with CAP_SYS_ADMIN (sudo, on the host), which can suspend "
			     "the filter during the call");
}

int remote_call(struct remote *r, uint64_t function, const uint64_t args[REMOTE_ARGS_MAX],
		int32_t *ret_result, struct err *err)
{
	if (r->is_gone)
		return fail(r, -ESRCH, "call a function", err);
	TRY(check_filter(r, err));
	if (ret_result && !r->code.save_eax)
		return err_set(err, -ENOEXEC,
			       "the code of pid %d has no instruction by which assay could get "
			       "the result of a function",
			       r->t.pid);
	TRY(map_area(r, err));
	TRY(complete_return(r, err));
	struct user_regs_struct regs = regs_for(r, function, r->call_chain, args);
	regs.rax = 0;
	regs.rbp = 0; /* ends frame pointer chains */
	r->has_called = true;
	int rc = enter(r, &regs);
	if (rc)
		return fail(r, rc, "call a function", err);
	TRY(run_function(r, &regs, err));
	if (ret_result)
		memcpy(ret_result, (const char *)&regs + r->code.saved_off, sizeof(*ret_result));
	return 0;
}

/* ---- sessions -------------------------------------------------------------------------------- */

static void remote_destroy(struct remote *r)
{
	if (!r)
		return;
	host_boost_end(&r->t.boost);
	close_p(&r->t.mem_fd);
	heap_ranges_release(&r->t.avoid);
	heap_ranges_release(&r->t.stacks);
	free(r->xstate);
	free(r);
}

static void remote_destroy_p(struct remote **r)
{
	remote_destroy(*r);
}

static int prepare(struct remote **ret_r, int32_t pid, const struct remote_options *options,
		   struct err *err)
{
	int fd = host_open_mem(pid, O_RDWR);
	if (fd == -ENOENT)
		return err_set(err, -ESRCH, "pid %d has ended", pid);
	/* EACCES: ptrace fails as well, and explains it. */
	struct remote *r = xcalloc(1, sizeof(*r));
	r->t.pid = pid;
	r->t.mem_fd = fd;
	r->t.timeout_ns = options && options->timeout_ns ? options->timeout_ns : TIMEOUT_NS;
	if (options) {
		for (size_t i = 0; options->avoid && i < options->avoid->n; i++)
			vec_push(&r->t.avoid, options->avoid->p[i]);
		heap_ranges_join(&r->t.avoid, 0);
		r->caller_area = options->area;
	}
	*ret_r = r;
	if (r->caller_area)
		return 0;
	r->t.stack_bytes = returnchain_bytes_max() + REMOTE_SCRATCH_FILTER_BYTES + STACK_BYTES_MIN;
	return 0;
}

int remote_open(struct remote **ret_r, int32_t pid, const struct remote_options *options,
		struct err *err)
{
	CLEANUP(remote_destroy_p) struct remote *r = NULL;
	TRY(prepare(&r, pid, options, err));
	int rc = r->t.mem_fd >= 0 ? returnchain_find_code(&r->code, pid, r->t.mem_fd, err) : 0;
	TRY(rc);
	host_boost_begin(&r->t.boost);
	TRY(stopthread_find(&r->t, err));
	*ret_r = TAKE(r);
	return 0;
}

int remote_open_stopped(struct remote **ret_r, int32_t pid, int32_t tid,
			const struct remote_options *options, struct err *err)
{
	CLEANUP(remote_destroy_p) struct remote *r = NULL;
	struct proc_task facts = {0};
	TRY(prepare(&r, pid, options, err));
	TRY(returnchain_find_code(&r->code, pid, r->t.mem_fd, err));
	r->t.tid = tid;
	r->is_caller_tracee = true;
	r->t.is_child = tid == pid && tracee_is_child(pid);
	host_boost_begin(&r->t.boost);
	host_boost_thread(&r->t.boost, tid);
	r->t.stopped_at_ns = clock_mono_ns();
	int rc = proc_task(pid, tid, &facts);
	r->t.caught = facts.caught;
	r->t.ns_tid = facts.ns_tid;
	r->t.has_filter = facts.seccomp != 0;
	if (!rc)
		rc = tracee_get_regs(tid, &r->t.regs);
	if (!rc)
		rc = stopthread_read_stacks(&r->t, NULL);
	if (!rc)
		rc = stopthread_prepare(&r->t, false);
	if (rc)
		return err_set(err, rc == -EAGAIN ? -EIO : rc,
			       "cannot use the traced thread %d: %s", tid, strerror(-rc));
	*ret_r = TAKE(r);
	return 0;
}

/* Moves the thread to an event stop. It executes no instruction. */
static int move_to_event_stop(struct remote *r)
{
	struct tracee_stop s;
	struct user_regs_struct regs;
	if (ptrace(PTRACE_INTERRUPT, r->t.tid, 0, 0))
		return -errno;
	return run_until(r, PTRACE_CONT, true, clock_mono_ns() + r->t.timeout_ns, &s, &regs);
}

/* The order: see the comment at the top. */
static int restore_thread(struct remote *r)
{
	TRY(complete_return(r, NULL));
	if (r->place == PLACE_OWN)
		return 0;
	/* The kernel restarts an interrupted system call only from an event stop or signal stop. */
	TRY(r->is_at_exit ? move_to_event_stop(r) : 0);
	struct iovec v = {r->xstate, r->own.nr_xstate};
	if (r->has_called && ptrace(PTRACE_SETREGSET, r->t.tid, NT_X86_XSTATE, &v))
		return -errno;
	if (r->is_blocked && ptrace(PTRACE_SETSIGMASK, r->t.tid, sizeof(r->t.mask), &r->t.mask))
		return -errno;
	return tracee_set_regs(r->t.tid, &r->t.regs);
}

/* Sends the signals again that could not be blocked. */
static void send_deferred(const struct remote *r)
{
	for (int s = 1; s <= 64; s++) {
		if (!(r->deferred_signals >> (s - 1) & 1))
			continue;
		if (s == SIGSTOP)
			(void)kill(r->t.pid, s);
		else
			(void)syscall(SYS_tgkill, r->t.pid, r->t.tid, s);
	}
}

void remote_close(struct remote *r)
{
	if (!r)
		return;
	if (r->t.is_stopped) {
		if (!r->is_gone && r->own_area)
			(void)unmap_area(r); /* on failure the area stays mapped */
		if (!r->is_gone)
			(void)restore_thread(r); /* fails only if it was killed */
		if (r->is_caller_tracee)
			(void)tracee_listen(r->t.tid, r->t.is_child,
					    clock_mono_ns() + r->t.timeout_ns);
		else
			tracee_release(r->t.tid, r->t.was_traced);
		send_deferred(r);
	}
	remote_destroy(r);
}

void remote_close_p(struct remote **r)
{
	remote_close(*r);
	*r = NULL;
}

int32_t remote_tid(const struct remote *r)
{
	return r->t.tid;
}

uint64_t remote_thread_pointer(const struct remote *r)
{
	return r->t.regs.fs_base;
}

bool remote_has_filter(const struct remote *r)
{
	return r->t.has_filter;
}

void remote_keep_rights(void)
{
	hostfile_forget();
	/* SYS_ADMIN is there only if the target has a seccomp filter to suspend. */
	host_drop(HOST_CAPS_TRACE | HOST_CAP_BIT(CAP_DAC_READ_SEARCH) |
		  HOST_CAP_BIT(CAP_SYS_ADMIN));
}

void remote_undo(int (*undo)(void *ctx), void *ctx)
{
	for (int i = 0; i < UNDO_TRIES; i++) {
		int rc = undo(ctx);
		if (!rc || rc == -ESRCH)
			return;
		if (rc == -ETIMEDOUT) {
			hostfile_restart();
			i += UNDO_TRIES / 10; /* each leaves a reader that does not answer */
		}
		(void)nanosleep(&(struct timespec){.tv_nsec = UNDO_PAUSE_NS}, NULL);
	}
}

uint64_t remote_stopped_ns(const struct remote *r)
{
	return clock_mono_ns() - r->t.stopped_at_ns;
}

#endif
