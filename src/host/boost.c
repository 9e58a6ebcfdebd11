/*
 * See boost.h. Another thread is boosted by a PI futex (futex(2), FUTEX_LOCK_PI2; Linux 5.14): the
 * futex's owner runs with the priority of the highest waiter for as long as there is one, and the
 * kernel takes the owner's tid from the futex word. The waiter waits in short timeouts, since only
 * the owner could wake it.
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
#define WAIT_NS  (500 * NS_PER_US)
/*
 * The boosted thread runs its program's code at real-time priority, so the boost must end whatever
 * happens to assay. The caller has a higher priority than the boosted thread. The boost ends by
 * itself after BOOST_NS, also if the caller is stopped or killed: the waiter always gets a CPU to
 * end it, since at least two CPUs are required and only one thread per machine is boosted (an
 * abstract socket name, held until its process ends, is the lock).
 */
#define PRIORITY         2
#define PRIORITY_BOOSTED 1
#define BOOST_NS         (10 * NS_PER_MS)

void host_boost_begin(struct host_boost *b)
{
	*b = (struct host_boost){.slack_ns = prctl(PR_GET_TIMERSLACK)};
	/* The default slack of 50 us would delay each timed sleep. */
	b->has_slack = b->slack_ns > 1 && !prctl(PR_SET_TIMERSLACK, 1);
	b->is_raised = sched_getscheduler(0) == SCHED_OTHER &&
		       !sched_setscheduler(0, SCHED_FIFO,
					   &(struct sched_param){.sched_priority = PRIORITY});
}

/* The waiter's thread. It inherits SCHED_FIFO from the thread that creates it. */
static void *wait_for_owner(void *arg)
{
	struct host_boost *b = arg;
	__atomic_store_n(&b->waiter_tid, (int32_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	uint64_t end_ns = clock_mono_ns() + BOOST_NS;
	if (sched_setscheduler(0, SCHED_FIFO,
			       &(struct sched_param){.sched_priority = PRIORITY_BOOSTED}))
		return NULL;
	while (!__atomic_load_n(&b->is_over, __ATOMIC_ACQUIRE)) {
		uint64_t until_ns = clock_mono_ns() + WAIT_NS;
		if (until_ns > end_ns)
			break;
		struct timespec until = {.tv_sec = (time_t)(until_ns / NS_PER_SEC),
					 .tv_nsec = (long)(until_ns % NS_PER_SEC)};
		/* 0: the owner has exited and the futex is locked by this thread. */
		if (!syscall(SYS_futex, &b->futex, LOCK_PI2, 0, &until, NULL, 0) ||
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

static bool take_machine_lock(struct host_boost *b)
{
	static const char name[] = "\0assay-boost";
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	memcpy(addr.sun_path, name, sizeof(name));
	b->lock_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (b->lock_fd < 0)
		return false;
	if (!bind(b->lock_fd, (const struct sockaddr *)&addr,
		  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof(name))))
		return true;
	(void)close(b->lock_fd);
	return false;
}

static void end_thread_boost(struct host_boost *b)
{
	if (!b->has_waiter)
		return;
	__atomic_store_n(&b->is_over, true, __ATOMIC_RELEASE);
	struct timespec until;
	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 4 * (long)WAIT_NS;
	until.tv_sec += until.tv_nsec / (long)NS_PER_SEC;
	until.tv_nsec %= (long)NS_PER_SEC;
	if (pthread_timedjoin_np(b->waiter, NULL, &until)) {
		/* The waiter gets no CPU: resetting its policy ends the boost. */
		int32_t tid = __atomic_load_n(&b->waiter_tid, __ATOMIC_ACQUIRE);
		(void)sched_setscheduler(tid ? tid : 0, SCHED_OTHER, &(struct sched_param){0});
		pthread_join(b->waiter, NULL);
	}
	b->has_waiter = false;
	(void)close(b->lock_fd);
}

void host_boost_thread(struct host_boost *b, int32_t tid)
{
	sigset_t all;
	sigset_t before;
	end_thread_boost(b);
	if (!b->is_raised || !has_two_cpus() || !take_machine_lock(b))
		return;
	b->futex = (uint32_t)tid;
	b->is_over = false;
	b->waiter_tid = 0;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	b->has_waiter = !pthread_create(&b->waiter, NULL, wait_for_owner, b);
	if (!b->has_waiter)
		(void)close(b->lock_fd);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void host_boost_end(struct host_boost *b)
{
	end_thread_boost(b);
	if (b->is_raised)
		(void)sched_setscheduler(0, SCHED_OTHER,
					 &(struct sched_param){0}); /* always allowed */
	if (b->has_slack)
		(void)prctl(PR_SET_TIMERSLACK, b->slack_ns);
	*b = (struct host_boost){0};
}
