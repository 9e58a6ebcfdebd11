/* build: gcc -O1 -g -fno-omit-frame-pointer -pthread */
/*
 * Two threads run, recurse and make system calls for SECONDS of CPU time each, then fork and exec:
 * a recording by perf has every kind of record. Stacks are complete with frame pointers.
 *
 *	churn SECONDS
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;
static double seconds;

__attribute__((noinline)) static void leaf(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		sink += i * i;
}

__attribute__((noinline)) static void middle(unsigned n)
{
	leaf(n);
	leaf(n / 2);
	sink++;
}

__attribute__((noinline)) static void recurse(int depth)
{
	if (depth)
		recurse(depth - 1);
	else
		middle(3000);
	sink++;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *run(void *depth)
{
	for (double end = now() + seconds; now() < end;) {
		recurse(*(int *)depth);
		(void)getppid();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int shallow = 2;
	int middling = 5;
	int deep = 9;
	seconds = argc > 1 ? strtod(argv[1], NULL) : 1;
	pthread_t t;
	if (pthread_create(&t, NULL, run, &middling))
		return 1;
	run(&deep);
	pthread_join(t, NULL);
	pid_t child = fork();
	if (!child) {
		seconds /= 4;
		run(&shallow);
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	waitpid(child, NULL, 0);
	return 0;
}
