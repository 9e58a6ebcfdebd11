/* Calls into other processes by an assay that is killed meanwhile: the processes go on. */
#include "base/base.h"
#include "remotechild.h"
#include "tap.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef HAS_REMOTE_CHILDREN

/* In the child: kills assay in the middle of a call. */
static __attribute__((noinline)) uint64_t kills(uint64_t pid)
{
	__asm__ volatile("pxor %%xmm0, %%xmm0; pxor %%xmm7, %%xmm7; pxor %%xmm15, %%xmm15; "
			 "fninit" ::
				 : "xmm0", "xmm7", "xmm15");
	kill((pid_t)pid, SIGKILL);
	for (volatile int i = 0; i < 100000; i++)
		;
	return 1;
}

/* Opens a session on @pid from another process, which the call kills after @nr_calls others. */
static void use_and_die(pid_t pid, int nr_calls)
{
	int status = 0;
	pid_t assay = fork();
	if (!assay) {
		struct remote *r = NULL;
		int64_t got;
		MUST(remote_open(&r, pid, NULL, &must_err));
		for (int i = 0; r && i < nr_calls; i++) {
			int32_t sum = 0;
			MUST(remote_syscall(r, SYS_getpid, (uint64_t[REMOTE_ARGS_MAX]){0}, &got,
					    &must_err));
			MUST(remote_call(r, (uint64_t)(uintptr_t)sum6,
					 (uint64_t[REMOTE_ARGS_MAX]){1, 2, 3, 4, 5, 6}, &sum,
					 &must_err));
			CHECK_U64(sum, 91);
		}
		if (r)
			(void)remote_call(r, (uint64_t)(uintptr_t)kills,
					  (uint64_t[REMOTE_ARGS_MAX]){(uint64_t)getpid()}, NULL,
					  NULL);
		_exit(1);
	}
	CHECK(waitpid(assay, &status, 0) == assay);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void check_blocked_and_die(int (*child)(void))
{
	CHECK(!pipe(pipe_fds));
	pid_t pid = start(child);
	for (int i = 0; i < 10; i++)
		use_and_die(pid, i % 3);
	use(pid, NULL);
	CHECK(write(pipe_fds[1], "x", 1) == 1);
	CHECK_U64(finish(pid), 0);
}

TEST(remote_killed_in_a_call_leaves_a_read_waiting)
{
	check_blocked_and_die(child_read);
}

TEST(remote_killed_in_a_call_leaves_epoll_wait_waiting)
{
	check_blocked_and_die(child_epoll);
}

TEST(remote_killed_in_a_call_leaves_ppoll_waiting)
{
	check_blocked_and_die(child_ppoll);
}

TEST(remote_killed_in_a_call_leaves_poll_waiting)
{
	check_blocked_and_die(child_poll);
}

TEST(remote_killed_in_a_call_leaves_nanosleep_its_time)
{
	pid_t pid = start(child_nanosleep);
	for (int i = 0; i < 3; i++)
		use_and_die(pid, i % 3);
	CHECK_U64(finish(pid), 0);
}

TEST(remote_killed_in_a_call_leaves_a_futex_waiting)
{
	pid_t pid = start(child_futex);
	for (int i = 0; i < 3; i++)
		use_and_die(pid, i % 3);
	CHECK_U64(finish(pid), 0);
}

TEST(remote_killed_in_a_call_keeps_vector_registers)
{
	pid_t pid = start(child_computes);
	for (int i = 0; i < 30; i++)
		use_and_die(pid, i % 3);
	CHECK(shared->nr_rounds > 0);
	CHECK_U64(finish(pid), 0);
}

static int child_keeps_signal_state(void)
{
	static char memory[65536];
	stack_t own = {.ss_sp = memory, .ss_size = sizeof(memory)};
	stack_t now;
	sigset_t mask;
	sigset_t mask_now;
	sigaltstack(&own, NULL);
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR2);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	shared->flags.is_ready = 1;
	while (!shared->flags.is_over)
		usleep(100);
	sigprocmask(SIG_SETMASK, NULL, &mask_now);
	sigaltstack(NULL, &now);
	if (memcmp(&mask, &mask_now, 8))
		return 1;
	return now.ss_sp == memory && now.ss_size == sizeof(memory) && !now.ss_flags ? 0 : 2;
}

TEST(remote_killed_in_a_call_keeps_signal_mask_and_alternate_stack)
{
	pid_t pid = start(child_keeps_signal_state);
	for (int i = 0; i < 10; i++)
		use_and_die(pid, i % 3);
	CHECK_U64(finish(pid), 0);
}

/* Handles each signal that could report the end of a call. */
static int child_handles_all(void)
{
	struct sigaction sa = {.sa_handler = on_signal};
	for (int sig = 1; sig < SIGRTMIN; sig++)
		sigaction(sig, &sa, NULL);
	shared->flags.is_ready = 1;
	while (!shared->flags.is_over)
		if (usleep(1000) && errno != EINTR)
			return 1;
	return 0;
}

TEST(remote_works_where_every_signal_is_handled)
{
	pid_t pid = start(child_handles_all);
	for (int i = 0; i < 20; i++)
		use(pid, NULL);
	for (int i = 0; i < 10; i++)
		use_and_die(pid, i % 3);
	CHECK_U64(shared->nr_handled, 0);
	CHECK_U64(finish(pid), 0);
}

#endif
