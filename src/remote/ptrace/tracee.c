/* Single threads by ptrace; see tracee.h. */
#include "base/base.h"
#include "remote/ptrace/tracee.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "host/limits.h"
#include "host/privileges.h"
#include "host/proc.h"
#include "host/procmem.h"

/* In-kernel return value of a system call that restarts unless a signal handler runs. */
#define KERNEL_ERESTARTNOHAND 514

/* Sets the error for a refused ptrace: checks the possible reasons, most likely first. */
static int explain_refusal(int32_t pid, int32_t tid, struct err *err)
{
	struct proc_task f;
	if (proc_task(pid, tid, &f))
		return err_set(err, -ESRCH, "pid %d has ended", pid);
	if (f.state == 'Z' || f.state == 'X')
		return err_set(err, -ESRCH, "pid %d has ended", pid);
	int64_t yama = host_sysctl("yama/ptrace_scope", 0);
	uint32_t uid = 0;
	err_set(err, -EPERM, "cannot attach to pid %d by ptrace: %s", pid, strerror(EPERM));
	if (yama >= 3)
		return err_hint(err, "kernel.yama.ptrace_scope=3 forbids it until the next boot");
	if (!geteuid() || host_has_cap(CAP_SYS_PTRACE))
		return err_hint(err,
				"as root this needs CAP_SYS_PTRACE, also for the process's user "
				"namespace (in a container: --cap-add SYS_PTRACE, or run "
				"assay on the host)");
	if (!proc_uid(pid, &uid, NULL) && uid != getuid())
		return err_hint(err, "it belongs to another user: run assay with sudo");
	if (yama > 0)
		return err_hint(err,
				"run assay with sudo, or allow it: sysctl "
				"kernel.yama.ptrace_scope=0 (now %" PRId64 ")",
				yama);
	return err_hint(err, "the process may have made itself undumpable (prctl, setuid, file "
			     "capabilities): run assay with sudo");
}

int tracee_seize(int32_t pid, int32_t tid, unsigned long options, struct err *err)
{
	int32_t tracer = 0;
	unsigned seccomp;
	options |= PTRACE_O_TRACESYSGOOD;
	bool is_seized = !ptrace(PTRACE_SEIZE, tid, 0, options);
	if (!is_seized && errno == EPERM) {
		if (host_find_tracer(pid, tid, &tracer, &seccomp))
			return err_set(err, -ESRCH, "pid %d has ended", pid);
		if (tracer)
			return host_refuse_traced(pid, tracer, err);
		is_seized = !ptrace(PTRACE_SEIZE, tid, 0, options); /* a tracer has detached */
	}
	if (is_seized)
		return 0;
	if (errno == ESRCH)
		return err_set(err, -ESRCH, "pid %d has ended", pid);
	if (errno == EPERM)
		return explain_refusal(pid, tid, err);
	return err_sys(err, "cannot attach to pid %d by ptrace", pid);
}

/*
 * Waits for SIGCHLD, which announces a stop, with the signal blocked. Busy polling would take the
 * CPU from the thread that has to stop, if both run on the same one. Another thread of assay may
 * receive the signal instead, so each wait is short.
 */
struct sigchld_wait {
	sigset_t mask;      /* signal mask before */
	bool is_for_others; /* consumed a SIGCHLD of another process */
};

#define POLL_MIN_NS    100000u
#define POLL_SHIFT_MAX 4u

static void sigchld_block(struct sigchld_wait *n)
{
	sigset_t set;
	*n = (struct sigchld_wait){0};
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &set, &n->mask);
}

static void sigchld_sleep(struct sigchld_wait *n, int32_t tid, unsigned turn)
{
	sigset_t set;
	siginfo_t si;
	struct timespec t = {.tv_nsec = (long)POLL_MIN_NS << MIN(turn, POLL_SHIFT_MAX)};
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	if (sigtimedwait(&set, &si, &t) == SIGCHLD)
		n->is_for_others |= si.si_pid != tid ||
				    (si.si_code != CLD_TRAPPED && si.si_code != CLD_STOPPED);
}

static void sigchld_restore(struct sigchld_wait *n)
{
	pthread_sigmask(SIG_SETMASK, &n->mask, NULL);
	if (n->is_for_others)
		(void)kill(getpid(), SIGCHLD);
}

/* Whether the thread has stopped or ended; does not consume the event. */
static bool has_event(int32_t tid, siginfo_t *ret_si)
{
	*ret_si = (siginfo_t){0};
	while (waitid(P_PID, (id_t)tid, ret_si, WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL))
		if (errno != EINTR) {
			ret_si->si_code = CLD_EXITED;
			return true;
		}
	return ret_si->si_pid != 0;
}

