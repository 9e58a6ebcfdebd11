/* build: gcc -O1 -g -fno-optimize-sibling-calls -fno-optimize-strlen -pthread */
/*
 * Deterministic heap, as input for heap profilers: 50 blocks of 100,000 bytes by cache_fill, which
 * stay live; 10,000 pairs of blocks of 200 bytes by session_open, of which one stays and the other
 * is freed immediately; a burst of 3 MB, which is the peak; 200 blocks by a thread. `heapfiles
 * ROUNDS`: repeats the pairs.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline, noclone))

static void *volatile keep;

NOINLINE static void *get(size_t nr_bytes)
{
	char *p = malloc(nr_bytes);
	memset(p, 1, nr_bytes);
	keep = p;
	return p;
}

NOINLINE static void *cache_fill(size_t nr_bytes)
{
	void *p = get(nr_bytes);
	keep = p;
	return p;
}

NOINLINE static void *session_open(size_t nr_bytes)
{
	void *p = get(nr_bytes);
	keep = p;
	return p;
}

NOINLINE static void burst(void)
{
	void *blocks[30];
	for (int i = 0; i < 30; i++)
		blocks[i] = get(100000 + i);
	for (int i = 0; i < 30; i++)
		free(blocks[i]);
}

static void *worker(void *arg)
{
	for (size_t i = 0; i < 200; i++)
		cache_fill(64 + i % 7 * 100);
	return arg;
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 1;
	pthread_t thread;
	pthread_create(&thread, NULL, worker, NULL);
	pthread_join(thread, NULL);
	for (int i = 0; i < 50; i++)
		cache_fill(100000);
	burst();
	for (long i = 0; i < 10000 * rounds; i++) {
		session_open(200);
		free(session_open(200));
	}
	return 0;
}
