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

/*
 * So that the fullest ring fills to a fifth: each drain has a fixed cost, and records read late are
 * no longer in the cache.
 */
#define FULL_WANTED 200

uint64_t ringwait_next_pause(uint64_t pause_ns, uint32_t fullest, uint64_t max_ns)
{
	uint64_t wanted = pause_ns * FULL_WANTED / MAX(fullest, 1u);
	wanted = MIN(wanted, pause_ns + pause_ns / 4);
	return MAX(MIN(wanted, max_ns), (uint64_t)RINGWAIT_PAUSE_MIN_NS);
}
