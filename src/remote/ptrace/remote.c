/*
 * Sessions on a thread of another process; see remote.h. Which thread: pick.c, what it is
 * made to do: call.c.
 *
 *	remote_open     prepare (files, ranges) ... [ stop, look, take ]
 *	remote_syscall                               one instruction is stepped over
 *	remote_call                                  it runs until it returns to no address at all
 *	remote_close                                 [ registers, signals back, detach ]
 */
#ifdef __x86_64__ /* others: remote_none.c */
#include "base/base.h"
#include "remote/ptrace/remote.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "host/proc.h"
#include "host/procmem.h"
#include "remote/ptrace/remotepriv.h"

#define TIMEOUT_NS NS_PER_SEC

static void remote_destroy(struct remote *r)
{
	if (!r)
		return;
	host_boost_end(&r->boost);
	close_p(&r->mem_fd);
	heap_ranges_release(&r->avoid);
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
	/* EACCES: ptrace will say the same, with the reason. */
	struct remote *r = xcalloc(1, sizeof(*r));
	r->pid = pid;
	r->mem_fd = fd;
	r->timeout_ns = options && options->timeout_ns ? options->timeout_ns : TIMEOUT_NS;
	if (options) {
		for (size_t i = 0; options->avoid && i < options->avoid->n; i++)
			vec_push(&r->avoid, options->avoid->p[i]);
		heap_ranges_join(&r->avoid, 0);
		r->lent = options->area;
	}
	if (fd >= 0)
		(void)remote_find_syscall(r, NULL); /* not while it is stopped; else said later */
	*ret_r = r;
	return 0;
}

int remote_open(struct remote **ret_r, int32_t pid, const struct remote_options *options,
		struct err *err)
{
	CLEANUP(remote_destroy_p) struct remote *r = NULL;
	TRY(prepare(&r, pid, options, err));
	host_boost_begin(&r->boost);
	TRY(remote_pick(r, err));
	*ret_r = TAKE(r);
	return 0;
}

int remote_seize(struct remote **ret_r, int32_t pid, int32_t tid,
		 const struct remote_options *options, struct err *err)
{
	CLEANUP(remote_destroy_p) struct remote *r = NULL;
	struct proc_task facts = {0};
	TRY(prepare(&r, pid, options, err));
	r->tid = tid;
	r->is_adopted = true;
	r->is_child = tid == pid && tracee_is_child(pid);
	host_boost_begin(&r->boost);
	host_boost_thread(&r->boost, tid);
	r->stopped_at_ns = clock_mono_ns();
	int rc = proc_task(pid, tid, &facts);
	r->ignored = facts.ignored;
	r->has_filter = facts.seccomp != 0;
	if (!rc)
		rc = tracee_get_regs(tid, &r->saved);
	if (!rc)
		rc = remote_take(r, false);
	if (rc)
		return err_set(err, rc == -EAGAIN ? -EIO : rc,
			       "cannot use the traced thread %d: %s", tid, strerror(-rc));
	*ret_r = TAKE(r);
	return 0;
}

static int put_back(struct remote *r)
{
	if (r->is_at_syscall) {
		/* The kernel restarts an interrupted call only from here. */
		struct user_regs_struct ignored;
		r->is_at_syscall = false;
		TRY(tracee_set_regs(r->tid, &r->saved));
		if (ptrace(PTRACE_INTERRUPT, r->tid, 0, 0) || ptrace(PTRACE_CONT, r->tid, 0, 0))
			return -errno;
		TRY(tracee_interrupt(r->tid, r->is_child, clock_mono_ns() + r->timeout_ns,
				     &ignored));
	}
	struct iovec v = {r->xstate, r->nr_xstate};
	if (r->nr_xstate && ptrace(PTRACE_SETREGSET, r->tid, NT_X86_XSTATE, &v))
		return -errno;
	TRY(tracee_set_regs(r->tid, &r->saved));
	if (r->has_mask && ptrace(PTRACE_SETSIGMASK, r->tid, sizeof(r->saved_mask), &r->saved_mask))
		return -errno;
	return 0;
}

