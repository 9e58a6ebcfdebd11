/* build: gcc -O1 -g -fno-optimize-sibling-calls */
/*
 * Keeps blocks allocated by two functions: steady, 2,000 of 1,024 bytes from the start, and leaky,
 * 2,000 more per round. After each of four rounds it requests a profile dump from jemalloc, if that
 * is loaded (LD_PRELOAD) with profiling.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

#define ROUNDS 4
#define BLOCKS 2000
#define BYTES  1024

int mallctl(const char *name, void *old, size_t *old_len, void *new, size_t new_len)
	__attribute__((weak));

static void *volatile kept[(ROUNDS + 1) * BLOCKS];
static size_t nr_kept;

NOINLINE static void steady(void)
{
	void *p = malloc(BYTES);
	memset(p, 1, BYTES);
	kept[nr_kept++] = p;
}

NOINLINE static void leaky(void)
{
	void *p = malloc(BYTES);
	memset(p, 2, BYTES);
	kept[nr_kept++] = p;
}

int main(void)
{
	for (int i = 0; i < BLOCKS; i++)
		steady();
	for (int r = 0; r < ROUNDS; r++) {
		for (int i = 0; i < BLOCKS; i++)
			leaky();
		if (mallctl)
			mallctl("prof.dump", NULL, NULL, NULL, 0);
		usleep(400000);
	}
	return 0;
}
