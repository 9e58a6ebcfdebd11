/*
 * Calls into other processes: forked children of the test, in which functions have the same
 * addresses.
 */
#include "base/base.h"
#include "remotechild.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/clock.h"
#include "remote/ptrace/remote.h"

#ifdef HAS_REMOTE_CHILDREN

/* ---- blocked in a system call, which goes on as if nothing had been ----------------------------
 */

static void check_blocked(int (*child)(void))
{
	CHECK(!pipe(pipe_fds));
	pid_t pid = start(child);
	for (int i = 0; i < 20; i++)
		use(pid, NULL);
	CHECK(write(pipe_fds[1], "x", 1) == 1);
	CHECK_U64(finish(pid), 0);
}

TEST(remote_leaves_a_read_waiting)
{
	check_blocked(child_read);
}

TEST(remote_leaves_epoll_wait_waiting)
{
	check_blocked(child_epoll);
}

TEST(remote_leaves_ppoll_waiting)
{
	check_blocked(child_ppoll);
}

TEST(remote_leaves_poll_with_a_time_limit_waiting)
{
	check_blocked(child_poll);
}

TEST(remote_leaves_nanosleep_its_time)
{
	pid_t pid = start(child_nanosleep);
	for (int i = 0; i < 10; i++)
		use(pid, NULL);
	CHECK_U64(finish(pid), 0);
}

TEST(remote_leaves_a_futex_waiting)
{
	pid_t pid = start(child_futex);
	for (int i = 0; i < 10; i++)
		use(pid, NULL);
	CHECK_U64(finish(pid), 0);
}

/* ---- running ------------------------------------------------------------------------------------
 */

TEST(remote_keeps_vector_and_floating_point_registers)
{
	pid_t pid = start(child_computes);
	for (int i = 0; i < 200; i++)
		use(pid, NULL);
	CHECK_U64(finish(pid), 0);
}

static pthread_mutex_t big_lock = PTHREAD_MUTEX_INITIALIZER;

/* "The allocator": a thread in it holds the lock. In a section of its own, so its range is known.
 */
extern const char __start_remote_hold[];
extern const char __stop_remote_hold[];
__attribute__((section("remote_hold"), noinline)) static uint64_t hold(uint64_t turns)
{
	uint64_t v = 0;
	pthread_mutex_lock(&big_lock);
	for (volatile uint64_t i = 0; i < turns; i++)
		v += i;
	if (turns % 50 == 1)
		usleep(100);
	pthread_mutex_unlock(&big_lock);
	return v;
}

static void *holder(void *arg)
{
	(void)arg;
	for (uint64_t i = 0; !shared->flags.is_over; i++) {
		(void)hold(i % 200);
		for (volatile int j = 0; j < 20000; j++)
			;
		shared->nr_rounds++;
	}
	return NULL;
}

static int child_holds(void)
{
	pthread_t t[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, holder, NULL);
	shared->flags.is_ready = 1;
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	return 0;
}

TEST(remote_uses_no_thread_inside_an_allocator)
{
	pid_t pid = start(child_holds);
	struct heap_range held = {(uint64_t)(uintptr_t)__start_remote_hold,
				  (uint64_t)(uintptr_t)__stop_remote_hold};
	struct heap_ranges avoid = {.p = &held, .n = 1};
	struct remote_options options = {.avoid = &avoid, .timeout_ns = 3 * NS_PER_SEC};
	uint64_t before = shared->nr_rounds;
	for (int i = 0; i < 100; i++) {
		struct remote *r = NULL;
		int32_t got = 0;
		MUST(remote_open(&r, pid, &options, &must_err));
		if (!r)
			break;
		/* Would never end on a thread that holds the lock. */
		MUST(remote_call(r, (uint64_t)(uintptr_t)hold, (uint64_t[REMOTE_ARGS_MAX]){10},
				 &got, &must_err));
		CHECK_U64(got, 45);
		remote_close(r);
	}
	CHECK(shared->nr_rounds > before);
	CHECK_U64(finish(pid), 0);
}

/* ---- signals
 * ------------------------------------------------------------------------------------- */

static int child_handles(void)
{
	struct sigaction sa = {.sa_handler = on_signal}; /* no SA_RESTART */
	sigaction(SIGRTMIN, &sa, NULL);
	sigaction(SIGSEGV, &sa, NULL);
	shared->flags.is_ready = 1;
	while (!shared->flags.is_over)
		usleep(100);
	return 0;
}

