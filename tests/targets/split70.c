/* build: gcc -O2 -g -fomit-frame-pointer -pthread */
/*
 * CPU time split 70/20/10 between three functions, with jittered phases, for ARG seconds of CPU
 * time. hot_a calls its work through an inlined function and three levels of recursion. The split
 * is the same in each of ARG2 threads (default 1). Prints the CPU time spent in each function,
 * measured by the thread's CPU clock.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double seconds = 3;
static uint64_t truth_ns[64][3];

static uint64_t cpu_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline __attribute__((always_inline)) uint64_t churn_inlined(uint64_t x, uint64_t ns)
{
	uint64_t end = cpu_ns() + ns;
	do {
		for (int i = 0; i < 2000; i++)
			x = x * 6364136223846793005u + 1442695040888963407u;
	} while (cpu_ns() < end);
	return x;
}

static __attribute__((noinline)) uint64_t hot_a(uint64_t x, uint64_t ns, int depth)
{
	if (depth)
		x = hot_a(x, ns, depth - 1) + 1;
	else
		x = churn_inlined(x, ns);
	__asm__ volatile("" : "+r"(x));
	return x;
}

static __attribute__((noinline)) uint64_t hot_b(uint64_t x, uint64_t ns)
{
	x = churn_inlined(x, ns);
	__asm__ volatile("" : "+r"(x));
	return x;
}

/* Not the same code as hot_b, or the compiler makes the two one function. */
static __attribute__((noinline)) uint64_t hot_c(uint64_t x, uint64_t ns)
{
	x = churn_inlined(x ^ 0x5555, ns);
	__asm__ volatile("" : "+r"(x));
	return x;
}

static __attribute__((noinline)) void *worker(void *arg)
{
	unsigned idx = (unsigned)(uintptr_t)arg;
	unsigned seed = idx + 1;
	uint64_t x = seed;
	uint64_t end = cpu_ns() + (uint64_t)(seconds * 1e9);
	while (cpu_ns() < end) {
		uint64_t unit = 20000 + (uint64_t)rand_r(&seed) % 20000;
		uint64_t t0 = cpu_ns();
		x = hot_a(x, unit * 7, 3);
		uint64_t t1 = cpu_ns();
		x = hot_b(x, unit * 2);
		uint64_t t2 = cpu_ns();
		x = hot_c(x, unit);
		uint64_t t3 = cpu_ns();
		truth_ns[idx][0] += t1 - t0;
		truth_ns[idx][1] += t2 - t1;
		truth_ns[idx][2] += t3 - t2;
	}
	return (void *)(uintptr_t)x;
}

int main(int argc, char **argv)
{
	int nr = 1;
	if (argc > 1)
		seconds = strtod(argv[1], NULL);
	if (argc > 2)
		nr = (int)strtol(argv[2], NULL, 10);
	pthread_t t[64];
	for (int i = 1; i < nr && i < 64; i++)
		pthread_create(&t[i], NULL, worker, (void *)(uintptr_t)i);
	worker(NULL);
	for (int i = 1; i < nr && i < 64; i++)
		pthread_join(t[i], NULL);
	uint64_t sum[3] = {0};
	for (int i = 0; i < nr; i++)
		for (int k = 0; k < 3; k++)
			sum[k] += truth_ns[i][k];
	double all = (double)(sum[0] + sum[1] + sum[2]);
	printf("%.6f %.6f %.6f\n", (double)sum[0] / all, (double)sum[1] / all,
	       (double)sum[2] / all);
	return 3;
}
