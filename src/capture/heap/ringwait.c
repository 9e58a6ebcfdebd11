/* Sleeping between drains; see ringwait.h. */
#include "base/base.h"
#include "capture/heap/ringwait.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* In <linux/futex.h> and <sys/syscall.h> since Linux 5.16. */
#define SYS_FUTEX_WAITV 449
#define WAITV_32        2u
#define WAITV_PRIVATE   128u
struct waitv {
	uint64_t val;
	uint64_t uaddr;
	uint32_t flags;
	uint32_t reserved;
};

void ringwait_begin(struct ringwait *w)
{
	__atomic_store_n(&w->is_woken, 0, __ATOMIC_SEQ_CST);
	w->nr_wake_futexes = 0;
}

bool ringwait_add(struct ringwait *w, uint32_t *wake_futex)
{
	if (w->nr_wake_futexes == RINGWAIT_FUTEXES_MAX)
		return false;
	__atomic_store_n(wake_futex, 0, __ATOMIC_SEQ_CST);
	w->wake_futexes[w->nr_wake_futexes++] = wake_futex;
	return true;
}

int ringwait_sleep(struct ringwait *w, uint64_t until_ns)
{
	struct waitv v[RINGWAIT_FUTEXES_MAX + 1] = {
		{.uaddr = (uintptr_t)&w->is_woken, .flags = WAITV_32 | WAITV_PRIVATE}};
	for (uint32_t i = 0; i < w->nr_wake_futexes; i++)
		v[i + 1] =
			(struct waitv){.uaddr = (uintptr_t)w->wake_futexes[i], .flags = WAITV_32};
	struct timespec until = {.tv_sec = (time_t)(until_ns / NS_PER_SEC),
				 .tv_nsec = (long)(until_ns % NS_PER_SEC)};
	if (syscall(SYS_FUTEX_WAITV, v, w->nr_wake_futexes + 1, 0, &until, CLOCK_MONOTONIC) >= 0)
		return 1;
	if (errno == ETIMEDOUT)
		return 0;
	/* EAGAIN: woken before; EINTR; EFAULT: unmapped meanwhile */
	return errno == ENOSYS || errno == EPERM || errno == EINVAL ? -ENOSYS : 1;
}

void ringwait_wake(struct ringwait *w)
{
	__atomic_store_n(&w->is_woken, 1, __ATOMIC_SEQ_CST);
	(void)syscall(SYS_futex, &w->is_woken, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
