/*
 * analyze/memory/verdict.c: on series that are made with noise, leaks are found, what is none is
 * called one in at most 5 of 100, and the interval of a slope holds the truth.
 */
#include "base/base.h"

#include "analyze/memory/verdict.h"

#include <math.h>

#include "base/clock.h"
#include "tap.h"

#define NR_RUNS   200
#define NR_POINTS 60
#define MIB       (1024.0 * 1024.0)

/* xorshift64*; the same numbers in every run of the tests. */
struct dice {
	uint64_t s;
};

static double uniform(struct dice *d)
{
	d->s ^= d->s >> 12;
	d->s ^= d->s << 25;
	d->s ^= d->s >> 27;
	return (double)((d->s * 2685821657736338717ull) >> 11) / 9007199254740992.0;
}

static double normal(struct dice *d)
{
	double sum = 0;
	for (int i = 0; i < 12; i++)
		sum += uniform(d);
	return sum - 6;
}

enum shape {
	LEVEL,      /* noise around a level */
	SLUGGISH,   /* noise that depends on itself: each value is 0.95 of the last and something */
	WALK,       /* a random walk */
	SAWTOOTH,   /* a collector: rises, and falls at once, five times */
	WARM_UP,    /* rises and levels off */
	ONE_STEP,   /* one jump */
	NR_QUIET,   /* the above are no leaks */
	LEAK_LINE,  /* 1 MiB a second and noise */
	LEAK_LUMPS, /* 4 MiB every fourth second */
	LEAK_WALK,  /* a random walk with a drift */
	LEAK_SLOW,  /* 64 KiB a second on 100 MiB with noise of 64 KiB */
	NR_SHAPES,
};

static void make(struct mempoint *p, size_t n, enum shape shape, struct dice *d)
{
	double walk = 0;
	double phase = uniform(d);
	for (size_t i = 0; i < n; i++) {
		double t = (double)i;
		double x = t / (double)n;
		double v = 100 * MIB;
		double noise = normal(d);
		walk = shape == SLUGGISH ? 0.95 * walk + noise : walk + noise;
		switch (shape) {
		case LEVEL:
			v += noise * MIB;
			break;
		case SLUGGISH:
		case WALK:
			v += walk * MIB;
			break;
		case SAWTOOTH:
			v += fmod(x * 5 + phase, 1) * 40 * MIB + noise * MIB;
			break;
		case WARM_UP:
			v += 50 * MIB * (1 - exp(-x * 8)) + noise * 0.3 * MIB;
			break;
		case ONE_STEP:
			v += (x > 0.2 + 0.6 * phase ? 30 * MIB : 0) + noise * 0.1 * MIB;
			break;
		case LEAK_LINE:
			v += t * MIB + noise * 0.5 * MIB;
			break;
		case LEAK_LUMPS:
			v += floor(t / 4 + phase) * 4 * MIB;
			break;
		case LEAK_WALK:
			v += t * MIB + walk * 0.5 * MIB;
			break;
		case LEAK_SLOW:
			v += t * 65536 + noise * 65536;
			break;
		case NR_QUIET:
		case NR_SHAPES:
			break;
		}
		p[i] = (struct mempoint){.time_ns = (i + 5) * 1000000000ull +
						    (uint64_t)(uniform(d) * 2e6),
					 .anon_bytes = (uint64_t)v,
					 .file_bytes = 8 << 20,
					 .rss_bytes = (uint64_t)v + (8 << 20),
					 .in_use_bytes = MEMPOINT_UNKNOWN,
					 .resident_bytes = MEMPOINT_UNKNOWN};
	}
}

static struct memverdict judge(struct arena *a, const struct mempoint *p, size_t n)
{
	return memverdict_of(a, p, n, &(struct memverdict_host){.machine_bytes = 16ull << 30});
}

