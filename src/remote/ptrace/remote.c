/*
 * Sessions on one thread of another process; see remote.h.
 *
 * remote_open     prepare (open files, merge ranges) ... [ stop a thread, check it ]
 * remote_syscall                               single-step one syscall instruction
 * remote_call                                  continue until the function returns
 * remote_close                                 [ restore registers and signals, detach ]
 *
 * From [ to ] the thread is kept from its own work.
 *
 * A system call: the pc is set to a `syscall` instruction that is already mapped (the vdso has
 * some), which is single-stepped. A function call: the return address is one where nothing can be
 * mapped, so the return raises a fault that only the tracer sees. Neither writes to the target's
 * code.
 *
 * Signals: all that can be blocked are blocked, so they stay pending in the kernel with their
 * siginfo. SIGSTOP and signals raised by instructions cannot; they are kept in deferred_signals and
 * sent again at the end. orig_rax = -1 prevents the kernel from restarting a system call with the
 * call's registers.
 */
#ifdef __x86_64__ /* others: remote_none.c */
#include "base/base.h"
#include "remote/ptrace/remote.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "host/proc.h"
#include "host/procmem.h"
#include "remote/ptrace/stopthread.h"
#include "remote/ptrace/tracee.h"

#define TIMEOUT_NS NS_PER_SEC

/* In the kernel's half: canonical, never mapped for user space. */
#define RETURN_ADDR 0xffffffffff000a50ull
#define RED_ZONE    128u
#define FLAG_TF     0x100u
#define FLAG_DF     0x400u
#define FLAG_AC     0x40000u

