/* build: gcc -O2 -g -fomit-frame-pointer -fno-optimize-sibling-calls -pthread -ljemalloc */
/*
 * For each line on standard input, allocates 4000 blocks of 1000 bytes by holds_thrice and a third
 * as many by holds_once, several calls deep, in a new thread and in main; all stay live. Prints
 * "ready", then "done" after each line, both with the address of jemalloc's backtrace function for
 * profiling.
 */
#include <jemalloc/jemalloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define NR 2000

static void *kept[64][NR * 4 / 3 + 1];
static int nr_rounds;

static void say(const char *what)
{
	void *hook = NULL;
	size_t n = sizeof(hook);
	mallctl("experimental.hooks.prof_backtrace", &hook, &n, NULL, 0);
	printf("%s %p\n", what, hook);
	fflush(stdout);
}

static __attribute__((noinline)) void holds_thrice(void **to)
{
	for (int i = 0; i < NR; i++)
		to[i] = malloc(1000);
}

static __attribute__((noinline)) void holds_once(void **to)
{
	for (int i = 0; i < NR / 3; i++)
		to[i] = malloc(1000);
}

static __attribute__((noinline)) void goes_deep(void **to, int depth)
{
	if (depth) {
		goes_deep(to, depth - 1);
		__asm__ volatile("" : : : "memory");
		return;
	}
	holds_thrice(to);
	holds_once(to + NR);
	__asm__ volatile("" : : : "memory");
}

static void *in_thread(void *to)
{
	goes_deep(to, 40);
	return NULL;
}

int main(void)
{
	char line[64];
	pthread_t t;

	say("ready");
	while (nr_rounds < 62 && fgets(line, sizeof(line), stdin)) {
		pthread_create(&t, NULL, in_thread, kept[nr_rounds++]);
		pthread_join(t, NULL);
		goes_deep(kept[nr_rounds++], 40);
		say("done");
	}
	return 0;
}
