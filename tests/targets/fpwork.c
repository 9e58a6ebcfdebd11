/* build: gcc -O1 -fno-omit-frame-pointer -fno-optimize-sibling-calls -pthread */
/* Two threads, many different stacks some twenty frames deep, with frame pointers; ARG seconds. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static double seconds = 3;

#define WALK(name, a, b)                                                      \
	static __attribute__((noinline)) uint64_t name(uint64_t x, int depth) \
	{                                                                     \
		if (!depth) {                                                 \
			for (int i = 0; i < 300; i++)                         \
				x = x * 6364136223846793005u + 1;             \
			return x;                                             \
		}                                                             \
		x = (x >> depth) & 1 ? a(x, depth - 1) : b(x, depth - 1);     \
		return x + 1;                                                 \
	}
static uint64_t step_a(uint64_t x, int depth);
static uint64_t step_b(uint64_t x, int depth);
static uint64_t step_c(uint64_t x, int depth);
WALK(step_a, step_b, step_c)
WALK(step_b, step_c, step_a)
WALK(step_c, step_a, step_b)

static void *worker(void *arg)
{
	uint64_t x = (uintptr_t)arg;
	struct timespec ts;
	do {
		for (int i = 0; i < 1000; i++)
			x = step_a(x * 2862933555777941757u + 3037000493u, 18);
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	} while ((double)ts.tv_sec + (double)ts.tv_nsec / 1e9 < seconds);
	return (void *)(uintptr_t)x;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		seconds = strtod(argv[1], NULL);
	pthread_t t;
	pthread_create(&t, NULL, worker, (void *)1);
	worker((void *)2);
	pthread_join(t, NULL);
	return 0;
}