struct remote {
	struct stopped_thread t;
	bool is_caller_tracee; /* traced by the caller, and stays so (remote_open_stopped) */
	bool is_gone;          /* the target has ended or executed another program */
	bool is_at_syscall; /* stopped by PTRACE_SYSCALL: cannot restart a system call from there */
	uint64_t syscall_insn; /* address of one in the target; 0 = not found yet */
	uint8_t *xstate;
	size_t nr_xstate;     /* saved bytes; 0 = not saved */
	uint64_t own_area;    /* memory mapped in the target for the session; 0 = none */
	uint64_t caller_area; /* remote_options.area: not unmapped */
	uint64_t stack;       /* highest address of the stack for calls */
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

/* ---- calls ----------------------------------------------------------------------------------- */

struct code {
	struct heap_ranges others;
	struct heap_range vdso;
};

static int add_code(void *ctx, const struct proc_map *m, struct err *err UNUSED)
{
	struct code *c = ctx;
	struct heap_range range = {m->start, m->end};
	if (!strcmp(m->path, "[vdso]"))
		c->vdso = range;
	else if (m->is_exec && strcmp(m->path, "[vsyscall]") != 0)
		vec_push(&c->others, range);
	return 0;
}

static uint64_t find_in(const struct remote *r, const struct heap_range *range)
{
	uint8_t b[16384];
	for (uint64_t at = range->start; at < range->end; at += sizeof(b) - 1) {
		ssize_t n = pread(r->t.mem_fd, b, MIN(sizeof(b), range->end - at), (off_t)at);
		for (ssize_t i = 0; i + 1 < n; i++)
			if (b[i] == 0x0f && b[i + 1] == 0x05)
				return at + (uint64_t)i;
	}
	return 0;
}

static int find_syscall(struct remote *r, struct err *err)
{
	if (r->syscall_insn)
		return 0;
	struct code c = {0};
	int rc = proc_maps(r->t.pid, add_code, &c, err);
	CLEANUP(heap_ranges_release) struct heap_ranges others = c.others;
	TRY(rc);
	if (c.vdso.start)
		r->syscall_insn = find_in(r, &c.vdso);
	/* Backwards: the C library is mapped last, and the program itself may be large. */
	for (size_t i = others.n; i-- && !r->syscall_insn;)
		r->syscall_insn = find_in(r, &others.p[i]);
	if (!r->syscall_insn)
		return err_set(err, -ENOEXEC, "no system call instruction in the code of pid %d",
			       r->t.pid);
	return 0;
}

static bool is_from_instruction(int32_t tid, int sig)
{
	siginfo_t si = {0};
	return sig < 64 && (STOPTHREAD_BIT(sig) & STOPTHREAD_SYNCHRONOUS) &&
	       !ptrace(PTRACE_GETSIGINFO, tid, 0, &si) && si.si_code > 0;
}

static int run_until(struct remote *r, int request, uint64_t deadline_ns, struct tracee_stop *ret_s,
		     struct user_regs_struct *ret_regs)
{
	for (;;) {
		if (ptrace(request, r->t.tid, 0, 0))
			return -errno;
		TRY(tracee_wait(r->t.tid, r->t.is_child, deadline_ns, ret_s));
		if (ret_s->event == PTRACE_EVENT_STOP)
			continue; /* group-stop or SIGCONT of the process: run on */
		if (ret_s->signal == (SIGTRAP | 0x80) ||
		    is_from_instruction(r->t.tid, ret_s->signal))
			return tracee_get_regs(r->t.tid, ret_regs);
		if (ret_s->signal && ret_s->signal <= 64)
			r->deferred_signals |= STOPTHREAD_BIT(ret_s->signal);
	}
}

/* Interrupts the thread in a call that does not return. */
static int abandon(struct remote *r)
{
	struct user_regs_struct ignored;
	return tracee_interrupt(r->t.tid, r->t.is_child, clock_mono_ns() + 10 * NS_PER_SEC,
				&ignored);
}

static int run_or_abandon(struct remote *r, int request, const char *what,
			  struct tracee_stop *ret_s, struct user_regs_struct *regs, struct err *err)
{
	int rc = run_until(r, request, clock_mono_ns() + r->t.timeout_ns, ret_s, regs);
	if (rc == -ETIMEDOUT && abandon(r) == -ESRCH)
		rc = -ESRCH;
	return rc ? fail(r, rc, what, err) : 0;
}

/*
 * Makes the system call by PTRACE_SYSCALL: a single step's SIGTRAP would reset the handler of a
 * program that ignores SIGTRAP.
 */
static int step_by_syscall_stops(struct remote *r, struct user_regs_struct *regs, struct err *err)
{
	struct tracee_stop s;
	long options =
		PTRACE_O_TRACESYSGOOD | (r->t.is_filter_suspended ? PTRACE_O_SUSPEND_SECCOMP : 0);
	if (ptrace(PTRACE_SETOPTIONS, r->t.tid, 0, options))
		return fail(r, -errno, "make a system call", err);
	for (int i = 0; i < 2; i++) { /* its entry, its exit */
		r->is_at_syscall = true;
		TRY(run_or_abandon(r, PTRACE_SYSCALL, "make a system call", &s, regs, err));
	}
	return 0;
}

/* The thread's registers with @pc and arguments; system calls take the fourth in r10. */
static struct user_regs_struct regs_for(const struct remote *r, uint64_t pc,
					const uint64_t args[REMOTE_ARGS_MAX])
{
	struct user_regs_struct regs = r->t.regs;
	regs.rip = pc;
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
	TRY(find_syscall(r, err));
	struct user_regs_struct regs = regs_for(r, r->syscall_insn, args);
	regs.rax = (unsigned long long)nr;
	int rc = tracee_set_regs(r->t.tid, &regs);
	if (rc)
		return fail(r, rc, "make a system call", err);
	TRY(r->t.ignored & STOPTHREAD_BIT(SIGTRAP)
		    ? step_by_syscall_stops(r, &regs, err)
		    : run_or_abandon(r, PTRACE_SINGLESTEP, "make a system call", &s, &regs, err));
	if (regs.rip != r->syscall_insn + 2)
		return err_set(err, -EFAULT, "a system call in pid %d ended at 0x%llx", r->t.pid,
			       regs.rip);
	*ret_result = (int64_t)regs.rax;
	return 0;
}

static int save_xstate(struct remote *r)
{
	if (r->nr_xstate)
		return 0;
	size_t cap = 16384; /* with AMX tiles it is 11 kB */
	if (!r->xstate)
		r->xstate = xmalloc(cap);
	struct iovec v = {r->xstate, cap};
	if (ptrace(PTRACE_GETREGSET, r->t.tid, NT_X86_XSTATE, &v))
		return -errno;
	r->nr_xstate = v.iov_len;
	return 0;
}

static int map_area(struct remote *r, struct err *err)
{
	if (r->stack)
		return 0;
	if (r->t.has_filter && !r->caller_area) {
		r->scratch = (r->t.regs.rsp - RED_ZONE - REMOTE_SCRATCH_BYTES) & ~63ull;
		r->scratch_end = r->scratch + REMOTE_SCRATCH_BYTES;
		r->stack = r->scratch;
		return 0;
	}
	if (!r->caller_area) {
		const uint64_t args[REMOTE_ARGS_MAX] = {0,
							REMOTE_AREA_BYTES,
							PROT_READ | PROT_WRITE,
							MAP_PRIVATE | MAP_ANONYMOUS,
							~0ull,
							0};
		int64_t got = 0;
		TRY(remote_syscall(r, SYS_mmap, args, &got, err));
		if (got < 0 && got > -4096)
			return fail(r, (int)got, "map memory", err);
		r->own_area = (uint64_t)got;
	}
	uint64_t area = r->caller_area ? r->caller_area : r->own_area;
	r->stack = area + REMOTE_STACK_BYTES;
	r->scratch = r->stack;
	r->scratch_end = area + REMOTE_AREA_BYTES;
	return 0;
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

int remote_call(struct remote *r, uint64_t function, const uint64_t args[REMOTE_ARGS_MAX],
		uint64_t *ret_result, struct err *err)
{
	struct tracee_stop s;
	if (r->is_gone)
		return fail(r, -ESRCH, "call a function", err);
	TRY(map_area(r, err));
	int rc = save_xstate(r);
	if (rc)
		return fail(r, rc, "save the state of a thread", err);
	struct user_regs_struct regs = regs_for(r, function, args);
	uint64_t back = RETURN_ADDR;
	regs.rsp = (r->stack & ~15ull) - 8; /* alignment as after a call */
	TRY(remote_write(r, regs.rsp, &back, sizeof(back), err));
	regs.rax = 0;
	regs.rbp = 0; /* ends frame pointer chains */
	rc = tracee_set_regs(r->t.tid, &regs);
	if (rc)
		return fail(r, rc, "call a function", err);
	TRY(run_or_abandon(r, PTRACE_CONT, "call a function", &s, &regs, err));
	if (s.signal != SIGSEGV || regs.rip != RETURN_ADDR)
		return err_set(err, -EFAULT,
			       "a function called in pid %d failed at 0x%llx by signal %d",
			       r->t.pid, regs.rip, s.signal);
	*ret_result = regs.rax;
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
	if (fd >= 0)
		(void)find_syscall(r, NULL); /* now, not while the thread is stopped */
	*ret_r = r;
	return 0;
}

int remote_open(struct remote **ret_r, int32_t pid, const struct remote_options *options,
		struct err *err)
{
	CLEANUP(remote_destroy_p) struct remote *r = NULL;
	TRY(prepare(&r, pid, options, err));
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
	r->t.tid = tid;
	r->is_caller_tracee = true;
	r->t.is_child = tid == pid && tracee_is_child(pid);
	host_boost_begin(&r->t.boost);
	host_boost_thread(&r->t.boost, tid);
	r->t.stopped_at_ns = clock_mono_ns();
	int rc = proc_task(pid, tid, &facts);
	r->t.ignored = facts.ignored;
	r->t.has_filter = facts.seccomp != 0;
	if (!rc)
		rc = tracee_get_regs(tid, &r->t.regs);
	if (!rc)
		rc = stopthread_prepare(&r->t, false);
	if (rc)
		return err_set(err, rc == -EAGAIN ? -EIO : rc,
			       "cannot use the traced thread %d: %s", tid, strerror(-rc));
	*ret_r = TAKE(r);
	return 0;
}

static int restore_thread(struct remote *r)
{
	if (r->is_at_syscall) {
		/* The kernel restarts an interrupted system call only from an event stop. */
		struct user_regs_struct ignored;
		r->is_at_syscall = false;
		TRY(tracee_set_regs(r->t.tid, &r->t.regs));
		if (ptrace(PTRACE_INTERRUPT, r->t.tid, 0, 0) || ptrace(PTRACE_CONT, r->t.tid, 0, 0))
			return -errno;
		TRY(tracee_interrupt(r->t.tid, r->t.is_child, clock_mono_ns() + r->t.timeout_ns,
				     &ignored));
	}
	struct iovec v = {r->xstate, r->nr_xstate};
	if (r->nr_xstate && ptrace(PTRACE_SETREGSET, r->t.tid, NT_X86_XSTATE, &v))
		return -errno;
	TRY(tracee_set_regs(r->t.tid, &r->t.regs));
	if (r->t.has_mask &&
	    ptrace(PTRACE_SETSIGMASK, r->t.tid, sizeof(r->t.saved_mask), &r->t.saved_mask))
		return -errno;
	return 0;
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

uint64_t remote_stopped_ns(const struct remote *r)
{
	return clock_mono_ns() - r->t.stopped_at_ns;
}

#endif
