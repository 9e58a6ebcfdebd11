/* build: gcc -O1 -fomit-frame-pointer -fno-optimize-sibling-calls */
/*
 * Reads a byte on N distinct stacks (default 30000), 17 calls deep; each call is to one of two
 * functions.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define DEPTH 17

static int fd;
static char byte;

static __attribute__((noinline)) long left(unsigned path, int depth);
static __attribute__((noinline)) long right(unsigned path, int depth);

static long next(unsigned path, int depth)
{
	if (!depth)
		return read(fd, &byte, 1);
	return (path & 1 ? left : right)(path >> 1, depth - 1);
}

static __attribute__((noinline)) long left(unsigned path, int depth)
{
	return next(path, depth) + 1;
}

static __attribute__((noinline)) long right(unsigned path, int depth)
{
	return next(path, depth) + 2;
}

int main(int argc, char **argv)
{
	unsigned nr = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 30000;
	long sum = 0;
	fd = open("/dev/zero", O_RDONLY);
	for (unsigned i = 0; i < nr; i++)
		sum += left(i * 2654435761u >> (32 - DEPTH), DEPTH);
	printf("%ld\n", sum);
	return fd < 0;
}
