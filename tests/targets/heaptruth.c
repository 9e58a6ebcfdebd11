/* build: gcc -O2 -g -fomit-frame-pointer -fno-optimize-sibling-calls -pthread */
/* also heaptruth_static: gcc -O2 -g -static -fno-optimize-sibling-calls -pthread -Wl,--build-id */
/* also heaptruth_je: gcc -O2 -g -static -fno-optimize-sibling-calls -pthread -Wl,--build-id -ljemalloc -lm -lstdc++ */
/* also heaptruth_musl: musl-gcc -O2 -g -fno-optimize-sibling-calls -static -Wl,--build-id */
/*
 * Allocates in various ways, each from a function named after it, and prints its own counts:
 *
 *	heaptruth [single] [wait FILE]
 *
 *	FUNCTION calls N bytes N frees N freed N temporary N live N live_bytes N
 *	peak_bytes N        most that these functions had at a time
 *	older N             blocks from before the wait that were freed after it
 *
 * single: in one thread only. wait: the work begins when FILE is there, and the program ends when
 * it is gone again.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

#define NR_LEAKS     1000
#define NR_TEMPORARY 5000
#define NR_PEAK      64
#define NR_CHAINS    300
#define NR_LINKS     8
#define NR_CALLOCS   700
#define NR_ALIGNED   60
#define NR_CROSS     2000
#define NR_OLDER     200

enum site { LEAKS, TEMPORARIES, PEAK, CHAINS, CALLOCS, ALIGNED, CROSS, SITES };
static const char *const names[SITES] = {"leaks",   "temporaries", "peaks",  "chains",
					 "callocs", "aligned",     "crosses"};

static struct {
	uint64_t calls, bytes, frees, freed, temporary;
} sums[SITES];
static uint64_t live, peak;
static void *volatile sink;
static __thread void *last; /* what this thread allocated last */

static void *got(enum site s, void *p, size_t n)
{
	sums[s].calls++;
	sums[s].bytes += n;
	live += n;
	if (live > peak)
		peak = live;
	memset(p, 1, n);
	sink = last = p;
	return p;
}

/* @p: as it was, it is freed already */
static void gone(enum site s, const void *p, size_t n)
{
	if (p == last) {
		sums[s].temporary++;
		last = NULL;
	}
	sums[s].frees++;
	sums[s].freed += n;
	live -= n;
}

NOINLINE static void leaks(void)
{
	for (int i = 0; i < NR_LEAKS; i++)
		got(LEAKS, malloc(100), 100);
}

NOINLINE static void temporaries(void)
{
	for (size_t i = 0; i < NR_TEMPORARY; i++) {
		void *volatile p = got(TEMPORARIES, malloc(64 + i % 8), 64 + i % 8);
		free(p);
		gone(TEMPORARIES, p, 64 + i % 8);
	}
}

static void *volatile kept[NR_CROSS];

NOINLINE static void peaks(void)
{
	for (int i = 0; i < NR_PEAK; i++)
		kept[i] = got(PEAK, malloc(65536), 65536);
}

NOINLINE static void peaks_end(void)
{
	for (int i = 0; i < NR_PEAK; i++) {
		free(kept[i]);
		gone(PEAK, kept[i], 65536);
	}
}

/* Each realloc frees what it was given; all but the first free what was allocated last. */
NOINLINE static void chains(void)
{
	for (int i = 0; i < NR_CHAINS; i++) {
		size_t n = 16;
		void *p = got(CHAINS, malloc(n), n);
		for (int k = 0; k < NR_LINKS; k++) {
			void *volatile old = p;
			p = realloc(old, 2 * n);
			gone(CHAINS, old, n);
			n *= 2;
			got(CHAINS, p, n);
		}
		void *volatile end = p;
		free(end);
		gone(CHAINS, end, n);
	}
}

NOINLINE static void callocs(void)
{
	for (int i = 0; i < NR_CALLOCS; i++)
		kept[i] = got(CALLOCS, calloc(3, 40), 120);
}

NOINLINE static void callocs_end(void)
{
	for (int i = 0; i < NR_CALLOCS / 2; i++) {
		free(kept[i]);
		gone(CALLOCS, kept[i], 120);
	}
}

NOINLINE static void aligned(void)
{
	for (int i = 0; i < NR_ALIGNED; i++) {
		void *p = NULL;
		if (i % 2 ? posix_memalign(&p, 64, 1000) : !(p = aligned_alloc(256, 1024)))
			exit(1);
		kept[i] = got(ALIGNED, p, i % 2 ? 1000 : 1024);
	}
}

NOINLINE static void aligned_end(void)
{
	for (int i = 0; i < NR_ALIGNED; i++) {
		free(kept[i]);
		gone(ALIGNED, kept[i], i % 2 ? 1000 : 1024);
	}
}

NOINLINE static void crosses(void)
{
	for (int i = 0; i < NR_CROSS; i++)
		kept[i] = got(CROSS, malloc(300), 300);
}

NOINLINE static void *crosses_end(void *arg)
{
	(void)arg;
	for (int i = 0; i < NR_CROSS; i++) {
		free(kept[i]);
		gone(CROSS, kept[i], 300);
	}
	return NULL;
}

NOINLINE static void work(int is_single)
{
	pthread_t thread;
	leaks();
	temporaries();
	peaks();
	peaks_end();
	chains();
	callocs();
	callocs_end();
	aligned();
	aligned_end();
	crosses();
	if (is_single) {
		crosses_end(NULL);
	} else {
		if (pthread_create(&thread, NULL, crosses_end, NULL))
			exit(1);
		pthread_join(thread, NULL);
	}
}

int main(int argc, char **argv)
{
	static void *older[NR_OLDER];
	int is_single = 0;
	const char *file = NULL;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "single"))
			is_single = 1;
		else if (!strcmp(argv[i], "wait") && i + 1 < argc)
			file = argv[++i];
	}
	for (int i = 0; i < NR_OLDER; i++)
		older[i] = malloc(500);
	while (file && access(file, F_OK))
		usleep(10000);
	for (int i = 0; i < NR_OLDER; i++)
		free(older[i]);
	work(is_single);
	for (int s = 0; s < SITES; s++)
		printf("%s calls %lu bytes %lu frees %lu freed %lu temporary %lu live %lu "
		       "live_bytes %lu\n",
		       names[s], sums[s].calls, sums[s].bytes, sums[s].frees, sums[s].freed,
		       sums[s].temporary, sums[s].calls - sums[s].frees,
		       sums[s].bytes - sums[s].freed);
	printf("peak_bytes %lu\nolder %d\n", peak, NR_OLDER);
	fflush(stdout);
	while (file && !access(file, F_OK))
		usleep(10000);
	return 0;
}
