/* host/syscallfilter: what is permitted, and what fails. Each test is a process of its own. */
#include "base/base.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "host/privileges.h"
#include "host/syscallfilter.h"

#if HOST_LIMITS_CALLS

static void limit(unsigned calls)
{
	host_drop_all();
	host_limit_calls(calls);
	CLEANUP(close_p) int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	char text[4096] = {0};
	CHECK(read(fd, text, sizeof(text) - 1) > 0);
	if (!strstr(text, "Seccomp:\t2"))
		tap_skip("this kernel has no seccomp");
}

static bool is_refused(long rc)
{
	return rc == -1 && errno == EPERM;
}

static void *tries_exec(void *ctx)
{
	char *const none[] = {NULL};
	*(bool *)ctx = is_refused(execve("/bin/true", none, none));
	return NULL;
}

static void check_thread(void)
{
	pthread_t t;
	bool is_held = false;
	CHECK(!pthread_create(&t, NULL, tries_exec, &is_held));
	CHECK(!pthread_join(t, NULL));
	CHECK(is_held);
}

TEST(while_reading_there_is_no_exec_no_fork_no_socket)
{
	int fds[2];
	limit(HOST_CALLS_READING);
	check_thread();
	CHECK(is_refused(fork()));
	CHECK(is_refused(socket(AF_INET, SOCK_STREAM, 0)));
	CHECK(is_refused(socket(AF_UNIX, SOCK_STREAM, 0)));
	CHECK(is_refused(ptrace(PTRACE_TRACEME, 0, NULL, NULL)));
	CHECK(is_refused(kill(getpid(), 0)));
	CHECK(is_refused(syscall(SYS_mount, "", "", "", 0, NULL)));
	CHECK(is_refused(syscall(SYS_perf_event_open, NULL, 0, 0, 0, 0)));
	CHECK(is_refused(ioctl(STDIN_FILENO, TIOCSTI, "x")));
	CHECK(!pipe(fds) && write(fds[1], "x", 1) == 1);
	CHECK(open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0);
}

TEST(while_capturing_there_is_fork_but_no_exec_and_no_network)
{
	union bpf_attr attr = {0};
	limit(HOST_CALLS_CAPTURE);
	check_thread();
	CHECK(is_refused(socket(AF_INET, SOCK_DGRAM, 0)));
	CHECK(socket(AF_UNIX, SOCK_DGRAM, 0) >= 0);
	CHECK(is_refused(ptrace(PTRACE_TRACEME, 0, NULL, NULL)));
	CHECK(is_refused(syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr))));
	CHECK(syscall(SYS_bpf, BPF_MAP_LOOKUP_ELEM, &attr, sizeof(attr)) == -1);
	pid_t pid = fork();
	if (!pid)
		_exit(is_refused(syscall(SYS_execve, "/bin/true", NULL, NULL)) ? 0 : 1);
	int status = -1;
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	host_limit_calls(HOST_CALLS_READING); /* a second filter permits less */
	CHECK(is_refused(fork()));
}

TEST(heap_captures_may_trace)
{
	limit(HOST_CALLS_CAPTURE | HOST_CALLS_TRACE);
	CHECK(ptrace(PTRACE_DETACH, 0, NULL, NULL) == -1 && errno == ESRCH);
}

#endif
