/* build: gcc -O1 -g -pthread */
/* planted_memory CASE ill|well SECONDS: what memory grows by, or is short of; see planted.h. "share" is
 * of the process's growth or, where it waits, of its time. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include "planted.h"

#define MIB ((size_t)1 << 20)
static char *volatile kept[65536];

static size_t resident(void)
{
	size_t pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	if (!f || fscanf(f, "%*s %zu", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return pages * 4096;
}

/* What was kept, as a share of what the process grew by. */
static void share_of_growth(size_t bytes, size_t before)
{
	size_t grew = resident() - before;
	part_ns = bytes;
	whole_ns = grew > bytes ? grew : bytes;
}

static FAR char *new_session(size_t n)
{
	char *p = malloc(n);
	must(p, "malloc");
	memset(p, 1, n);
	return p;
}

static FAR void handle_request(void)
{
	char *p = malloc(20000);
	must(p, "malloc");
	memset(p, 2, 20000);
	free(p);
	STAY();
}

/* leak: 16 KiB of each request are never freed; well: the oldest of 256 sessions is. */
static void leak(void)
{
	size_t before = resident(), nr = 0;
	for (struct clocks start = now(); goes_on(start); nr++) {
		size_t slot = nr % (is_ill ? 65536 : 256);
		for (int i = 0; i < 20; i++)
			handle_request();
		if (!is_ill)
			free(kept[slot]);
		kept[slot] = new_session(16384);
		sleep_us(4000);
	}
	share_of_growth((nr < 256 || is_ill ? nr : 256) * 16384, before);
}

/* holes: 64 MiB of blocks of which nine in ten are freed, and the tenth keeps each page; well: the blocks
 * of nine tenths of the pages are. */
static FAR void fill_cache(void)
{
	for (size_t i = 0; i < 65536; i++)
		kept[i] = new_session(1000);
	for (size_t i = 0; i < 65536; i++)
		if (is_ill ? i % 10 : i >= 6554) {
			free(kept[i]);
			kept[i] = NULL;
		}
	malloc_trim(0);
}

static void holes(void)
{
	size_t before = resident();
	fill_cache();
	for (struct clocks start = now(); goes_on(start);)
		sleep_us(10000);
	share_of_growth(6554 * 1000, before);
	part_ns = whole_ns - part_ns; /* the holes */
}

/* stacks: two new threads a second, which use 512 KiB of stack each and never end; well: 16 from the
 * beginning. */
static FAR void use_stack(void)
{
	volatile char buffer[512 * 1024];
	for (size_t i = 0; i < sizeof(buffer); i += 1024)
		buffer[i] = 1;
	STAY();
	for (;;)
		pause();
}

static void *waiting_thread(void *arg)
{
	use_stack();
	return arg;
}

static void stacks(void)
{
	size_t before = resident(), nr = 0;
	for (; !is_ill && nr < 16; nr++)
		start_thread(waiting_thread, NULL);
	for (struct clocks start = now(); goes_on(start); sleep_us(100000))
		if (is_ill && ++nr)
			start_thread(waiting_thread, NULL);
	share_of_growth(nr * 512 * 1024, before);
}

/* mapped: a mapped file is read, page by page, and so becomes resident; well: was read before. */
static FAR unsigned scan_file(const char *p, size_t n)
{
	unsigned sum = 0;
	for (size_t i = 0; i < n; i += 4096)
		sum += (unsigned char)p[i];
	STAY();
	return sum;
}

static void mapped(void)
{
	int fd = open("blocks", O_RDONLY);
	must(fd >= 0, "blocks");
	size_t before = resident(), at = 0;
	char *p = mmap(NULL, 64 * MIB, PROT_READ, MAP_SHARED, fd, 0);
	must(p != MAP_FAILED, "mmap");
	if (!is_ill)
		scan_file(p, at = 64 * MIB);
	for (struct clocks start = now(); goes_on(start); sleep_us(50000))
		if (at + MIB / 2 <= 64 * MIB && is_ill) {
			scan_file(p + at, MIB / 2);
			at += MIB / 2;
		}
	share_of_growth(at, before);
}

/* swap: 48 MiB are written to at random, in a group of 32 MiB with swap; well: in one of 128 MiB. The
 * runner makes the groups. */
static FAR void update_records(char *p)
{
	static volatile char seen;
	for (int i = 0; i < 64; i++) {
		char *at = &p[(size_t)(random() % (48 * 256)) * 4096];
		if (i %
		    8) /* if all pages had to be written to be freed, the group would run out of memory */
			seen = *at;
		else
			++*at;
	}
	STAY();
}

static void swap(void)
{
	char *p = mmap(NULL, 48 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(p != MAP_FAILED, "mmap");
	for (size_t i = 0; i < 48 * MIB; i += 8)
		*(uint64_t *)(void *)(p + i) = (uint64_t)random();
	struct clocks start = now();
	while (goes_on(start)) {
		struct clocks from = now();
		update_records(p);
		count_wait(from);
		burn_us(100);
	}
	count_whole(start);
}

/* reclaim: reads 64 MiB of a file again and again, with a limit of 16 MiB; well: with one of 256 MiB. */
static FAR void read_all(int fd)
{
	static char block[65536];
	for (off_t at = 0; at < (off_t)(64 * MIB); at += 65536)
		must(pread(fd, block, 65536, at) == 65536, "pread");
}

static void reclaim(void)
{
	int fd = open("blocks", O_RDONLY);
	must(fd >= 0, "blocks");
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); /* what is cached is others' memory */
	struct clocks start = now();
	while (goes_on(start)) {
		struct clocks from = now();
		read_all(fd);
		part_ns += mono_ns() - from.wall_ns;
	}
	count_whole(start);
}

static const struct planted cases[] = {
	{"leak", leak, "growth by new_session (well: kept by it)"},
	{"holes", holes, "memory in holes between blocks that live"},
	{"stacks", stacks, "growth by stacks of threads (well: 16 stacks)"},
	{"mapped", mapped, "growth by a mapped file"},
	{"swap", swap, "main waits for memory that was swapped out"},
	{"reclaim", reclaim, "time of reads that need memory to be freed"},
};

int main(int argc, char **argv)
{
	return run_planted(cases, sizeof(cases) / sizeof(*cases), argc, argv);
}
