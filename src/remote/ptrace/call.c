/*
 * What a borrowed thread is made to do; see remote.h.
 *
 * A system call: the pc is put on a `syscall` instruction that is there (the vdso has some), which
 * is stepped over. A function: it is called with a return address at which nothing can be mapped,
 * so that its return is a fault that only we see. No text is written for either.
 *
 * Signals: all that can be blocked are, so they stay pending in the kernel with all that belongs to
 * them; those that the processor raises and SIGSTOP are held and sent again at the end. orig_rax
 * = -1 tells the kernel that no system call is to be restarted from our registers.
 */
#ifdef __x86_64__ /* others: remote_none.c */
#include "base/base.h"
#include "remote/ptrace/remotepriv.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "host/proc.h"

/* In the kernel's half: canonical, never mapped for user space. */
#define RETURN_ADDR 0xffffffffff000a50ull
#define RED_ZONE    128u
#define FLAG_TF     0x100u
#define FLAG_DF     0x400u
#define FLAG_AC     0x40000u

#define BIT(sig) (1ull << ((sig)-1))
/* Raised by instructions: blocked ones would reset the program's handlers (force_sig). */
#define SYNCHRONOUS (BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGILL) | BIT(SIGFPE) | BIT(SIGTRAP))

int remote_fail(struct remote *r, int code, const char *what, struct err *err)
{
	if (code == -ESRCH) {
		r->is_gone = true;
		return err_set(err, code, "cannot %s: pid %d has ended or executed another program",
			       what, r->pid);
	}
	return err_set(err, code, "cannot %s in pid %d: %s", what, r->pid, strerror(-code));
}

int remote_block_signals(struct remote *r)
{
	uint64_t all = ~SYNCHRONOUS;
	if (ptrace(PTRACE_GETSIGMASK, r->tid, sizeof(r->saved_mask), &r->saved_mask))
		return -errno;
	if (ptrace(PTRACE_SETSIGMASK, r->tid, sizeof(all), &all))
		return -errno;
	r->has_mask = true;
	return 0;
}

static bool is_from_instruction(int32_t tid, int sig)
{
	siginfo_t si = {0};
	return sig < 64 && (BIT(sig) & SYNCHRONOUS) && !ptrace(PTRACE_GETSIGINFO, tid, 0, &si) &&
	       si.si_code > 0;
}

static int run_until(struct remote *r, int request, uint64_t deadline_ns, struct tracee_stop *ret_s,
		     struct user_regs_struct *ret_regs)
{
	for (;;) {
		if (ptrace(request, r->tid, 0, 0))
			return -errno;
		TRY(tracee_wait(r->tid, r->is_child, deadline_ns, ret_s));
		if (ret_s->event == PTRACE_EVENT_STOP)
			continue; /* the process is being stopped, or continued: not our thread */
		if (ret_s->signal == (SIGTRAP | 0x80) || is_from_instruction(r->tid, ret_s->signal))
			return tracee_get_regs(r->tid, ret_regs);
		if (ret_s->signal && ret_s->signal <= 64)
			r->held |= BIT(ret_s->signal);
	}
}

/* Our thread comes back from what does not end, wherever it is. */
static int abandon(struct remote *r)
{
	struct user_regs_struct ignored;
	return tracee_interrupt(r->tid, r->is_child, clock_mono_ns() + 10 * NS_PER_SEC, &ignored);
}

static int run_or_abandon(struct remote *r, int request, const char *what,
			  struct tracee_stop *ret_s, struct user_regs_struct *regs, struct err *err)
{
	int rc = run_until(r, request, clock_mono_ns() + r->timeout_ns, ret_s, regs);
	if (rc == -ETIMEDOUT && abandon(r) == -ESRCH)
		rc = -ESRCH;
	return rc ? remote_fail(r, rc, what, err) : 0;
}

/* Its end is a stop that a program which ignores SIGTRAP does not notice. */
static int step_quietly(struct remote *r, struct user_regs_struct *regs, struct err *err)
{
	struct tracee_stop s;
	long options = PTRACE_O_TRACESYSGOOD | (r->is_suspended ? PTRACE_O_SUSPEND_SECCOMP : 0);
	if (ptrace(PTRACE_SETOPTIONS, r->tid, 0, options))
		return remote_fail(r, -errno, "make a system call", err);
	for (int i = 0; i < 2; i++) { /* its entry, its exit */
		r->is_at_syscall = true;
		TRY(run_or_abandon(r, PTRACE_SYSCALL, "make a system call", &s, regs, err));
	}
	return 0;
}

