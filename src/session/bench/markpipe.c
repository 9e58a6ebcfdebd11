/* A pipe with a path; see markpipe.h. */
#include "base/base.h"
#include "session/bench/markpipe.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/process/descriptors.h"
#include "host/privileges.h"

#define READY  'p'
#define FAILED 'x'

/* Signals of the terminal are assay's: it ends this process, or its end does. */
static void hold(int fd, pid_t parent) NORETURN;
static void hold(int fd, pid_t parent)
{
	sigset_t all;
	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	descriptors_keep_only(&fd, 1);
	char c = FAILED;
	if (!host_become_command_user() && !fchown(fd, geteuid(), getegid()))
		c = READY;
	host_drop_all();
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != parent || write(fd, &c, 1) != 1)
		_exit(1);
	for (;;)
		(void)pause();
}

int markpipe_open(struct markpipe *m, struct err *err)
{
	int fds[2];
	if (pipe2(fds, O_CLOEXEC))
		return err_sys(err, "cannot make a pipe for marks");
	m->read_fd = fds[0];
	m->write_fd = fds[1];
	pid_t parent = getpid();
	m->holder = fork();
	if (m->holder < 0)
		return err_sys(err, "cannot start a process that holds the pipe for marks");
	if (!m->holder)
		hold(fds[1], parent);
	char c;
	if (read(fds[0], &c, 1) != 1 || c != READY || fcntl(fds[0], F_SETFL, O_NONBLOCK))
		return err_set(err, -EACCES, "cannot make a pipe for marks of the command's user");
	(void)snprintf(m->path, sizeof(m->path), "/proc/%d/fd/%d", m->holder, fds[1]);
	return 0;
}

void markpipe_release(struct markpipe *m)
{
	close_p(&m->read_fd);
	close_p(&m->write_fd);
	if (m->holder > 0) {
		(void)kill(m->holder, SIGKILL);
		while (waitpid(m->holder, NULL, 0) < 0 && errno == EINTR)
			;
	}
	*m = MARKPIPE_INIT;
}