static unsigned count_leaks(enum shape shape, size_t n, unsigned *ret_inside)
{
	struct dice d = {0x9e3779b97f4a7c15ull + shape};
	struct mempoint p[2 * NR_POINTS];
	unsigned nr = 0;
	double truth = shape == LEAK_LINE || shape == LEAK_LUMPS || shape == LEAK_WALK ? MIB
		       : shape == LEAK_SLOW                                            ? 65536
										       : 0;
	*ret_inside = 0;
	for (int i = 0; i < NR_RUNS; i++) {
		CLEANUP(arena_release) struct arena a = {0};
		make(p, n, shape, &d);
		struct memverdict v = judge(&a, p, n);
		nr += v.kind == MEMVERDICT_LEAK;
		*ret_inside += v.kept.low <= truth && v.kept.high >= truth;
		CHECK(v.evidence && *v.evidence);
	}
	return nr;
}

TEST(memverdict_raises_at_most_five_false_alarms_in_a_hundred)
{
	static const size_t lengths[] = {24, NR_POINTS, 2 * NR_POINTS};
	for (enum shape shape = 0; shape < NR_QUIET; shape++)
		for (size_t k = 0; k < ARRAY_LEN(lengths); k++) {
			unsigned inside;
			unsigned nr = count_leaks(shape, lengths[k], &inside);
			if (nr > NR_RUNS / 20)
				tap_fail(__FILE__, __LINE__, "shape %d, %zu points: %u of %d",
					 shape, lengths[k], nr, NR_RUNS);
		}
}

TEST(memverdict_finds_leaks)
{
	for (enum shape shape = NR_QUIET + 1; shape < NR_SHAPES; shape++) {
		unsigned inside;
		unsigned nr = count_leaks(shape, NR_POINTS, &inside);
		if (nr < NR_RUNS * 95 / 100)
			tap_fail(__FILE__, __LINE__, "shape %d: %u of %d", shape, nr, NR_RUNS);
	}
}

TEST(memslope_interval_holds_the_truth)
{
	static const enum shape shapes[] = {LEVEL,      SLUGGISH,  WALK,     LEAK_LINE,
					    LEAK_LUMPS, LEAK_WALK, LEAK_SLOW};
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		unsigned inside;
		count_leaks(shapes[i], NR_POINTS, &inside);
		if (inside < NR_RUNS * 93 / 100)
			tap_fail(__FILE__, __LINE__, "shape %d: %u of %d", shapes[i], inside,
				 NR_RUNS);
	}
}

TEST(memslope_of_a_line_is_exact)
{
	uint64_t t[40];
	double v[40];
	for (size_t i = 0; i < 40; i++) {
		t[i] = 7 + i * 500000000ull;
		v[i] = 1000 + (double)i * 250;
	}
	v[20] = 1e12; /* one wild point */
	struct memslope s = memslope_of(t, v, 40);
	CHECK(s.is_known && fabs(s.per_s - 500) < 1e-6);
	v[20] = 1000 + 20 * 250;
	s = memslope_of(t, v, 40);
	CHECK(fabs(s.low - 500) < 1e-6 && fabs(s.high - 500) < 1e-6);
	CHECK(!memslope_of(t, v, 3).is_known);
	CHECK(!memslope_of(t, v, 0).is_known);
	t[0] = t[1] = t[2] = t[3] = 9;
	CHECK(!memslope_of(t, v, 4).is_known);
}

static struct memverdict judge_made(struct arena *a, void (*change)(struct mempoint *p, size_t i),
				    const struct memverdict_host *host)
{
	struct dice d = {88172645463325252ull};
	struct mempoint p[NR_POINTS];
	make(p, NR_POINTS, LEVEL, &d);
	for (size_t i = 0; i < NR_POINTS; i++)
		change(&p[i], i);
	return memverdict_of(a, p, NR_POINTS, host);
}

static void read_file(struct mempoint *p, size_t i)
{
	p->file_bytes += (uint64_t)i * (8 << 20);
	p->rss_bytes = p->anon_bytes + p->file_bytes;
}

static void many_files(struct mempoint *p, size_t i)
{
	(void)i;
	p->file_bytes = 400ull << 20;
	p->rss_bytes = p->anon_bytes + p->file_bytes;
}

