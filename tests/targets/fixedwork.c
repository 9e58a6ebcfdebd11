/* build: gcc -O2 -fomit-frame-pointer */
/*
 * A fixed amount of work with stacks about fifteen calls deep. Writes its own CPU seconds to the
 * file given as first argument, so that a profiler's CPU time is not included.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>

static __attribute__((noinline)) uint64_t down(uint64_t x, int depth)
{
	if (depth)
		x = down(x ^ (uint64_t)depth, depth - 1) + 1;
	else
		for (int i = 0; i < 20000; i++)
			x = x * 6364136223846793005u + 1442695040888963407u;
	__asm__ volatile("" : "+r"(x));
	return x;
}

int main(int argc, char **argv)
{
	uint64_t x = 1;
	for (int i = 0; i < 80000; i++)
		x = down(x, 12);
	struct timespec ts;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	FILE *f = argc > 1 ? fopen(argv[1], "w") : stdout;
	fprintf(f, "%.6f %llu\n", (double)ts.tv_sec + (double)ts.tv_nsec / 1e9,
		(unsigned long long)x);
	return 0;
}
