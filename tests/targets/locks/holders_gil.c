/* build: gcc -O2 -g -shared -fPIC */
/*
 * A library that tests/targets/locks/holders_gil.py calls, with and without Python's global interpreter
 * lock (GIL).
 */
#include <stdint.h>
#include <time.h>

uint64_t sleep_ns(uint64_t ns);
uint64_t holding_burn(uint64_t ns);
uint64_t holding_sleep(uint64_t ns);

static uint64_t mono_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Each returns when it ended: what follows is the wait for the lock. */
uint64_t sleep_ns(uint64_t ns)
{
	struct timespec ts = {.tv_sec = 0, .tv_nsec = (long)ns};
	nanosleep(&ts, NULL);
	return mono_ns();
}

uint64_t holding_burn(uint64_t ns)
{
	uint64_t until_ns = mono_ns() + ns;
	while (mono_ns() < until_ns)
		;
	return until_ns;
}

uint64_t holding_sleep(uint64_t ns)
{
	return sleep_ns(ns);
}
