/* build: gcc -O1 -pthread */
/*
 * Programs with known memory usage:
 *
 *	memshapes leak      64 KiB more every 62.5 ms: 1 MiB/s, from leak_here
 *	memshapes steady    48 MiB, written to once; a file of 8 MiB mapped and read; 4 threads with
 *	                    256 KiB of stack each
 *	memshapes cache F   reads a mapped file F of 64 MiB, some more every 50 ms
 *	memshapes holes     80 MiB of blocks of 512 bytes, of which nine of ten are freed
 *
 * Says "ready" when it is as it is to be, and stays for 60 s.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static void *volatile kept;

static void must(int is_fine, const char *what)
{
	if (is_fine)
		return;
	perror(what);
	exit(1);
}

static void sleep_ms(long ms)
{
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000};
	(void)nanosleep(&ts, NULL);
}

static void ready(void)
{
	puts("ready");
	fflush(stdout);
}

static const char *map_file(const char *path, size_t nr_bytes)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	must(fd >= 0 && !ftruncate(fd, (off_t)nr_bytes), path);
	char block[65536];
	memset(block, 7, sizeof(block));
	for (size_t i = 0; i < nr_bytes; i += sizeof(block))
		must(write(fd, block, sizeof(block)) == sizeof(block), "write");
	const char *p = mmap(NULL, nr_bytes, PROT_READ, MAP_SHARED, fd, 0);
	must(p != MAP_FAILED, "mmap");
	close(fd);
	return p;
}

static void read_pages(const volatile char *p, size_t from, size_t to)
{
	for (size_t i = from; i < to; i += 4096)
		(void)p[i];
}

static __attribute__((noinline)) void leak_here(void)
{
	char *p = malloc(65536);
	must(p != NULL, "malloc");
	memset(p, 1, 65536);
	kept = p;
}

static void leak(void)
{
	struct timespec next;
	clock_gettime(CLOCK_MONOTONIC, &next);
	ready();
	for (int i = 0; i < 960; i++) {
		leak_here();
		next.tv_nsec += 62500000;
		if (next.tv_nsec >= 1000000000) {
			next.tv_nsec -= 1000000000;
			next.tv_sec++;
		}
		(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
}

static pthread_barrier_t started;

static void *sit(void *arg)
{
	char room[256 << 10];
	memset(room, 1, sizeof(room));
	__asm__ volatile("" : : "r"(room) : "memory");
	pthread_barrier_wait(&started);
	sleep_ms(60000);
	return arg;
}

static void steady(void)
{
	pthread_t threads[4];
	must(!pthread_barrier_init(&started, NULL, 5), "barrier");
	char *p = malloc(48 * MIB);
	must(p != NULL, "malloc");
	memset(p, 1, 48 * MIB);
	kept = p;
	read_pages(map_file("steady.data", 8 * MIB), 0, 8 * MIB);
	for (int i = 0; i < 4; i++)
		must(!pthread_create(&threads[i], NULL, sit, NULL), "thread");
	pthread_barrier_wait(&started);
	ready();
	sleep_ms(60000);
}

static void cache(const char *path)
{
	const size_t nr_bytes = 64 * MIB;
	const char *p = map_file(path, nr_bytes);
	madvise((void *)(uintptr_t)p, nr_bytes, MADV_RANDOM);
	ready();
	for (size_t at = 0; at < nr_bytes; at += MIB / 2) {
		read_pages(p, at, at + MIB / 2);
		sleep_ms(50);
	}
	sleep_ms(60000);
}

static void holes(void)
{
	const size_t nr = 80 * MIB / 512;
	char **blocks = malloc(nr * sizeof(*blocks));
	must(blocks != NULL, "malloc");
	for (size_t i = 0; i < nr; i++) {
		blocks[i] = malloc(500);
		must(blocks[i] != NULL, "malloc");
		memset(blocks[i], 1, 500);
	}
	for (size_t i = 0; i < nr; i++)
		if (i % 10)
			free(blocks[i]);
	ready();
	/* An allocator is asked where a thread is out of it: in sleep. */
	for (int i = 0; i < 600; i++)
		sleep_ms(100);
	kept = blocks;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	if (!strcmp(what, "leak"))
		leak();
	else if (!strcmp(what, "steady"))
		steady();
	else if (!strcmp(what, "cache") && argc > 2)
		cache(argv[2]);
	else if (!strcmp(what, "holes"))
		holes();
	else
		must(0, "memshapes leak|steady|cache FILE|holes");
	return 0;
}
