/*
 * Threads that allocate a little and exit, continuously replaced by new ones, while a timer signal
 * interrupts them a thousand times a second with a handler that calculates. Ends on SIGTERM;
 * reports whether each checksum of memory contents and of floating point results was correct.
 *
 *	threadchurn THREADS
 */
/* build: gcc -O2 -g -pthread */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#define BLOCKS      50
#define THREADS_MAX 1000

static volatile sig_atomic_t is_over;
static volatile double touched;
static long nr_wrong;
static long nr_ended;

static void on_timer(int sig)
{
	double x = touched;
	for (int i = 1; i < 20; i++)
		x = x * 0.5 + 1.0 / i;
	touched = x;
	(void)sig;
}

static void on_end(int sig)
{
	(void)sig;
	is_over = 1;
}

static void *work(void *arg)
{
	unsigned char *blocks[BLOCKS];
	double sum = 0;
	int wrong = 0;
	for (int i = 0; i < BLOCKS; i++) {
		size_t n = (size_t)(16 + i * 37);
		blocks[i] = malloc(n);
		memset(blocks[i], i, n);
		sum += i * 0.25;
	}
	for (int i = 0; i < BLOCKS; i++) {
		size_t n = (size_t)(16 + i * 37);
		blocks[i] = realloc(blocks[i], n * 2);
		wrong += blocks[i][0] != i || blocks[i][n - 1] != i;
		free(blocks[i]);
	}
	wrong += sum != BLOCKS * (BLOCKS - 1) / 2 * 0.25;
	__atomic_fetch_add(&nr_wrong, wrong, __ATOMIC_RELAXED);
	__atomic_fetch_add(&nr_ended, 1, __ATOMIC_RELAXED);
	return arg;
}

int main(int argc, char **argv)
{
	static pthread_t threads[THREADS_MAX];
	int n = argc > 1 ? atoi(argv[1]) : 200;
	struct itimerval each = {{0, 1000}, {0, 1000}};
	signal(SIGALRM, on_timer);
	signal(SIGPROF, on_timer);
	signal(SIGTERM, on_end);
	setitimer(ITIMER_REAL, &each, NULL);
	setitimer(ITIMER_PROF, &each, NULL);
	if (n > THREADS_MAX)
		return 2;
	for (int i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, work, NULL))
			return 2;
	printf("begun\n");
	fflush(stdout);
	for (int i = 0; !is_over; i = (i + 1) % n) {
		pthread_join(threads[i], NULL);
		if (pthread_create(&threads[i], NULL, work, NULL))
			return 2;
	}
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	printf("ended %ld wrong %ld\n", nr_ended, nr_wrong);
	return nr_wrong != 0;
}
