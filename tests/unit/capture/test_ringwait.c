/* Waiting for wake-up futexes. */
#include "base/base.h"
#include "tap.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "capture/heap/ringwait.h"

#define LONG_NS 60000000000u

static struct ringwait ringwait;
static uint32_t wake_futexes[2];

static void ring(uint32_t *wake_futex)
{
	__atomic_store_n(wake_futex, 1, __ATOMIC_SEQ_CST);
	(void)syscall(SYS_futex, wake_futex, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void *ring_later(void *ctx)
{
	usleep(20000);
	ring(ctx);
	return NULL;
}

static void *wake_later(void *ctx)
{
	(void)ctx;
	usleep(20000);
	ringwait_wake(&ringwait);
	return NULL;
}

static void begin(void)
{
	ringwait_begin(&ringwait);
	CHECK(ringwait_add(&ringwait, &wake_futexes[0]));
	CHECK(ringwait_add(&ringwait, &wake_futexes[1]));
	if (ringwait_sleep(&ringwait, clock_mono_ns() + 1000) == -ENOSYS)
		tap_skip("this kernel has no futex_waitv");
}

TEST(ringwait_ends_when_its_time_is_over)
{
	begin();
	uint64_t until = clock_mono_ns() + 20000000;
	CHECK(ringwait_sleep(&ringwait, until) == 0);
	CHECK(clock_mono_ns() >= until);
}

TEST(ringwait_ends_when_a_recorder_wakes_or_woke_it)
{
	pthread_t thread;
	begin();
	CHECK(!pthread_create(&thread, NULL, ring_later, &wake_futexes[1]));
	CHECK(ringwait_sleep(&ringwait, clock_mono_ns() + LONG_NS) == 1);
	pthread_join(thread, NULL);
	CHECK(ringwait_sleep(&ringwait, clock_mono_ns() + LONG_NS) == 1);
	begin(); /* an earlier wake does not end this wait */
	CHECK(ringwait_sleep(&ringwait, clock_mono_ns() + 1000) == 0);
}

TEST(ringwait_ends_when_it_is_woken)
{
	pthread_t thread;
	begin();
	CHECK(!pthread_create(&thread, NULL, wake_later, NULL));
	CHECK(ringwait_sleep(&ringwait, clock_mono_ns() + LONG_NS) == 1);
	pthread_join(thread, NULL);
}

TEST(ringwait_takes_as_many_futexes_as_the_kernel_does)
{
	static uint32_t many[RINGWAIT_FUTEXES_MAX + 1];
	begin();
	ringwait_begin(&ringwait);
	for (size_t i = 0; i < RINGWAIT_FUTEXES_MAX; i++)
		CHECK(ringwait_add(&ringwait, &many[i]));
	CHECK(!ringwait_add(&ringwait, &many[RINGWAIT_FUTEXES_MAX]));
	CHECK(ringwait_sleep(&ringwait, clock_mono_ns() + 1000) == 0);
	many[100] = 1;
	CHECK(ringwait_sleep(&ringwait, clock_mono_ns() + LONG_NS) == 1);
}
