/* build: gcc -O2 -fomit-frame-pointer -pthread */
/*
 * N threads that sleep most of the time, each burning some turns of a loop in crowd_burn now and
 * then: 400,000 take about a millisecond.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile uint64_t sink;

static int nr_turns = 400000;

static __attribute__((noinline)) void crowd_burn(void)
{
	for (int i = 0; i < nr_turns; i++)
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
		nr_turns = atoi(argv[2]);
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
