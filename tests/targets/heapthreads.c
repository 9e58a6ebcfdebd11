/* build: gcc -O2 -g -pthread */
/*
 * Threads that allocate known numbers of blocks:
 *
 *	heapthreads NR ROUNDS EACH [FILE]
 *
 * ROUNDS times NR concurrent threads, all started before the first one allocates. Each allocates
 * and frees EACH blocks of 48 bytes in one function, keeping the last. FILE: waits until it exists.
 * Prints the number of blocks, and of those kept.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NR_MAX 4000

static pthread_barrier_t all_there;
static int nr_each;

__attribute__((noinline)) void *blocks_of_a_thread(void)
{
	void *volatile p = malloc(48);
	memset(p, 1, 48);
	return p;
}

static void *work(void *arg)
{
	void **kept = arg;
	pthread_barrier_wait(&all_there);
	for (int i = 0; i < nr_each; i++) {
		free(*kept);
		*kept = blocks_of_a_thread();
	}
	pthread_barrier_wait(&all_there);
	return NULL;
}

int main(int argc, char **argv)
{
	static pthread_t t[NR_MAX];
	static void *kept[NR_MAX];
	int nr = argc > 3 ? atoi(argv[1]) : 0;
	int nr_rounds = argc > 3 ? atoi(argv[2]) : 0;
	pthread_attr_t attr;

	if (nr < 1 || nr > NR_MAX)
		return 2;
	nr_each = atoi(argv[3]);
	for (int i = 0; argc > 4 && access(argv[4], F_OK) && i < 6000; i++)
		usleep(10000);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 1 << 18);
	for (int r = 0; r < nr_rounds; r++) {
		pthread_barrier_init(&all_there, NULL, (unsigned)nr);
		for (int i = 0; i < nr; i++)
			if (pthread_create(&t[i], &attr, work, &kept[i]))
				return 1;
		for (int i = 0; i < nr; i++)
			pthread_join(t[i], NULL);
		pthread_barrier_destroy(&all_there);
	}
	printf("blocks %ld kept %d\n", (long)nr * nr_rounds * nr_each, nr);
	return 0;
}