static void waste(struct mempoint *p, size_t i)
{
	(void)i;
	p->resident_bytes = 90 << 20;
	p->in_use_bytes = 40 << 20;
}

static void fall(struct mempoint *p, size_t i)
{
	p->in_use_bytes = (i < 20 ? 80ull : 30ull) << 20;
}

static void creep(struct mempoint *p, size_t i)
{
	p->anon_bytes += (uint64_t)i << 20;
	p->in_use_bytes = (40ull << 20) + i % 3;
	p->resident_bytes = p->anon_bytes;
}

static void leak_in_use(struct mempoint *p, size_t i)
{
	p->anon_bytes += (uint64_t)i << 20;
	p->in_use_bytes = (40ull << 20) + ((uint64_t)i << 20);
	p->resident_bytes = p->anon_bytes;
}

static void leak_shmem(struct mempoint *p, size_t i)
{
	p->shmem_bytes += (uint64_t)i << 21;
}

static void fill_shmem(struct mempoint *p, size_t i)
{
	leak_shmem(p, i);
	p->shmem_space_bytes = (900ull << 20) + (uint64_t)i * 4096;
}

static void map_shmem(struct mempoint *p, size_t i)
{
	leak_shmem(p, i);
	p->shmem_space_bytes = (900ull << 20) + ((uint64_t)i << 21);
}

/* A leak beside a pool that fills faster. */
static void fill_shmem_and_leak(struct mempoint *p, size_t i)
{
	fill_shmem(p, i);
	p->anon_bytes += (uint64_t)i << 20;
}

static void leak_to_swap(struct mempoint *p, size_t i)
{
	p->swap_bytes += (uint64_t)i << 21;
}

/* Asked twice in a minute, before and after something was filled: that says nothing of a slope. */
static void seldom_asked(struct mempoint *p, size_t i)
{
	p->anon_bytes += (uint64_t)i << 20;
	p->in_use_bytes = i == 0 || i == 5 ? 40ull << 20 : MEMPOINT_UNKNOWN;
	p->resident_bytes = p->in_use_bytes;
}

/* Every other reading has an answer. */
static void half_asked(struct mempoint *p, size_t i)
{
	creep(p, i);
	if (i % 2)
		p->in_use_bytes = p->resident_bytes = MEMPOINT_UNKNOWN;
}

static void fill_then_leak(struct mempoint *p, size_t i)
{
	p->anon_bytes = (10ull << 20) + (i < 20 ? (uint64_t)i * 600000 : 12000000) + i * 150000;
}

static void swing(struct mempoint *p, size_t i)
{
	p->anon_bytes = (10ull << 20) + (i % 8) * 4000000;
}

static void swing_and_leak(struct mempoint *p, size_t i)
{
	p->anon_bytes = (10ull << 20) + (i % 8) * 4000000 + i * 400000;
}

static void nothing(struct mempoint *p, size_t i)
{
	(void)p;
	(void)i;
}

/* Readings are close to each other at the start, where programs map their first memory. */
TEST(memslope_weighs_steps_by_their_time)
{
	enum { NR = 300 };
	uint64_t t[NR];
	double v[NR];
	double at_s = 0;
	for (size_t i = 0; i < NR; i++) {
		t[i] = (uint64_t)(at_s * 1e9);
		v[i] = 4e6 * at_s + (i < 20 ? 0 : 200000);
		at_s += i < 60 ? 0.0005 : 0.05;
	}
	struct memslope s = memslope_of(t, v, NR);
	CHECK(s.is_known && s.low < 4e6 && s.high > 4e6);
	CHECK(s.high - s.low < 1e6);
}