/* What could not be blocked is sent again, by us. */
static void send_held(const struct remote *r)
{
	for (int s = 1; s <= 64; s++) {
		if (!(r->held >> (s - 1) & 1))
			continue;
		if (s == SIGSTOP)
			(void)kill(r->pid, s);
		else
			(void)syscall(SYS_tgkill, r->pid, r->tid, s);
	}
}

void remote_close(struct remote *r)
{
	if (!r)
		return;
	if (r->is_stopped) {
		if (!r->is_gone && r->area)
			(void)remote_drop_area(r); /* a leak of address space at worst */
		if (!r->is_gone)
			(void)put_back(r); /* fails only when it was killed */
		if (r->is_adopted)
			(void)tracee_listen(r->tid, r->is_child, clock_mono_ns() + r->timeout_ns);
		else
			tracee_let_go(r->tid, r->is_ours);
		send_held(r);
	}
	remote_destroy(r);
}

void remote_close_p(struct remote **r)
{
	remote_close(*r);
	*r = NULL;
}

int remote_read(struct remote *r, uint64_t addr, void *to, size_t n, struct err *err)
{
	ssize_t got = pread(r->mem_fd, to, n, (off_t)addr);
	if (got == (ssize_t)n)
		return 0;
	if (!got)
		return remote_fail(r, -ESRCH, "read memory", err);
	return err_set(err, -EFAULT, "cannot read memory of pid %d at 0x%" PRIx64, r->pid, addr);
}

int remote_write(struct remote *r, uint64_t addr, const void *from, size_t n, struct err *err)
{
	ssize_t put = pwrite(r->mem_fd, from, n, (off_t)addr);
	if (put == (ssize_t)n)
		return 0;
	if (!put)
		return remote_fail(r, -ESRCH, "write memory", err);
	return err_set(err, -EFAULT, "cannot write memory of pid %d at 0x%" PRIx64, r->pid, addr);
}

/*
 * The target may have put another file under that number. So the descriptor itself is taken, with
 * the rights that it has there: opening /proc/PID/fd anew would give ours, as root to any file that
 * the target may only read. And it has to be memory without a name, as nothing else was asked for.
 */
int remote_get_fd(struct remote *r, int fd, int *ret_fd, struct err *err)
{
	struct stat st;
	CLEANUP(close_p) int got = -1;
	CLEANUP(close_p) int pid_fd = (int)syscall(SYS_pidfd_open, r->pid, 0);
	if (pid_fd >= 0)
		got = (int)syscall(438 /* pidfd_getfd */, pid_fd, fd, 0);
	if (got < 0 && errno == ENOSYS) {
		err_set(err, -ENOSYS, "cannot take descriptor %d of pid %d", fd, r->pid);
		return err_hint(err, "recording inside a process needs Linux 5.6 or newer; "
				     "--method growth does not");
	}
	if (got < 0)
		return err_sys(err, "cannot take descriptor %d of pid %d", fd, r->pid);
	if (fstat(got, &st) || !S_ISREG(st.st_mode) || st.st_nlink || fcntl(got, F_GET_SEALS) < 0)
		return err_set(err, -EPROTO, "descriptor %d of pid %d is not what was made there",
			       fd, r->pid);
	*ret_fd = take_fd(&got);
	return 0;
}

int32_t remote_tid(const struct remote *r)
{
	return r->tid;
}

uint64_t remote_thread_pointer(const struct remote *r)
{
	return r->saved.fs_base;
}

bool remote_has_filter(const struct remote *r)
{
	return r->has_filter;
}

uint64_t remote_stopped_ns(const struct remote *r)
{
	return clock_mono_ns() - r->stopped_at_ns;
}

#endif
