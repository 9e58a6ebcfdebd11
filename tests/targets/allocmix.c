/* build: gcc -O2 -g -fomit-frame-pointer -fno-optimize-sibling-calls -pthread */
/* also allocmix_static: gcc -O2 -g -static -pthread */
/* also allocmix_musl: musl-gcc -O2 -g -static */
/* also allocmix_je: gcc -O2 -g -pthread -ljemalloc */
/* also allocmix_tc: gcc -O2 -g -pthread -ltcmalloc_minimal */
/* also allocmix_mi: gcc -O2 -g -pthread -lmimalloc */
/* also allocmix_rjem: gcc -O2 -g -pthread -DRJEM -lrjem -lm */
/* also allocmix_rjem_stripped: gcc -O2 -s -pthread -DRJEM -lrjem -lm */
/*
 * allocmix THREADS OPS [THINK]: an allocation benchmark with stacks about 17 deep and no frame
 * pointers. Each thread keeps a table of blocks; an operation frees a random entry and fills it
 * again from one of 18 places, 224 sizes from 16 bytes to 256 KiB, small ones most often; 6 %
 * calloc, 3 % realloc. THINK: rounds of arithmetic between operations. Prints what it did, as
 * it counted itself:
 *
 *	calls N frees N bytes N live N live_bytes N seconds S cpu S
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#ifdef RJEM
#define MALLOC  _rjem_malloc
#define CALLOC  _rjem_calloc
#define REALLOC _rjem_realloc
#define FREE    _rjem_free
#endif
#ifndef MALLOC
#define MALLOC  malloc
#define CALLOC  calloc
#define REALLOC realloc
#define FREE    free
#else
void *MALLOC(size_t);
void *CALLOC(size_t, size_t);
void *REALLOC(void *, size_t);
void FREE(void *);
#endif

#define NR_BLOCKS 20000

struct worker {
	pthread_t thread;
	uint64_t random;
	uint64_t nr_ops;
	unsigned think;
	void *blocks[NR_BLOCKS];
	uint32_t sizes[NR_BLOCKS];
	uint64_t nr_calls, nr_frees, nr_bytes;
};

static uint64_t next_random(struct worker *w)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return w->random;
}

static size_t pick_size(struct worker *w)
{
	uint64_t r = next_random(w);
	unsigned log2 = 4 + (unsigned)__builtin_ctzll(r | 1 << 14);
	if ((r >> 20) % 10 == 0)
		log2 = 4 + (unsigned)(r >> 24) % 14;
	size_t n = (size_t)1 << log2;
	return n + n / 16 * ((r >> 32) % 16);
}

static volatile uint64_t sink;

static void think(unsigned rounds)
{
	uint64_t x = sink;
	for (unsigned i = 0; i < rounds; i++)
		x = x * 6364136223846793005u + 1442695040888963407u;
	sink = x;
}

static __attribute__((noinline)) void *get(struct worker *w, size_t n, unsigned how)
{
	w->nr_calls++;
	w->nr_bytes += n;
	return how < 6 ? CALLOC(1, n) : MALLOC(n);
}

/* Eighteen places that differ in their return addresses. */
#define PLACE(name)                                                                         \
	static __attribute__((noinline)) void *name(struct worker *w, size_t n, unsigned h) \
	{                                                                                   \
		char *p = get(w, n, h);                                                     \
		p[0] = 1;                                                                   \
		return p;                                                                   \
	}
PLACE(place_0)
PLACE(place_1)
PLACE(place_2)
PLACE(place_3)
PLACE(place_4)
PLACE(place_5)
PLACE(place_6)
PLACE(place_7)
PLACE(place_8)
PLACE(place_9)
PLACE(place_10)
PLACE(place_11)
PLACE(place_12)
PLACE(place_13)
PLACE(place_14)
PLACE(place_15)
PLACE(place_16)
PLACE(place_17)

static __attribute__((noinline)) void *spread(struct worker *w, size_t n, unsigned h, unsigned i)
{
	static void *(*const places[])(struct worker *, size_t, unsigned) = {
		place_0,  place_1,  place_2,  place_3,  place_4,  place_5,
		place_6,  place_7,  place_8,  place_9,  place_10, place_11,
		place_12, place_13, place_14, place_15, place_16, place_17};
	char *p = places[i](w, n, h);
	p[n - 1] = 2;
	return p;
}

static __attribute__((noinline)) void *deep(struct worker *w, size_t n, unsigned h, unsigned i,
					    unsigned depth)
{
	if (!depth)
		return spread(w, n, h, i);
	char *p = depth & 1 ? deep(w, n, h, i, depth - 1) : deep(w, n, h, i, depth - 1);
	sink += (uint64_t)p[0];
	return p;
}

static __attribute__((noinline)) void operation(struct worker *w)
{
	uint64_t r = next_random(w);
	size_t slot = r % NR_BLOCKS;
	unsigned how = (unsigned)(r >> 32) % 100;
	size_t n = pick_size(w);
	if (how >= 97 && w->blocks[slot]) {
		w->blocks[slot] = REALLOC(w->blocks[slot], n);
		w->nr_frees++;
		w->nr_calls++;
		w->nr_bytes += n;
	} else {
		if (w->blocks[slot]) {
			FREE(w->blocks[slot]);
			w->nr_frees++;
		}
		w->blocks[slot] = deep(w, n, how, (unsigned)(r >> 40) % 18, 9 + (r >> 50) % 4);
	}
	w->sizes[slot] = (uint32_t)n;
	think(w->think);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	for (uint64_t i = 0; i < w->nr_ops; i++)
		operation(w);
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned nr = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1;
	uint64_t ops = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000000;
	static struct worker workers[64];
	if (!nr || nr > 64)
		return 2;
	struct timespec from, to;
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (unsigned i = 0; i < nr; i++) {
		workers[i].random = 88172645463325252u + i * 7919;
		workers[i].nr_ops = ops;
		workers[i].think = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			return 1;
	}
	for (unsigned i = 0; i < nr; i++)
		pthread_join(workers[i].thread, NULL);
	clock_gettime(CLOCK_MONOTONIC, &to);
	uint64_t calls = 0, frees = 0, bytes = 0, live = 0, live_bytes = 0;
	for (unsigned i = 0; i < nr; i++) {
		calls += workers[i].nr_calls;
		frees += workers[i].nr_frees;
		bytes += workers[i].nr_bytes;
		for (unsigned k = 0; k < NR_BLOCKS; k++) {
			live += workers[i].blocks[k] != NULL;
			live_bytes += workers[i].blocks[k] ? workers[i].sizes[k] : 0;
		}
	}
	struct rusage ru;
	getrusage(RUSAGE_SELF, &ru);
	double seconds =
		(double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
	double cpu = (double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) +
		     (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1e6;
	printf("calls %llu frees %llu bytes %llu live %llu live_bytes %llu seconds %.4f cpu %.4f\n",
	       (unsigned long long)calls, (unsigned long long)frees, (unsigned long long)bytes,
	       (unsigned long long)live, (unsigned long long)live_bytes, seconds, cpu);
	return 0;
}
