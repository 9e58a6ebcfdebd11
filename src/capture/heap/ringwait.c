/* See ringwait.h. */
#include "base/base.h"
#include "capture/heap/ringwait.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* Of <linux/futex.h> and <sys/syscall.h> since Linux 5.16. */
#define SYS_FUTEX_WAITV 449
#define WAITV_32        2u
#define WAITV_PRIVATE   128u
struct waitv {
	uint64_t val;
	uint64_t uaddr;
	uint32_t flags;
	uint32_t reserved;
};

void heapnap_begin(struct heapnap *n)
{
	__atomic_store_n(&n->own, 0, __ATOMIC_SEQ_CST);
	n->nr_bells = 0;
}

bool heapnap_add(struct heapnap *n, uint32_t *bell)
{
	if (n->nr_bells == HEAPNAP_BELLS_MAX)
		return false;
	__atomic_store_n(bell, 0, __ATOMIC_SEQ_CST);
	n->bells[n->nr_bells++] = bell;
	return true;
}

int heapnap_sleep(struct heapnap *n, uint64_t until_ns)
{
	struct waitv v[HEAPNAP_BELLS_MAX + 1] = {
		{.uaddr = (uintptr_t)&n->own, .flags = WAITV_32 | WAITV_PRIVATE}};
	for (uint32_t i = 0; i < n->nr_bells; i++)
		v[i + 1] = (struct waitv){.uaddr = (uintptr_t)n->bells[i], .flags = WAITV_32};
	struct timespec until = {.tv_sec = (time_t)(until_ns / NS_PER_SEC),
				 .tv_nsec = (long)(until_ns % NS_PER_SEC)};
	if (syscall(SYS_FUTEX_WAITV, v, n->nr_bells + 1, 0, &until, CLOCK_MONOTONIC) >= 0)
		return 1;
	if (errno == ETIMEDOUT)
		return 0;
	/* EAGAIN: it rang before; EINTR; EFAULT: a process was left meanwhile */
	return errno == ENOSYS || errno == EPERM || errno == EINVAL ? -ENOSYS : 1;
}

void heapnap_wake(struct heapnap *n)
{
	__atomic_store_n(&n->own, 1, __ATOMIC_SEQ_CST);
	(void)syscall(SYS_futex, &n->own, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