TEST(remote_loses_no_signal)
{
	pid_t pid = start(child_handles);
	int sent = 0;
	for (int i = 0; i < 50; i++) {
		struct remote *r = NULL;
		int64_t got = 0;
		sent += !sigqueue(pid, SIGRTMIN, (union sigval){0});
		MUST(remote_open(&r, pid, NULL, &must_err));
		if (!r)
			break;
		sent += !sigqueue(pid, SIGRTMIN, (union sigval){0});
		MUST(remote_syscall(r, SYS_getpid, (uint64_t[REMOTE_ARGS_MAX]){0}, &got,
				    &must_err));
		sent += !sigqueue(pid, SIGRTMIN, (union sigval){0});
		if (i == 10)
			sent += !kill(pid, SIGSEGV); /* one that cannot be held back by a mask */
		MUST(remote_syscall(r, SYS_getpid, (uint64_t[REMOTE_ARGS_MAX]){0}, &got,
				    &must_err));
		remote_close(r);
	}
	for (int i = 0; i < 2000 && shared->nr_handled < sent; i++)
		usleep(1000);
	CHECK_U64(shared->nr_handled, sent);
	CHECK_U64(finish(pid), 0);
}

static int child_ignores_traps(void)
{
	signal(SIGTRAP, SIG_IGN);
	shared->flags.is_ready = 1;
	while (!shared->flags.is_over)
		usleep(100);
	struct sigaction sa;
	sigaction(SIGTRAP, NULL, &sa);
	return sa.sa_handler != SIG_IGN;
}

TEST(remote_leaves_an_ignored_trap_ignored)
{
	pid_t pid = start(child_ignores_traps);
	for (int i = 0; i < 20; i++)
		use(pid, NULL);
	CHECK_U64(finish(pid), 0);
}

static char state_of(pid_t pid)
{
	char path[64];
	char text[256] = "";
	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	FILE *f = fopen(path, "re");
	CHECK(f && fgets(text, sizeof(text), f));
	if (f)
		fclose(f);
	const char *end = strrchr(text, ')');
	return end && end[1] ? end[2] : 0;
}