TEST(memverdict_names_what_is_no_leak)
{
	CLEANUP(arena_release) struct arena a = {0};
	const struct memverdict_host host = {.machine_bytes = 16ull << 30};
	const struct memverdict_host small = {.machine_bytes = 16ull << 30,
					      .limit_bytes = 110 << 20};
	static const struct {
		void (*change)(struct mempoint *p, size_t i);
		const char *key;
		const char *word; /* in the evidence */
	} cases[] = {
		{read_file, "page-cache", "not a leak"},
		{many_files, "page-cache", "not a leak"},
		{waste, "fragmentation", "has 90.0 MiB"},
		{fall, "fragmentation", "fell by 50.0 MiB"},
		{creep, "fragmentation", "bytes in use in the allocator by"},
		{leak_in_use, "leak", "bytes in use in the allocator: +"},
		{leak_shmem, "leak", "shared memory"},
		{fill_shmem, "first-use", "while the address space, 900 MiB, grew by"},
		{map_shmem, "leak", "shared memory"},
		{fill_shmem_and_leak, "leak", "anonymous memory grew steadily, +60."},
		{leak_to_swap, "leak", "anonymous memory"},
		{seldom_asked, "leak", "anonymous memory"},
		{half_asked, "fragmentation", "bytes in use in the allocator by"},
		{fill_then_leak, "inconclusive", "more slowly"},
		{swing, "steady", "rises and falls between 10.0 MiB and 36.7 MiB, 7 times"},
		{swing_and_leak, "inconclusive", "watch for longer"},
		{nothing, "steady", "changing by"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct memverdict v = judge_made(&a, cases[i].change, &host);
		CHECK_STR(memverdict_key(v.kind), cases[i].key);
		if (!strstr(v.evidence, cases[i].word))
			tap_fail(__FILE__, __LINE__, "%s: %s", cases[i].key, v.evidence);
	}
	CHECK_STR(memverdict_key(judge_made(&a, nothing, &small).kind), "bloat");
	CHECK_STR(memverdict_key(judge_made(&a, nothing,
					    &(struct memverdict_host){.machine_bytes = 300 << 20})
					 .kind),
		  "bloat");
}

TEST(memverdict_names_one_least_time)
{
	CLEANUP(arena_release) struct arena a = {0};
	CHECK_STR(memverdict_needs(&a, NS_PER_SEC, 0), "20 readings, 19.0 s with --every 1.00 s");
	CHECK_STR(memverdict_needs(&a, NS_PER_SEC, 5 * NS_PER_SEC),
		  "20 readings, 19.0 s with --every 1.00 s (in 5.00 s: --every 250ms)");
	CHECK_STR(memverdict_needs(&a, 10 * NS_PER_MS, NS_PER_SEC),
		  "20 readings, 5.00 s with --every 10.0 ms");
	const struct mempoint two[] = {{.time_ns = 1}, {.time_ns = 1 + 5 * NS_PER_SEC}};
	const struct memverdict_host host = {.every_ns = NS_PER_SEC};
	struct memverdict v = memverdict_of(&a, two, 2, &host);
	CHECK_STR(v.evidence,
		  "2 readings in 5.00 s; a verdict needs 20 readings, 19.0 s with --every "
		  "1.00 s (in 5.00 s: --every 250ms)");
}

TEST(memverdict_wants_enough_readings)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct dice d = {88172645463325252ull};
	struct mempoint p[NR_POINTS];
	make(p, NR_POINTS, LEAK_LINE, &d);
	CHECK(judge(&a, p, MEMVERDICT_POINTS_MIN - 1).kind == MEMVERDICT_INCONCLUSIVE);
	CHECK(judge(&a, p, MEMVERDICT_POINTS_MIN).kind == MEMVERDICT_LEAK);
	CHECK(judge(&a, p, 0).kind == MEMVERDICT_INCONCLUSIVE);
	CHECK(judge(&a, p, 1).kind == MEMVERDICT_INCONCLUSIVE);
	for (size_t i = 0; i < NR_POINTS; i++)
		p[i].time_ns = 5 + i * 1000000;
	CHECK(judge(&a, p, NR_POINTS).kind == MEMVERDICT_INCONCLUSIVE);
}

