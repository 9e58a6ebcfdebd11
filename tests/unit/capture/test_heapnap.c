/* Sleeping until a bell rings. */
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

static struct heapnap nap;
static uint32_t bells[2];

static void ring(uint32_t *bell)
{
	__atomic_store_n(bell, 1, __ATOMIC_SEQ_CST);
	(void)syscall(SYS_futex, bell, FUTEX_WAKE, 1, NULL, NULL, 0);
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
	heapnap_wake(&nap);
	return NULL;
}

static void begin(void)
{
	heapnap_begin(&nap);
	CHECK(heapnap_add(&nap, &bells[0]));
	CHECK(heapnap_add(&nap, &bells[1]));
	if (heapnap_sleep(&nap, clock_mono_ns() + 1000) == -ENOSYS)
		tap_skip("this kernel has no futex_waitv");
}

TEST(heapnap_ends_when_its_time_is_over)
{
	begin();
	uint64_t until = clock_mono_ns() + 20000000;
	CHECK(heapnap_sleep(&nap, until) == 0);
	CHECK(clock_mono_ns() >= until);
}

TEST(heapnap_ends_when_a_bell_rings_or_rang)
{
	pthread_t thread;
	begin();
	CHECK(!pthread_create(&thread, NULL, ring_later, &bells[1]));
	CHECK(heapnap_sleep(&nap, clock_mono_ns() + LONG_NS) == 1);
	pthread_join(thread, NULL);
	CHECK(heapnap_sleep(&nap, clock_mono_ns() + LONG_NS) == 1);
	begin(); /* what rang before is not of this nap */
	CHECK(heapnap_sleep(&nap, clock_mono_ns() + 1000) == 0);
}

TEST(heapnap_ends_when_it_is_woken)
{
	pthread_t thread;
	begin();
	CHECK(!pthread_create(&thread, NULL, wake_later, NULL));
	CHECK(heapnap_sleep(&nap, clock_mono_ns() + LONG_NS) == 1);
	pthread_join(thread, NULL);
}

TEST(heapnap_takes_as_many_bells_as_the_kernel_does)
{
	static uint32_t many[HEAPNAP_BELLS_MAX + 1];
	begin();
	heapnap_begin(&nap);
	for (size_t i = 0; i < HEAPNAP_BELLS_MAX; i++)
		CHECK(heapnap_add(&nap, &many[i]));
	CHECK(!heapnap_add(&nap, &many[HEAPNAP_BELLS_MAX]));
	CHECK(heapnap_sleep(&nap, clock_mono_ns() + 1000) == 0);
	many[100] = 1;
	CHECK(heapnap_sleep(&nap, clock_mono_ns() + LONG_NS) == 1);
}
