/* A thread stopped and let go; see tracee.h. */
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
#include "host/proc.h"

/* What a system call returns inside the kernel when it is to be restarted unless a handler runs. */
#define KERNEL_ERESTARTNOHAND 514

/* Why ptrace was refused, most likely first. */
static int refused(int32_t pid, int32_t tid, struct err *err)
{
	struct proc_task f;
	if (proc_task(pid, tid, &f))
		return err_set(err, -ESRCH, "pid %d has ended", pid);
	if (f.tracer) {
		err_set(err, -EPERM, "pid %d is traced by pid %d already", pid, f.tracer);
		return err_hint(err, "end that debugger or tracer first (a process can have one)");
	}
	if (f.state == 'Z' || f.state == 'X')
		return err_set(err, -ESRCH, "pid %d has ended", pid);
	int64_t yama = host_sysctl("yama/ptrace_scope", 0);
	uint32_t uid = 0;
	err_set(err, -EPERM, "cannot attach to pid %d by ptrace: %s", pid, strerror(EPERM));
	if (yama >= 3)
		return err_hint(err, "kernel.yama.ptrace_scope=3 forbids it until the next boot");
	if (host_is_root())
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
	if (!ptrace(PTRACE_SEIZE, tid, 0, options))
		return 0;
	if (errno == ESRCH)
		return err_set(err, -ESRCH, "pid %d has ended", pid);
	if (errno == EPERM)
		return refused(pid, tid, err);
	return err_sys(err, "cannot attach to pid %d by ptrace", pid);
}

/*
 * A stop is told by SIGCHLD, which is blocked here and waited for: to look again and again would
 * take the CPU from the thread that is to stop, if it has the same. Another thread of ours may get
 * the signal instead, so it is not waited for long.
 */
struct news {
	sigset_t mask;  /* as it was */
	bool is_others; /* a signal was taken that others look for */
};

#define NEWS_MIN_NS 100000u
#define NEWS_SHIFT  4u

static void news_begin(struct news *n)
{
	sigset_t set;
	*n = (struct news){0};
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &set, &n->mask);
}

static void news_wait(struct news *n, int32_t tid, unsigned turn)
{
	sigset_t set;
	siginfo_t si;
	struct timespec t = {.tv_nsec = (long)NEWS_MIN_NS << MIN(turn, NEWS_SHIFT)};
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	if (sigtimedwait(&set, &si, &t) == SIGCHLD)
		n->is_others |= si.si_pid != tid ||
				(si.si_code != CLD_TRAPPED && si.si_code != CLD_STOPPED);
}

static void news_end(struct news *n)
{
	pthread_sigmask(SIG_SETMASK, &n->mask, NULL);
	if (n->is_others)
		(void)kill(getpid(), SIGCHLD);
}

/* Its stop, or its end, seen without taking it: WSTOPPED is implied for traced threads. */
static bool peek(int32_t tid, siginfo_t *ret_si)
{
	*ret_si = (siginfo_t){0};
	while (waitid(P_PID, (id_t)tid, ret_si, WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL))
		if (errno != EINTR) {
			ret_si->si_code = CLD_EXITED;
			return true;
		}
	return ret_si->si_pid != 0;
}

static int wait_for_stop(struct news *n, int32_t tid, bool is_child, uint64_t deadline_ns,
			 struct tracee_stop *ret_s)
{
	siginfo_t si;
	for (unsigned turn = 0; !peek(tid, &si); turn++) {
		if (clock_mono_ns() > deadline_ns)
			return -ETIMEDOUT;
		news_wait(n, tid, turn);
	}
	bool is_stop = si.si_code == CLD_TRAPPED || si.si_code == CLD_STOPPED;
	/* A dead thread of another's process waits for us; a child of ours is our caller's. */
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
	struct news n;
	news_begin(&n);
	int rc = wait_for_stop(&n, tid, is_child, deadline_ns, ret_s);
	news_end(&n);
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
		/* A signal was first: it is delivered as if we were not there. */
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
	/* ESRCH: it was killed while it stood; then it is reaped, unless that is its parent's. */
	(void)ptrace(PTRACE_DETACH, tid, 0, 0);
}

int tracee_take(int32_t pid, int32_t tid, unsigned long options, bool *ret_is_ours, struct err *err)
{
	struct proc_task f;
	*ret_is_ours = !proc_task(pid, tid, &f) && f.tracer == (int32_t)syscall(SYS_gettid);
	return *ret_is_ours ? 0 : tracee_seize(pid, tid, options, err);
}

void tracee_let_go(int32_t tid, bool is_ours)
{
	if (is_ours)
		(void)ptrace(PTRACE_CONT, tid, 0, 0);
	else
		tracee_detach(tid);
}

int tracee_listen(int32_t tid, bool is_child, uint64_t deadline_ns)
{
	struct tracee_stop s;
	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) || ptrace(PTRACE_CONT, tid, 0, 0))
		return -errno;
	/* Before any instruction of its own: the request is seen on the way out of the stop. */
	return tracee_wait(tid, is_child, deadline_ns, &s);
}

bool tracee_is_child(int32_t pid)
{
	int32_t parent = 0;
	return !proc_parent(pid, &parent, NULL) && parent == getpid();
}
