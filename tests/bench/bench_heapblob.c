/*
 * Measures the overhead of the heap recorder (inject/) in its process: ns for a malloc and a free
 * of glibc, called 17 frames deep without frame pointers, unrecorded and recorded, interleaved.
 *
 *	bench_heapblob [ROUNDS]
 *
 * loop    always the same call site
 * walk    18 call sites with different call stacks, of which some frames are new each time
 * mix     like a real program: 20 000 blocks of 16 B to 32 KB at random, with work in between
 */
#include "base/base.h"

#include <stdio.h>
#include <time.h>

#include "local_recorder.h"

#define DEPTH      17
#define NR_PAIRS   20000
#define NR_BLOCKS  20000
#define NR_PLACES  18
#define DRAIN_EACH 1000

#define NO_FP __attribute__((noinline, noclone, optimize("O2", "omit-frame-pointer")))

enum work { WORK_LOOP, WORK_WALK, WORK_MIX, WORK_NR };
static const char *const work_names[] = {"loop", "walk", "mix"};

struct run {
	void *(*get)(size_t);
	void (*put)(void *);
	struct local_recorder *h;
};
static volatile int sink;
static uint64_t rng = 1;
static void *blocks[NR_BLOCKS];

static uint32_t draw(uint32_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (uint32_t)(rng >> 33) % n;
}

/* CPU time, because the machine may be shared. */
static double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void drain(const struct run *r)
{
	struct heap_slot *s = r->h ? local_recorder_slot(r->h) : NULL;
	if (s)
		local_recorder_skip(s);
}

static NO_FP void pair(const struct run *r, size_t n)
{
	void *p = r->get(n);
	__asm__ volatile("" : : "r"(p) : "memory");
	r->put(p);
}

static NO_FP void loop(const struct run *r)
{
	for (int i = 0; i < NR_PAIRS; i++) {
		pair(r, 64);
		if (i % DRAIN_EACH == 0)
			drain(r);
	}
}

static NO_FP void mix_one(const struct run *r, uint32_t at)
{
	r->put(blocks[at]);
	uint32_t shift = draw(12);
	size_t n = 16 + draw(16u << shift);
	uint8_t *p = r->get(n);
	blocks[at] = p;
	p[0] = p[n / 2] = p[n - 1] = (uint8_t)at;
}

#define PLACE(i)                                                                 \
	static NO_FP void place_##i(const struct run *r, int depth, uint32_t at) \
	{                                                                        \
		if (depth > 0)                                                   \
			place_##i(r, depth - 1, at);                             \
		else if (at == UINT32_MAX)                                       \
			pair(r, 16 + (i)*24);                                    \
		else                                                             \
			mix_one(r, at);                                          \
		sink++;                                                          \
	}
PLACE(0)
PLACE(1)
PLACE(2)
PLACE(3)
PLACE(4)
PLACE(5)
PLACE(6)
PLACE(7)
PLACE(8)

typedef void (*place_fn)(const struct run *r, int depth, uint32_t at);
static const place_fn places[] = {place_0, place_1, place_2, place_3, place_4,
				  place_5, place_6, place_7, place_8};

static NO_FP void walk(const struct run *r, bool is_mix)
{
	for (int i = 0; i < NR_PAIRS; i++) {
		uint32_t place = draw(NR_PLACES);
		places[place / 2](r, 3 + (place & 1), is_mix ? draw(NR_BLOCKS) : UINT32_MAX);
		if (i % DRAIN_EACH == 0)
			drain(r);
	}
}

static NO_FP void deep(const struct run *r, enum work work, int depth)
{
	if (depth > 0)
		deep(r, work, depth - 1);
	else if (work == WORK_LOOP)
		loop(r);
	else
		walk(r, work == WORK_MIX);
	sink++;
}

static double time_work(const struct run *r, enum work work)
{
	double t0 = now_ns();

	deep(r, work, work == WORK_LOOP ? DEPTH - 3 : DEPTH - 7);
	return (now_ns() - t0) / NR_PAIRS;
}

static struct run make_run(const struct local_recorder_spec *spec)
{
	struct local_recorder *h = local_recorder_new(spec);
	if (!h)
		return (struct run){0};
	struct run r = {.h = h};
	r.get = (void *(*)(size_t))local_recorder_hook(h, HEAP_ALLOC_0, (heap_fn)malloc);
	r.put = (void (*)(void *))local_recorder_hook(h, HEAP_FREE_0, (heap_fn)free);
	local_recorder_start(h);
	return r;
}

int main(int argc, char **argv)
{
	int nr_rounds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 30;
	struct run runs[] = {
		{.get = malloc, .put = free},
		make_run(&(struct local_recorder_spec){.interval_bytes = 512 << 10}),
		make_run(&(struct local_recorder_spec){.is_full_trace = true}),
	};
	double best[WORK_NR][3];

	if (!runs[1].get || !runs[2].get)
		return 1;
	for (int i = 0; i < NR_BLOCKS; i++)
		blocks[i] = malloc(64);
	for (int work = 0; work < WORK_NR; work++)
		for (int k = 0; k < 3; k++)
			best[work][k] = 1e18;
	for (int round = 0; round < nr_rounds; round++)
		for (int work = 0; work < WORK_NR; work++)
			for (int k = 0; k < 3; k++) {
				double ns = time_work(&runs[k], (enum work)work);
				best[work][k] = MIN(best[work][k], ns);
			}
	for (int work = 0; work < WORK_NR; work++)
		printf("%s: plain %.1f ns a pair, sampled +%.1f, every +%.1f\n", work_names[work],
		       best[work][0], best[work][1] - best[work][0], best[work][2] - best[work][0]);
	return 0;
}
