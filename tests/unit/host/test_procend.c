/* host/procend.c: how a child ended, before and after it was reaped. */
#include "base/base.h"

#include "host/procend.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "tap.h"

/* Ends a child by @signal, or by exit(3) if it is 0; reads how it ended twice. */
static void end_child(int signal, struct procend *ret_zombie, struct procend *ret_reaped)
{
	pid_t pid = fork();
	if (!pid) {
		if (!signal)
			_exit(3);
		for (;;)
			pause();
	}
	CLEANUP(close_p) int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	CHECK(fd >= 0);
	if (signal)
		CHECK(!kill(pid, signal));
	siginfo_t info;
	CHECK(!waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT));
	*ret_zombie = procend_read(fd, pid);
	CHECK(waitpid(pid, NULL, 0) == pid);
	*ret_reaped = procend_read(fd, pid);
}

TEST(procend_knows_the_signal_that_killed_a_process)
{
	struct procend zombie, reaped;
	end_child(SIGKILL, &zombie, &reaped);
	CHECK(zombie.is_known && zombie.signal == SIGKILL);
	CHECK(!reaped.is_known || reaped.signal == SIGKILL); /* Linux 6.15 */
	end_child(SIGTERM, &zombie, &reaped);
	CHECK(zombie.is_known && zombie.signal == SIGTERM);
	end_child(0, &zombie, &reaped);
	CHECK(zombie.is_known && !zombie.signal);
	CHECK(!reaped.is_known || !reaped.signal);
}

TEST(procend_of_a_running_process_is_not_known)
{
	CLEANUP(close_p) int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	CHECK(!procend_read(fd, getpid()).is_known);
}

/* The end of a process that may be traced: status 0 of a zombie is an exit, not a status that is hidden. */
TEST(procend_signal_does_not_wait_for_the_parent_of_a_process_that_exited)
{
	static const int signals[] = {0, SIGKILL};
	for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
		siginfo_t info;
		pid_t pid = fork();
		if (!pid) {
			if (signals[i])
				(void)raise(signals[i]);
			_exit(0);
		}
		CLEANUP(close_p) int fd = (int)syscall(SYS_pidfd_open, pid, 0);
		CHECK(!waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT));
		struct rusage before, after;
		(void)getrusage(RUSAGE_THREAD, &before);
		CHECK_U64(procend_signal(fd, pid), signals[i]);
		(void)getrusage(RUSAGE_THREAD, &after);
		CHECK(after.ru_nvcsw - before.ru_nvcsw < 50); /* sleeps */
		CHECK(waitpid(pid, NULL, 0) == pid);
	}
}
