/* build: gcc -O1 -fno-inline -fno-builtin */
/*
 * Allocations of known number and size by all functions of libc: leaky() keeps N blocks of 1000
 * bytes; churny() allocates and frees 300, 600 (by reallocarray) and 100 (by calloc) bytes N times,
 * aligned() 2000 bytes N times. So N blocks of 5 N allocations and 4000 N bytes stay live.
 *
 *	allocs N [MILLISECONDS-BEFORE]	prints "ready" before it begins
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *keep;

static void leaky(void)
{
	void **p = malloc(1000);
	*p = keep;
	keep = p;
}

static void churny(void)
{
	void *p = malloc(300);
	p = reallocarray(p, 6, 100); /* which jumps to realloc */
	free(p);
	free(calloc(10, 10));
}

static void aligned(void)
{
	void *p;
	if (!posix_memalign(&p, 64, 2000))
		free(p);
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
	static char out[64];
	setvbuf(stdout, out, _IOLBF, sizeof(out)); /* no allocation of stdio's */
	puts("ready");
	usleep(1000 * (argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0));
	for (long i = 0; i < n; i++) {
		leaky();
		churny();
		aligned();
	}
	return 0;
}
