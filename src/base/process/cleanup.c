/* The cleanup process; see cleanup.h. */
#include "base/base.h"
#include "base/process/cleanup.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/process/descriptors.h"

#define KEEP_MAX       8u
#define EXIT_POLLS_MAX 10000u /* of a millisecond */

static void drop_descriptors(const struct cleanup_spec *spec, int end_fd)
{
	int keep[KEEP_MAX + 4] = {0, 1, 2, end_fd};
	descriptors_use_null();
	memcpy(keep + 4, spec->keep, spec->nr_keep * sizeof(*keep));
	descriptors_keep_only(keep, spec->nr_keep + 4);
}

/*
 * The kernel closes the socket before it detaches assay from processes that it traces; afterwards it
 * gives this process another parent.
 */
static void wait_for_exit(pid_t assay)
{
	for (unsigned i = 0; getppid() == assay && i < EXIT_POLLS_MAX; i++)
		(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void wait_and_work(int end_fd, pid_t assay, const struct cleanup_spec *spec) NORETURN;
static void wait_and_work(int end_fd, pid_t assay, const struct cleanup_spec *spec)
{
	char order = 0; /* 'c' cancel, 'r' run; none: assay has ended */
	ssize_t n;
	do
		n = read(end_fd, &order, 1);
	while (n < 0 && errno == EINTR);
	if (!n)
		wait_for_exit(assay);
	if (order != 'c')
		spec->fn(spec->ctx, end_fd);
	_exit(0);
}

int cleanup_start(struct cleanup *ret_c, const struct cleanup_spec *spec, struct err *err)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGALRM};
	int fds[2];
	pid_t assay = getpid();
	ASSERT(spec->nr_keep <= KEEP_MAX);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		return err_sys(err, "cannot make a pair of sockets");
	(void)fflush(NULL);
	pid_t pid = fork();
	if (!pid) {
		for (size_t i = 0; i < ARRAY_LEN(ends); i++)
			(void)signal(ends[i], SIG_IGN);
		(void)setsid();
		(void)prctl(PR_SET_NAME, "assay-cleanup");
		spec->begin();
		drop_descriptors(spec, fds[0]);
		(void)!chdir("/");
		wait_and_work(fds[0], assay, spec);
	}
	close(fds[0]);
	if (pid < 0) {
		close(fds[1]);
		return err_sys(err, "cannot start a process");
	}
	*ret_c = (struct cleanup){pid, fds[1]};
	return 0;
}

static void order(const struct cleanup *c, char what)
{
	(void)send(c->fd, &what, 1, MSG_NOSIGNAL); /* EPIPE: it was killed */
}

static void wait_for_end(struct cleanup *c)
{
	close(c->fd);
	while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
		;
	*c = (struct cleanup){0};
}

void cleanup_cancel(struct cleanup *c)
{
	if (!c->pid)
		return;
	order(c, 'c');
	wait_for_end(c);
}

int cleanup_run(struct cleanup *c, void *ret_reply, size_t n)
{
	if (!c->pid)
		return -ECHILD;
	order(c, 'r');
	ssize_t got;
	do
		got = recv(c->fd, ret_reply, n, MSG_WAITALL);
	while (got < 0 && errno == EINTR);
	wait_for_end(c);
	return got == (ssize_t)n ? 0 : -ECHILD;
}

void cleanup_release(struct cleanup *c)
{
	if (!c->pid)
		return;
	order(c, 'r');
	close(c->fd);
	*c = (struct cleanup){0};
}