TEST(verdict_names_thread_stacks_that_grow)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct dice d = {7};
	struct mempoint p[NR_POINTS];
	make(p, NR_POINTS, LEAK_LINE, &d);
	CHECK(strstr(judge(&a, p, NR_POINTS).evidence, "assay heap"));
	for (size_t i = 0; i < NR_POINTS; i += 3) /* read less often */
		p[i].stack_bytes = p[i].anon_bytes - (p[0].anon_bytes - MIB);
	struct memverdict v = judge(&a, p, NR_POINTS);
	CHECK(v.kind == MEMVERDICT_LEAK);
	CHECK(strstr(v.evidence, "most of it by thread stacks"));
	for (size_t i = 0; i < NR_POINTS; i += 3)
		p[i].stack_bytes = 8 * MIB;
	CHECK(!strstr(judge(&a, p, NR_POINTS).evidence, "stacks"));
}

TEST(verdict_does_not_ask_for_what_was_recorded)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct dice d = {7};
	struct mempoint p[NR_POINTS];
	make(p, NR_POINTS, LEAK_LINE, &d);
	struct memverdict_host host = {.has_sites = true, .is_in_use_partial = true};
	struct memverdict v = memverdict_of(&a, p, NR_POINTS, &host);
	CHECK(v.kind == MEMVERDICT_LEAK);
	CHECK(!strstr(v.evidence, "assay heap"));
	CHECK(strstr(v.evidence, "the allocation sites by live bytes show the allocating code"));
	for (size_t i = 0; i < NR_POINTS; i++)
		p[i].in_use_bytes = p[i].anon_bytes;
	v = memverdict_of(&a, p, NR_POINTS, &host);
	CHECK(!strstr(v.evidence, "not known"));
	CHECK(strstr(v.evidence, "; blocks allocated in the capture and not freed: +"));
	for (size_t i = 0; i < NR_POINTS; i++)
		p[i].in_use_bytes = MIB;
	/* Of the blocks before the capture nothing is known: no fragmentation. */
	v = memverdict_of(&a, p, NR_POINTS, &host);
	CHECK(v.kind == MEMVERDICT_LEAK);
	CHECK(strstr(v.evidence, "outside of blocks allocated in the capture"));
	CHECK(strstr(v.evidence, "find the allocating code with assay heap"));
}

TEST(verdict_says_which_memory_is_steady)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct dice d = {7};
	struct mempoint p[NR_POINTS];
	make(p, NR_POINTS, LEVEL, &d);
	struct memverdict v = judge(&a, p, NR_POINTS);
	CHECK(v.kind == MEMVERDICT_STEADY);
	CHECK(strstr(v.evidence, " MiB of anonymous memory, changing by "));
	p[3].swap_bytes = 1;
	CHECK(strstr(judge(&a, p, NR_POINTS).evidence, "of anonymous memory and swap, "));
	p[3].shmem_bytes = 1;
	CHECK(strstr(judge(&a, p, NR_POINTS).evidence,
		     "of anonymous and shared memory and swap, "));
}

TEST(memverdict_does_not_mind_closer_readings_at_the_beginning)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct mempoint p[400];
	size_t n = 0;
	/* 1 MiB/s for 6 s, read every 1/64 of the time that has passed, at first every ms */
	for (uint64_t ns = 5000000; ns < 6000000000ull && n < ARRAY_LEN(p);
	     ns += MAX(ns / 64, (uint64_t)1000000)) {
		uint64_t bytes = (ns / 62500000) * 65536;
		p[n++] = (struct mempoint){.time_ns = ns,
					   .rss_bytes = bytes + 3 * MIB,
					   .anon_bytes = bytes + MIB,
					   .file_bytes = 2 * MIB,
					   .in_use_bytes = MEMPOINT_UNKNOWN,
					   .resident_bytes = MEMPOINT_UNKNOWN};
	}
	struct memverdict v = judge(&a, p, n);
	if (v.kind != MEMVERDICT_LEAK)
		tap_fail(__FILE__, __LINE__, "%s: %s", memverdict_key(v.kind), v.evidence);
	CHECK(v.nr_points < n);
}