static int wait_for_stop(struct sigchld_wait *n, int32_t tid, bool is_child, uint64_t deadline_ns,
			 struct tracee_stop *ret_s)
{
	siginfo_t si;
	for (unsigned turn = 0; !has_event(tid, &si); turn++) {
		if (clock_mono_ns() > deadline_ns)
			return -ETIMEDOUT;
		sigchld_sleep(n, tid, turn);
	}
	bool is_stop = si.si_code == CLD_TRAPPED || si.si_code == CLD_STOPPED;
	/* A dead tracee must be reaped by its tracer; our own child by our caller. */
	if (is_stop || !is_child)
		(void)waitid(P_PID, (id_t)tid, &si,
			     (is_stop ? WSTOPPED : WEXITED) | WNOHANG | __WALL);
	if (!is_stop)
		return -ESRCH;
	ret_s->signal = si.si_status & 0xff;
	ret_s->event = si.si_status >> 8;
	return 0;
}

int tracee_wait(int32_t tid, bool is_child, uint64_t deadline_ns, struct tracee_stop *ret_s)
{
	struct sigchld_wait n;
	sigchld_block(&n);
	int rc = wait_for_stop(&n, tid, is_child, deadline_ns, ret_s);
	sigchld_restore(&n);
	return rc;
}

int tracee_get_regs(int32_t tid, struct user_regs_struct *ret_regs)
{
	struct iovec v = {ret_regs, sizeof(*ret_regs)};
	return ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &v) ? -errno : 0;
}

int tracee_set_regs(int32_t tid, const struct user_regs_struct *regs)
{
	struct user_regs_struct copy = *regs;
	struct iovec v = {&copy, sizeof(copy)};
	return ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &v) ? -errno : 0;
}

#if defined(__x86_64__)

static bool restart_call(struct user_regs_struct *regs)
{
	if ((int64_t)regs->rax != -EINTR)
		return false;
	switch ((int64_t)regs->orig_rax) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case 441: /* epoll_pwait2, newer than some headers */
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_rt_sigtimedwait:
	case SYS_io_getevents:
	case 426: /* io_uring_enter */
	case SYS_read:
	case SYS_readv:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_write:
	case SYS_writev:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_accept:
	case SYS_accept4:
		regs->rax = (unsigned long long)-KERNEL_ERESTARTNOHAND;
		return true;
	}
	return false;
}

#else

static bool restart_call(struct user_regs_struct *regs)
{
	(void)regs;
	return false;
}

#endif

int tracee_interrupt(int32_t tid, bool is_child, uint64_t deadline_ns,
		     struct user_regs_struct *ret_regs)
{
	struct tracee_stop s;
	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0))
		return -errno;
	for (;;) {
		TRY(tracee_wait(tid, is_child, deadline_ns, &s));
		if (s.event == PTRACE_EVENT_STOP)
			break;
		/* Another stop came first: deliver its signal. */
		if (ptrace(PTRACE_CONT, tid, 0, s.event ? 0 : s.signal))
			return -errno;
	}
	TRY(tracee_get_regs(tid, ret_regs));
	if (restart_call(ret_regs))
		TRY(tracee_set_regs(tid, ret_regs));
	return 0;
}

void tracee_detach(int32_t tid)
{
	/* ESRCH: it was killed while stopped. */
	(void)ptrace(PTRACE_DETACH, tid, 0, 0);
}

int tracee_acquire(int32_t pid, int32_t tid, unsigned long options, bool *ret_was_traced,
		   struct err *err)
{
	struct proc_task f;
	*ret_was_traced = !proc_task(pid, tid, &f) && f.tracer == (int32_t)syscall(SYS_gettid);
	return *ret_was_traced ? 0 : tracee_seize(pid, tid, options, err);
}

void tracee_release(int32_t tid, bool was_traced)
{
	if (was_traced)
		(void)ptrace(PTRACE_CONT, tid, 0, 0);
	else
		tracee_detach(tid);
}

int tracee_listen(int32_t tid, bool is_child, uint64_t deadline_ns)
{
	struct tracee_stop s;
	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) || ptrace(PTRACE_CONT, tid, 0, 0))
		return -errno;
	/* The interrupt takes effect before the thread executes an instruction. */
	return tracee_wait(tid, is_child, deadline_ns, &s);
}

bool tracee_is_child(int32_t pid)
{
	int32_t parent = 0;
	return !proc_parent(pid, &parent, NULL) && parent == getpid();
}
