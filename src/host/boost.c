/*
 * See boost.h. A priority is lent by the kernel's priority inheritance: the owner of a futex of
 * that kind (futex(2), FUTEX_LOCK_PI2; Linux 5.14) runs with the priority of who waits for it, as
 * long as somebody waits, and the kernel takes the futex's word for who the owner is. Once more is
 * waited in short turns, as nobody but the owner could end it.
 */
#include "base/base.h"
#include "host/boost.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define LOCK_PI2 13
#define TURN_NS  (500 * NS_PER_US)
/*
 * The thread that is lent to runs its program's code before everybody else's, so the loan has to
 * end whatever happens to us. Who lends is before whom it lends to; a loan ends by itself after a
 * while, also when we are stopped or killed, for there is a CPU left for the waiter to see to it:
 * we may use two at least, and there is one loan at a time on this machine (a name of this kind is
 * its owner's until he ends).
 */
#define PRIORITY      2
#define PRIORITY_LENT 1
#define LOAN_NS       (10 * NS_PER_MS)

void host_boost_begin(struct host_boost *u)
{
	*u = (struct host_boost){.slack_ns = prctl(PR_GET_TIMERSLACK)};
	/* Or each look would come 50 us late. */
	u->has_slack = u->slack_ns > 1 && !prctl(PR_SET_TIMERSLACK, 1);
	u->is_raised = sched_getscheduler(0) == SCHED_OTHER &&
		       !sched_setscheduler(0, SCHED_FIFO,
					   &(struct sched_param){.sched_priority = PRIORITY});
}

/* It was made by an urgent thread, so it is one. */
static void *wait_for_owner(void *arg)
{
	struct host_boost *u = arg;
	__atomic_store_n(&u->waiter_tid, (int32_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	uint64_t end_ns = clock_mono_ns() + LOAN_NS;
	if (sched_setscheduler(0, SCHED_FIFO,
			       &(struct sched_param){.sched_priority = PRIORITY_LENT}))
		return NULL;
	while (!__atomic_load_n(&u->is_over, __ATOMIC_ACQUIRE)) {
		uint64_t until_ns = clock_mono_ns() + TURN_NS;
		if (until_ns > end_ns)
			break;
		struct timespec until = {.tv_sec = (time_t)(until_ns / NS_PER_SEC),
					 .tv_nsec = (long)(until_ns % NS_PER_SEC)};
		/* 0: the owner has ended and the futex is ours. */
		if (!syscall(SYS_futex, &u->owner, LOCK_PI2, 0, &until, NULL, 0) ||
		    errno != ETIMEDOUT)
			break;
	}
	return NULL;
}

static bool has_two_cpus(void)
{
	cpu_set_t set;
	return !sched_getaffinity(0, sizeof(set), &set) && CPU_COUNT(&set) > 1;
}

static bool take_only_loan(struct host_boost *u)
{
	static const char name[] = "\0assay-urgent";
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	memcpy(addr.sun_path, name, sizeof(name));
	u->only_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (u->only_fd < 0)
		return false;
	if (!bind(u->only_fd, (const struct sockaddr *)&addr,
		  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof(name))))
		return true;
	(void)close(u->only_fd);
	return false;
}

static void take_back(struct host_boost *u)
{
	if (!u->has_waiter)
		return;
	__atomic_store_n(&u->is_over, true, __ATOMIC_RELEASE);
	struct timespec until;
	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 4 * (long)TURN_NS;
	until.tv_sec += until.tv_nsec / (long)NS_PER_SEC;
	until.tv_nsec %= (long)NS_PER_SEC;
	if (pthread_timedjoin_np(u->waiter, NULL, &until)) {
		/* It gets no CPU: what it lends is its policy, which is taken from it. */
		int32_t tid = __atomic_load_n(&u->waiter_tid, __ATOMIC_ACQUIRE);
		(void)sched_setscheduler(tid ? tid : 0, SCHED_OTHER, &(struct sched_param){0});
		pthread_join(u->waiter, NULL);
	}
	u->has_waiter = false;
	(void)close(u->only_fd);
}

void host_boost_thread(struct host_boost *u, int32_t tid)
{
	sigset_t all;
	sigset_t before;
	take_back(u);
	if (!u->is_raised || !has_two_cpus() || !take_only_loan(u))
		return;
	u->owner = (uint32_t)tid;
	u->is_over = false;
	u->waiter_tid = 0;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	u->has_waiter = !pthread_create(&u->waiter, NULL, wait_for_owner, u);
	if (!u->has_waiter)
		(void)close(u->only_fd);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void host_boost_end(struct host_boost *u)
{
	take_back(u);
	if (u->is_raised)
		(void)sched_setscheduler(0, SCHED_OTHER,
					 &(struct sched_param){0}); /* always allowed */
	if (u->has_slack)
		(void)prctl(PR_SET_TIMERSLACK, u->slack_ns);
	*u = (struct host_boost){0};
}
