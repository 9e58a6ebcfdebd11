/*
 * Call stacks of many shapes, for recordings of perf: bench_shapes DEPTH SECONDS. Each level is a
 * call of one of eight functions, chosen at random. Built with frame pointers.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NR_WAYS 8
#define WORK    20000 /* about 10 us */

static volatile unsigned sink;
static uint64_t state = 88172645463325252;

static __attribute__((noinline)) void work(void)
{
	for (unsigned i = 0; i < WORK; i++)
		sink += i;
}

static void descend(int depth);

#define WAY(n)                                                   \
	static __attribute__((noinline)) void way_##n(int depth) \
	{                                                        \
		descend(depth - 1);                              \
		sink++; /* no tail call */                       \
	}
/* clang-format off */
WAY(0) WAY(1) WAY(2) WAY(3) WAY(4) WAY(5) WAY(6) WAY(7)
	/* clang-format on */

	static void (*const ways[])(int) = {way_0, way_1, way_2, way_3, way_4, way_5, way_6, way_7};

static __attribute__((noinline)) void descend(int depth)
{
	if (depth <= 0) {
		work();
		return;
	}
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	ways[depth > 4 ? depth % NR_WAYS : (int)(state >> 20 & (NR_WAYS - 1))](depth);
	sink++;
}

static double now_s(void)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_MONOTONIC, &t); /* always there */
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: %s DEPTH SECONDS\n", argv[0]);
		return 2;
	}
	int depth = atoi(argv[1]);
	double end_s = now_s() + atof(argv[2]);
	while (now_s() < end_s)
		for (int i = 0; i < 50; i++)
			descend(depth);
	return 0;
}
