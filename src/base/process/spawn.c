/* Starts a command in two steps; see spawn.h. */
#include "base/base.h"
#include "base/process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "base/process/stop.h"
#include "base/sv.h"

static void child(char *const argv[], int (*before_exec)(void), int start_fd,
		  int status_fd) NORETURN;
static void child(char *const argv[], int (*before_exec)(void), int start_fd, int status_fd)
{
	char go = 0;
	if (file_read_some(start_fd, &go, 1, NULL) != 1)
		_exit(127); /* spawn_release was called, or assay died, before spawn_exec */

	int e = before_exec ? -before_exec() : 0;
	if (!e) {
		stop_reset_in_child();
		execvp(argv[0], argv);
		e = errno;
	}
	(void)!write(status_fd, &e, sizeof(e)); /* no way to report a failure of this write */
	_exit(e == ENOENT ? 127 : 126);
}

/* Both ends; closed by CLEANUP unless taken. */
struct spawn_pipe {
	int fd[2];
};

static void pipe_release(struct spawn_pipe *p)
{
	close_p(&p->fd[0]);
	close_p(&p->fd[1]);
}

int spawn_open(struct spawn *ret_s, char *const argv[], int (*before_exec)(void), struct err *err)
{
	CLEANUP(pipe_release) struct spawn_pipe start = {{-1, -1}};
	CLEANUP(pipe_release) struct spawn_pipe status = {{-1, -1}};
	if (pipe2(start.fd, O_CLOEXEC) || pipe2(status.fd, O_CLOEXEC))
		return err_sys(err, "cannot make a pipe");
	(void)fflush(NULL); /* else the child would flush the same buffers again */
	pid_t pid = fork();
	if (pid < 0)
		return err_sys(err, "cannot start a process");
	if (pid == 0) {
		close(start.fd[1]);
		close(status.fd[0]);
		child(argv, before_exec, start.fd[0], status.fd[1]);
	}
	*ret_s = (struct spawn){
		.pid = pid, .start_fd = take_fd(&start.fd[1]), .status_fd = take_fd(&status.fd[0])};
	return 0;
}

int spawn_exec(struct spawn *s, const char *name, struct err *err)
{
	ASSERT(s->start_fd >= 0);
	ssize_t put = write(s->start_fd, "g", 1);
	close_p(&s->start_fd);
	if (put != 1)
		return err_set(err, -EPIPE, "cannot start '%s': the child ended early", name);
	int e = 0;
	/* 0: exec succeeded and closed the pipe (O_CLOEXEC) */
	ssize_t n = file_read_some(s->status_fd, &e, sizeof(e), NULL);
	close_p(&s->status_fd);
	if (n != sizeof(e))
		return 0;
	(void)spawn_wait(s);
	err_set(err, -e, "cannot run '%s': %s", name, strerror(e));
	if (e == ENOENT && strchr(name, '/'))
		err_hint(err, "the program, or the interpreter in its first line, does not exist");
	else if (e == ENOENT)
		err_hint(err, "is it in PATH? check with: command -v %s", name);
	else if (e == EACCES)
		err_hint(err, "is it a program, and executable? check with: ls -ld %s", name);
	return -e;
}

static uint64_t timeval_ns(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_usec * 1000u;
}

/*
 * The kernel's peak of a process covers the children that it waited for; whether there were any is
 * seen in their page faults (proc_pid_stat(5), cminflt), which no process is without.
 */
static bool has_waited_for_none(pid_t pid)
{
	CLEANUP(buf_release) struct buf stat = {0};
	CLEANUP(free_p) char *path = xasprintf("/proc/%d/stat", pid);
	uint64_t nr_faults;
	if (file_read(&stat, path, 1 << 16, NULL))
		return false;
	ssize_t end = sv_rindex(buf_sv(&stat), ')');
	struct sv rest =
		end < 0 ? (struct sv){0} : sv_trim(sv_from_idx(buf_sv(&stat), (size_t)end + 1));
	for (unsigned field = 3; field < 11; field++)
		(void)sv_split(&rest, ' ');
	return sv_to_u64(sv_split(&rest, ' '), &nr_faults) && !nr_faults;
}

/*
 * Waits for the end of the child only. A child that assay traces (remote/patch/launch.h) also has
 * ptrace stops; a plain waitpid would report and consume those instead of the tracer's.
 */
static bool reap(struct spawn *s, int flags)
{
	while (!s->is_reaped) {
		siginfo_t si = {0};
		int status;
		if (waitid(P_PID, (id_t)s->pid, &si, WEXITED | WNOWAIT | flags) || !si.si_pid)
			return false;
		if (si.si_code == CLD_EXITED || si.si_code == CLD_KILLED ||
		    si.si_code == CLD_DUMPED) {
			struct rusage used = {0};
			s->peak_is_own = has_waited_for_none(s->pid);
			if (wait4(s->pid, &status, 0, &used) != s->pid)
				return false;
			s->system_ns = timeval_ns(&used.ru_stime);
			s->cpu_ns = timeval_ns(&used.ru_utime) + s->system_ns;
			s->peak_rss_bytes = (uint64_t)used.ru_maxrss * 1024;
			s->wait_status = status;
			s->is_reaped = true;
			break;
		}
		if (flags & WNOHANG)
			return false;
		(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	return true;
}

bool spawn_has_ended(struct spawn *s)
{
	return reap(s, WNOHANG);
}

bool spawn_wait(struct spawn *s)
{
	return reap(s, 0);
}

int spawn_exit_code(const struct spawn *s)
{
	ASSERT(s->is_reaped);
	return WIFSIGNALED(s->wait_status) ? 128 + WTERMSIG(s->wait_status)
					   : WEXITSTATUS(s->wait_status);
}

void spawn_release(struct spawn *s)
{
	if (s->start_fd >= 0) {
		close_p(&s->start_fd); /* the child reads end of file and exits */
		(void)spawn_wait(s);
	}
	close_p(&s->status_fd);
}
