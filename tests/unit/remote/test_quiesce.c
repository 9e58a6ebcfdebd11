/* remote/patch/quiesce.c: a thread that may come back to a range of code is found by its stack. */
#include "base/base.h"
#include "tap.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "remote/patch/quiesce.h"

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)

/* Where the caller continues is an address in this function. */
static __attribute__((noinline)) void wait_inside(int fd)
{
	(void)!write(fd, "x", 1);
	pause();
	__asm__ volatile("" ::: "memory");
}
static __attribute__((noinline)) void not_called(void)
{
	__asm__ volatile("nop; nop; nop; nop; nop; nop; nop; nop");
}

static int handler_fd;
static void on_signal(int nr UNUSED)
{
	wait_inside(handler_fd);
}

static bool may_return(pid_t pid, const void *code, size_t nr_bytes)
{
	CLEANUP(heap_ranges_release) struct heap_ranges ranges = {0};
	uint64_t longest_ns = 0;
	uint64_t at = (uint64_t)(uintptr_t)code;
	vec_push(&ranges, (struct heap_range){at, at + nr_bytes});
	return quiesce_may_return(pid, &ranges, &longest_ns);
}

static pid_t start(int fds[2], void (*run)(int fd))
{
	char ready;
	CHECK(!pipe(fds));
	pid_t pid = fork();
	if (!pid) {
		run(fds[1]);
		_exit(0);
	}
	CHECK(read(fds[0], &ready, 1) == 1);
	return pid;
}

static void end(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

TEST(quiesce_finds_a_return_address_on_a_stack)
{
	int fds[2];
	pid_t pid = start(fds, wait_inside);
	CHECK(may_return(pid, (const void *)wait_inside, 64));
	CHECK(!may_return(pid, (const void *)not_called, 8));
	end(pid);
}

static volatile int spins;
static __attribute__((noinline, aligned(64))) void spin(void)
{
	while (!spins)
		__asm__ volatile("" ::: "memory");
}

static void run_interrupted(int fd)
{
	handler_fd = fd;
	(void)signal(SIGALRM, on_signal);
	(void)alarm(1);
	spin();
}

TEST(quiesce_excludes_nothing_in_a_signal_handler)
{
	int fds[2];
	pid_t pid = start(fds, run_interrupted);
	CHECK(may_return(pid, (const void *)spin, 64));
	CHECK(may_return(pid, (const void *)not_called, 8)); /* it may have other stacks */
	end(pid);
}

static void run_spinning(int fd)
{
	(void)!write(fd, "x", 1);
	spin();
}

TEST(quiesce_finds_a_running_thread_inside)
{
	int fds[2];
	pid_t pid = start(fds, run_spinning);
	CHECK(may_return(pid, (const void *)spin, 64));
	CHECK(!may_return(pid, (const void *)not_called, 8));
	end(pid);
}

#endif
