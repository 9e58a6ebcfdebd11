/* build: gcc -O2 -fomit-frame-pointer -pthread */
/*
 * N threads that mostly sleep; each uses BURST_US (1,000) of CPU time in crowd_burn twice a second.
 *
 *	crowd N [BURST_US]
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t sink;

static long burst_us = 1000;

static long cpu_us(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static __attribute__((noinline)) void crowd_burn(void)
{
	for (long end_us = cpu_us() + burst_us; cpu_us() < end_us;)
		for (int i = 0; i < 2000; i++)
			sink = sink * 3 + 1;
}

static void *crowd_member(void *arg)
{
	for (;;) {
		usleep(400000 + (useconds_t)(uintptr_t)arg * 300);
		crowd_burn();
	}
	return arg;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1000;
	if (argc > 2)
		burst_us = atol(argv[2]);
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 128 << 10);
	for (int i = 0; i < n; i++) {
		pthread_t t;
		if (pthread_create(&t, &attr, crowd_member, (void *)(uintptr_t)i))
			return 1;
	}
	puts("ready");
	fflush(stdout);
	sleep(120);
	return 0;
}
