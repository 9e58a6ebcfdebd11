/*
 * Children on which the tests of remote/ptrace make calls: each waits or calculates, and its exit
 * code says whether it could go on as if nothing had been. Not with sanitizers, whose functions need
 * a stack that they know. Include it in one file per test.
 */
#ifndef ASSAY_TESTS_LIB_REMOTECHILD_H
#define ASSAY_TESTS_LIB_REMOTECHILD_H

#include "base/base.h"
#include "heapchild.h"
#include "tap.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "remote/ptrace/remote.h"

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define HAS_REMOTE_CHILDREN

/* Shared with a child; everything that both sides wait for. */
struct shared {
	struct child_flags flags;
	volatile int nr_handled;
	volatile uint64_t nr_rounds;
};
static struct shared *shared;

static inline pid_t start(int (*fn)(void))
{
	shared = child_memory(sizeof(*shared));
	return child_start(&shared->flags, fn);
}

/* Lets it end by itself: what it saw is its exit code, 0 = all was well. */
static inline int finish(pid_t pid)
{
	return child_finish(&shared->flags, pid);
}

static __attribute__((noinline)) uint64_t sum6(uint64_t a, uint64_t b, uint64_t c, uint64_t d,
					       uint64_t e, uint64_t f)
{
	__asm__ volatile("pxor %%xmm0, %%xmm0; pxor %%xmm7, %%xmm7; pxor %%xmm15, %%xmm15; "
			 "fninit" ::
				 : "xmm0", "xmm7", "xmm15");
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f;
}

static inline void use(pid_t pid, const struct remote_options *options)
{
	struct remote *r = NULL;
	int64_t got = 0;
	int32_t sum = 0;
	uint64_t addr = 0;
	uint64_t value = 0x1122334455667788ull;
	uint64_t back = 0;
	MUST(remote_open(&r, pid, options, &must_err));
	if (!r)
		return;
	MUST(remote_syscall(r, SYS_getpid, (uint64_t[REMOTE_ARGS_MAX]){0}, &got, &must_err));
	CHECK_U64(got, pid);
	MUST(remote_call(r, (uint64_t)(uintptr_t)sum6,
			 (uint64_t[REMOTE_ARGS_MAX]){1, 2, 3, 4, 5, 6}, &sum, &must_err));
	CHECK_U64(sum, 1 + 4 + 9 + 16 + 25 + 36);
	MUST(remote_scratch(r, 8, &addr, &must_err));
	MUST(remote_write(r, addr, &value, 8, &must_err));
	MUST(remote_read(r, addr, &back, 8, &must_err));
	CHECK_U64(back, value);
	remote_close(r);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static inline int blocked_in(int (*call)(void))
{
	shared->flags.is_ready = 1;
	return call();
}

static int pipe_fds[2];

static inline int call_read(void)
{
	char c;
	return read(pipe_fds[0], &c, 1) == 1 ? 0 : 1;
}

static inline int call_epoll(void)
{
	int ep = epoll_create1(0);
	struct epoll_event ev = {.events = EPOLLIN};
	epoll_ctl(ep, EPOLL_CTL_ADD, pipe_fds[0], &ev);
	return epoll_wait(ep, &ev, 1, -1) == 1 ? 0 : 1;
}

static inline int call_ppoll(void)
{
	struct pollfd p = {pipe_fds[0], POLLIN, 0};
	sigset_t none;
	sigemptyset(&none);
	return ppoll(&p, 1, NULL, &none) == 1 ? 0 : 1;
}

static inline int call_poll(void)
{
	struct pollfd p = {pipe_fds[0], POLLIN, 0};
	return poll(&p, 1, 30000) == 1 ? 0 : 1;
}

static inline int child_read(void)
{
	return blocked_in(call_read);
}

static inline int child_epoll(void)
{
	return blocked_in(call_epoll);
}

static inline int child_ppoll(void)
{
	return blocked_in(call_ppoll);
}

static inline int child_poll(void)
{
	return blocked_in(call_poll);
}

/* Until the parent has done all that it wants to do, which may be long after the wait that it tests. */
static inline void stay(void)
{
	while (!shared->flags.is_over)
		usleep(1000);
}

static inline int child_nanosleep(void)
{
	struct timespec t = {.tv_nsec = 300000000};
	uint64_t begin = clock_mono_ns();
	shared->flags.is_ready = 1;
	int rc = nanosleep(&t, NULL);
	bool is_early = clock_mono_ns() - begin < 300000000;
	stay();
	return rc || is_early;
}

static inline int child_futex(void)
{
	pthread_mutex_t m;
	pthread_mutexattr_t a;
	pthread_mutexattr_init(&a);
	pthread_mutex_init(&m, &a);
	pthread_mutex_lock(&m);
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += 300000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	shared->flags.is_ready = 1;
	int rc = pthread_mutex_timedlock(&m, &t);
	stay();
	return rc != ETIMEDOUT;
}

static inline int child_sleeps(void)
{
	shared->flags.is_ready = 1;
	stay();
	return 0;
}

/* ---- running --------------------------------------------------------------------------------- */

static inline int child_computes(void)
{
	shared->flags.is_ready = 1;
	/* Registers that sum6 spoils hold the result throughout. */
	while (!shared->flags.is_over) {
		double s = 0;
		for (int i = 1; i < 2000; i++)
			s += 1.0 / i;
		if (s < 8.1 || s > 8.2)
			return 1;
		long double l = 1;
		for (int i = 1; i < 200; i++)
			l = l * 1.5L / 1.25L;
		if (l < 1e15L)
			return 2;
		shared->nr_rounds++;
	}
	return 0;
}

static inline void on_signal(int sig)
{
	(void)sig;
	shared->nr_handled++;
}

#endif
#endif