/* As the thread stands, but at @pc with arguments: the fourth of system calls is in r10. */
static struct user_regs_struct regs_for(const struct remote *r, uint64_t pc,
					const uint64_t args[REMOTE_ARGS_MAX])
{
	struct user_regs_struct regs = r->saved;
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
		return remote_fail(r, -ESRCH, "make a system call", err);
	if (r->has_filter) {
		err_set(err, -EPERM,
			"pid %d has a seccomp filter: it gets no system call that it "
			"does not make itself",
			r->pid);
		return err_hint(err, "run assay with CAP_SYS_ADMIN (sudo, on the host): then the "
				     "filter can be suspended for the call");
	}
	TRY(remote_find_syscall(r, err));
	struct user_regs_struct regs = regs_for(r, r->syscall_insn, args);
	regs.rax = (unsigned long long)nr;
	int rc = tracee_set_regs(r->tid, &regs);
	if (rc)
		return remote_fail(r, rc, "make a system call", err);
	TRY(r->ignored & BIT(SIGTRAP)
		    ? step_quietly(r, &regs, err)
		    : run_or_abandon(r, PTRACE_SINGLESTEP, "make a system call", &s, &regs, err));
	if (regs.rip != r->syscall_insn + 2)
		return err_set(err, -EFAULT, "a system call in pid %d ended at 0x%llx", r->pid,
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
	if (ptrace(PTRACE_GETREGSET, r->tid, NT_X86_XSTATE, &v))
		return -errno;
	r->nr_xstate = v.iov_len;
	return 0;
}

static int map_area(struct remote *r, struct err *err)
{
	if (r->stack)
		return 0;
	if (r->has_filter && !r->lent) {
		r->scratch = (r->saved.rsp - RED_ZONE - REMOTE_SCRATCH_BYTES) & ~63ull;
		r->scratch_end = r->scratch + REMOTE_SCRATCH_BYTES;
		r->stack = r->scratch;
		return 0;
	}
	if (!r->lent) {
		const uint64_t args[REMOTE_ARGS_MAX] = {0,
							REMOTE_AREA_BYTES,
							PROT_READ | PROT_WRITE,
							MAP_PRIVATE | MAP_ANONYMOUS,
							~0ull,
							0};
		int64_t got = 0;
		TRY(remote_syscall(r, SYS_mmap, args, &got, err));
		if (got < 0 && got > -4096)
			return remote_fail(r, (int)got, "map memory", err);
		r->area = (uint64_t)got;
	}
	uint64_t area = r->lent ? r->lent : r->area;
	r->stack = area + REMOTE_STACK_BYTES;
	r->scratch = r->stack;
	r->scratch_end = area + REMOTE_AREA_BYTES;
	return 0;
}

int remote_drop_area(struct remote *r)
{
	int64_t got = 0;
	uint64_t args[REMOTE_ARGS_MAX] = {r->area, REMOTE_AREA_BYTES};
	r->area = 0;
	return remote_syscall(r, SYS_munmap, args, &got, NULL);
}

int remote_scratch(struct remote *r, size_t nr_bytes, uint64_t *ret_addr, struct err *err)
{
	TRY(map_area(r, err));
	nr_bytes = (nr_bytes + 63) & ~(size_t)63;
	if (nr_bytes > r->scratch_end - r->scratch)
		return err_set(err, -ENOMEM, "no scratch memory left in pid %d", r->pid);
	*ret_addr = r->scratch;
	r->scratch += nr_bytes;
	return 0;
}

int remote_call(struct remote *r, uint64_t function, const uint64_t args[REMOTE_ARGS_MAX],
		uint64_t *ret_result, struct err *err)
{
	struct tracee_stop s;
	if (r->is_gone)
		return remote_fail(r, -ESRCH, "call a function", err);
	TRY(map_area(r, err));
	int rc = save_xstate(r);
	if (rc)
		return remote_fail(r, rc, "save the state of a thread", err);
	struct user_regs_struct regs = regs_for(r, function, args);
	uint64_t back = RETURN_ADDR;
	regs.rsp = (r->stack & ~15ull) - 8; /* as behind a call */
	TRY(remote_write(r, regs.rsp, &back, sizeof(back), err));
	regs.rax = 0;
	regs.rbp = 0; /* walks by frame pointers end here */
	rc = tracee_set_regs(r->tid, &regs);
	if (rc)
		return remote_fail(r, rc, "call a function", err);
	TRY(run_or_abandon(r, PTRACE_CONT, "call a function", &s, &regs, err));
	if (s.signal != SIGSEGV || regs.rip != RETURN_ADDR)
		return err_set(err, -EFAULT,
			       "a function called in pid %d failed at 0x%llx by signal %d", r->pid,
			       regs.rip, s.signal);
	*ret_result = regs.rax;
	return 0;
}

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
		ssize_t n = pread(r->mem_fd, b, MIN(sizeof(b), range->end - at), (off_t)at);
		for (ssize_t i = 0; i + 1 < n; i++)
			if (b[i] == 0x0f && b[i + 1] == 0x05)
				return at + (uint64_t)i;
	}
	return 0;
}

int remote_find_syscall(struct remote *r, struct err *err)
{
	if (r->syscall_insn)
		return 0;
	struct code c = {0};
	int rc = proc_maps(r->pid, add_code, &c, err);
	CLEANUP(heap_ranges_release) struct heap_ranges others = c.others;
	TRY(rc);
	if (c.vdso.start)
		r->syscall_insn = find_in(r, &c.vdso);
	/* The C library is mapped last among binaries; the program itself may be large. */
	for (size_t i = others.n; i-- && !r->syscall_insn;)
		r->syscall_insn = find_in(r, &others.p[i]);
	if (!r->syscall_insn)
		return err_set(err, -ENOEXEC, "no system call instruction in the code of pid %d",
			       r->pid);
	return 0;
}

#endif
