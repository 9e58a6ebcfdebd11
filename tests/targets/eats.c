/* build: gcc -O1 -fno-inline */
/*
 * Allocates and touches memory without freeing it: big() three quarters, small() one quarter.
 * Prints how much it allocated and by how much its anonymous memory grew.
 *
 *	eats MIB [MICROSECONDS-BETWEEN-256-KIB]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BIG_BYTES   (192u << 10) /* above malloc's threshold: mmap */
#define SMALL_BYTES 1024u

static void *keep[1 << 20];
static size_t nr;

/* A wrapper, as many programs have: what it allocates is its caller's. */
static void *xmalloc(size_t n)
{
	void *volatile p = malloc(n);
	return p;
}

static void *big(void)
{
	char *p = xmalloc(BIG_BYTES);
	if (p)
		memset(p, 1, BIG_BYTES);
	return p;
}

static void *small(void)
{
	char *p = malloc(SMALL_BYTES);
	if (p)
		memset(p, 1, SMALL_BYTES);
	return p;
}

static unsigned long anon_kib(void)
{
	char line[256];
	unsigned long kib = 0;
	FILE *f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "RssAnon: %lu kB", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib;
}

int main(int argc, char **argv)
{
	unsigned long mib = argc > 1 ? strtoul(argv[1], NULL, 10) : 64;
	unsigned us = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
	unsigned long before = anon_kib();
	for (unsigned long i = 0; i < mib * 4; i++) { /* 256 KiB a turn */
		keep[nr++] = big();
		for (unsigned k = 0;
		     k < (64u << 10) / SMALL_BYTES && nr < sizeof(keep) / sizeof(*keep); k++)
			keep[nr++] = small();
		if (us)
			usleep(us);
	}
	printf("asked %lu KiB\ngrew %lu KiB\n", mib << 10, anon_kib() - before);
	return 0;
}