TEST(remote_works_on_a_stopped_process_which_stays_stopped)
{
	pid_t pid = start(child_sleeps);
	int status = 0;
	kill(pid, SIGSTOP);
	CHECK(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
	use(pid, NULL);
	/* on its way back into the stop it is shown as running for a moment */
	bool is_stopped = false;
	for (int i = 0; i < 10000 && !is_stopped; i++) {
		is_stopped = state_of(pid) == 'T';
		usleep(is_stopped ? 20000 : 1000);
	}
	CHECK(is_stopped && state_of(pid) == 'T');
	kill(pid, SIGCONT);
	CHECK_U64(finish(pid), 0);
}

/* ---- coroutines --------------------------------------------------------------------------------
 */

static ucontext_t main_context;
static ucontext_t coroutine;

static void run_coroutine(void)
{
	(void)child_sleeps();
	setcontext(&main_context);
}

static int child_is_coroutine(void)
{
	char *memory = malloc(1 << 20);
	getcontext(&coroutine);
	coroutine.uc_stack = (stack_t){.ss_sp = memory + (1 << 19), .ss_size = 65536};
	coroutine.uc_link = NULL;
	makecontext(&coroutine, run_coroutine, 0);
	swapcontext(&main_context, &coroutine);
	return 0;
}

/* The memory below its stack pointer may be another block of the heap. */
TEST(remote_writes_to_no_stack_of_a_coroutine)
{
	pid_t pid = start(child_is_coroutine);
	struct remote *r = NULL;
	struct remote_options options = {.timeout_ns = 100 * NS_PER_MS};
	/* until it runs there */
	int rc = 0;
	for (int i = 0; i < 100 && !rc; i++) {
		rc = remote_open(&r, pid, &options, NULL);
		remote_close(r);
		r = NULL;
	}
	CHECK(rc == -EAGAIN);
	CHECK_U64(finish(pid), 0);
}

/* ---- what goes wrong
 * ------------------------------------------------------------------------------ */

/* What a target puts under the number of memory that was made in it. */
TEST(remote_get_fd_accepts_memfds_only)
{
	struct remote *r = NULL;
	int named = open("/etc/passwd", O_RDONLY);
	int ends[2];
	int memory = memfd_create("memory", MFD_ALLOW_SEALING);
	CHECK(named >= 0 && !pipe(ends) && memory >= 0);
	pid_t pid = start(child_sleeps); /* has them too */
	CHECK(!remote_open(&r, pid, NULL, NULL));
	int got = -1;
	CHECK_U64((uint64_t)remote_get_fd(r, named, &got, NULL), (uint64_t)-EPROTO);
	CHECK_U64((uint64_t)remote_get_fd(r, ends[0], &got, NULL), (uint64_t)-EPROTO);
	CHECK(remote_get_fd(r, 1000, &got, NULL) && got == -1);
	CHECK(!remote_get_fd(r, memory, &got, NULL) && got >= 0);
	remote_close(r);
	close(got);
	CHECK_U64(finish(pid), 0);
}

static __attribute__((noinline)) uint64_t never_ends(void)
{
	for (volatile int i = 0;; i++)
		;
	return 0;
}

TEST(remote_abandons_a_call_that_does_not_return)
{
	pid_t pid = start(child_sleeps);
	struct remote_options options = {.timeout_ns = 50 * NS_PER_MS};
	struct remote *r = NULL;
	int32_t got = 0;
	MUST(remote_open(&r, pid, &options, &must_err));
	CHECK(remote_call(r, (uint64_t)(uintptr_t)never_ends, (uint64_t[REMOTE_ARGS_MAX]){0}, &got,
			  NULL) == -ETIMEDOUT);
	remote_close(r);
	use(pid, NULL);
	CHECK_U64(finish(pid), 0);
}

static __attribute__((noinline)) uint64_t crashes(void)
{
	volatile uintptr_t nowhere = 16;
	return *(volatile uint64_t *)nowhere;
}

TEST(remote_survives_a_call_that_crashes)
{
	pid_t pid = start(child_sleeps);
	struct remote *r = NULL;
	int32_t got = 0;
	MUST(remote_open(&r, pid, NULL, &must_err));
	CHECK(remote_call(r, (uint64_t)(uintptr_t)crashes, (uint64_t[REMOTE_ARGS_MAX]){0}, &got,
			  NULL) == -EFAULT);
	remote_close(r);
	use(pid, NULL);
	CHECK_U64(finish(pid), 0);
}

TEST(remote_says_that_a_process_ended_midway)
{
	pid_t pid = start(child_sleeps);
	struct remote *r = NULL;
	int64_t got = 0;
	MUST(remote_open(&r, pid, NULL, &must_err));
	CHECK(remote_syscall(r, SYS_exit_group, (uint64_t[REMOTE_ARGS_MAX]){7}, &got, NULL) ==
	      -ESRCH);
	CHECK(remote_syscall(r, SYS_getpid, (uint64_t[REMOTE_ARGS_MAX]){0}, &got, NULL) == -ESRCH);
	remote_close(r);
	CHECK_U64(finish(pid), 7);
	CHECK(remote_open(&r, pid, NULL, NULL) == -ESRCH);
}

TEST(remote_says_that_a_process_was_killed_midway)
{
	pid_t pid = start(child_sleeps);
	struct remote *r = NULL;
	int64_t got = 0;
	MUST(remote_open(&r, pid, NULL, &must_err));
	kill(pid, SIGKILL);
	CHECK(remote_syscall(r, SYS_getpid, (uint64_t[REMOTE_ARGS_MAX]){0}, &got, NULL) == -ESRCH);
	remote_close(r);
	CHECK_U64(finish(pid), 1000 + SIGKILL);
}

static int child_execs(void)
{
	shared->flags.is_ready = 1;
	while (!shared->flags.is_over)
		usleep(100);
	execl("/bin/true", "true", (char *)NULL);
	return 1;
}

static void *execs(void *arg)
{
	(void)arg;
	(void)child_execs();
	return NULL;
}

static int child_thread_execs(void)
{
	pthread_t t;
	pthread_create(&t, NULL, execs, NULL);
	pause();
	return 1;
}

TEST(remote_says_that_another_thread_executed_another_program)
{
	pid_t pid = start(child_thread_execs);
	struct remote *r = NULL;
	int64_t got = 0;
	int rc = 0;
	MUST(remote_open(&r, pid, NULL, &must_err));
	shared->flags.is_over = 1;
	for (int i = 0; i < 2000 && !rc; i++) {
		rc = remote_syscall(r, SYS_getpid, (uint64_t[REMOTE_ARGS_MAX]){0}, &got, NULL);
		usleep(1000);
	}
	CHECK(rc == -ESRCH);
	remote_close(r);
	CHECK_U64(finish(pid), 0);
}

TEST(remote_names_the_tracer_that_is_there_already)
{
	pid_t pid = start(child_sleeps);
	pid_t tracer = fork();
	if (!tracer) {
		while (ptrace(PTRACE_SEIZE, pid, 0, 0))
			usleep(100);
		pause();
	}
	struct err err = {0};
	struct remote *r = NULL;
	int rc = 0;
	for (int i = 0; i < 2000 && rc != -EPERM; i++) {
		rc = remote_open(&r, pid, NULL, &err);
		if (!rc)
			remote_close(r);
		usleep(1000);
	}
	CHECK(rc == -EPERM);
	CHECK(strstr(err_msg(&err), "is traced by unit-tests (pid "));
	CHECK(err.hint && strstr(err.hint, "debugger"));
	err_release(&err);
	kill(tracer, SIGKILL);
	waitpid(tracer, NULL, 0);
	CHECK_U64(finish(pid), 0);
}

TEST(remote_waits_for_a_tracer_that_detaches_soon)
{
	pid_t pid = start(child_sleeps);
	pid_t tracer = fork();
	if (!tracer) {
		while (ptrace(PTRACE_SEIZE, pid, 0, 0))
			usleep(100);
		shared->nr_rounds = 1;
		usleep(100000);
		_exit(0); /* its end detaches */
	}
	while (!shared->nr_rounds)
		usleep(100);
	struct remote *r = NULL;
	MUST(remote_open(&r, pid, NULL, &must_err));
	remote_close(r);
	waitpid(tracer, NULL, 0);
	CHECK_U64(finish(pid), 0);
}

/* ---- filters, many threads
 * -------------------------------------------------------------------------- */

static int child_is_filtered(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_nanosleep, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_restart_syscall, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {ARRAY_LEN(code), code};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		return 2;
	shared->flags.is_ready = 1;
	while (!shared->flags.is_over)
		usleep(1000);
	return 0;
}

TEST(remote_never_violates_a_seccomp_filter)
{
	pid_t pid = start(child_is_filtered);
	struct remote *r = NULL;
	int64_t got = 0;
	struct err err = {0};
	for (int i = 0; i < 5; i++) {
		int rc = remote_open(&r, pid, NULL, &err);
		CHECK(!rc);
		if (rc)
			break;
		rc = remote_syscall(r, SYS_getpid, (uint64_t[REMOTE_ARGS_MAX]){0}, &got, &err);
		if (remote_has_filter(r)) {
			CHECK(rc == -EPERM && err.hint);
			err_release(&err);
		} else {
			CHECK(!rc);
			CHECK_U64(got, pid);
		}
		/* It has no handlers, so the filter may not permit rt_sigreturn. */
		int32_t sum = 0;
		int call_rc =
			remote_call(r, (uint64_t)(uintptr_t)sum6,
				    (uint64_t[REMOTE_ARGS_MAX]){0, 0, 0, 0, 0, 1}, &sum, NULL);
		CHECK(remote_has_filter(r) ? call_rc == -EPERM : !call_rc && sum == 6);
		remote_close(r);
	}
	err_release(&err);
	CHECK_U64(finish(pid), 0);
}

static void *sleeper(void *arg)
{
	(void)arg;
	while (!shared->flags.is_over)
		usleep(20000);
	return NULL;
}

static int child_has_many_threads(void)
{
	static pthread_t t[1000];
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	size_t n = 0;
	while (n < ARRAY_LEN(t) && !pthread_create(&t[n], &attr, sleeper, NULL))
		n++;
	shared->nr_rounds = n;
	shared->flags.is_ready = 1;
	while (n)
		pthread_join(t[--n], NULL);
	return 0;
}

TEST(remote_stops_one_of_a_thousand_threads)
{
	pid_t pid = start(child_has_many_threads);
	CHECK(shared->nr_rounds > 500);
	for (int i = 0; i < 5; i++)
		use(pid, NULL);
	CHECK_U64(finish(pid), 0);
}

#endif
