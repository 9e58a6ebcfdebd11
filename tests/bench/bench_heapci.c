/*
 * Checks the coverage of the confidence intervals of sampled estimates: runs the recorder's sampler
 * (inject/) and live-block accounting (capture/heap/heapaccount.h) on simulated programs.
 *
 *	bench_heapci [RUNS]
 *
 * Prints for each heap size the number of estimates for sites with 1 % of the live heap or more,
 * how many of their 95 % intervals contain the true value, and how many such sites were not
 * sampled.
 */
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/stat.h"
#include "base/vec.h"
#include "capture/heap/heapaccount.h"
#include "local_recorder.h"
#include "model/heap.h"
#include "model/tables.h"

#define INTERVAL   524288u
#define NR_SITES   24
#define ADDR_FIRST 0x100000u

struct truth {
	double live[NR_SITES];
	double all;
};

struct result {
	uint64_t nr;
	uint64_t nr_within;
	uint64_t nr_unseen;
};

struct seen {
	double live[NR_SITES];
	double variance[NR_SITES];
};

static uint64_t next_block;
static uint64_t rng = 1;

static uint64_t draw(uint64_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (rng >> 20) % n;
}

static void *fake_malloc(size_t n)
{
	(void)n;
	next_block += 16;
	return (void *)(uintptr_t)next_block; /* nobody reads from it */
}

static void fake_free(void *p)
{
	(void)p;
}

/* Sites from 24 bytes to several hundred kilobytes, each with sizes within a factor of 4. */
static size_t size_of(unsigned site)
{
	size_t least = (size_t)24 << site / 2;
	return least + draw(3 * least);
}

static void on_row(void *ctx, const struct heapaccount_row *row)
{
	struct seen *s = ctx;
	if (row->spec != TABLE_LIVE)
		return;
	s->live[row->stack - 1] += (double)row->values[HEAP_BYTES];
	s->variance[row->stack - 1] += (double)row->values[HEAP_VARIANCE];
}

struct bench {
	struct local_recorder *h;
	void *(*get)(size_t);
	void (*put)(void *);
	uint8_t *sites; /* of each place that a block may have */
	size_t max;
	VEC(uint64_t) sampled;
};

/* The site of a block is derived from its address: stack walking is not tested here. */
static void drain(struct bench *b, struct heapaccount *account)
{
	struct heap_slot *s = local_recorder_slot(b->h);
	struct heap_seen r;
	while (s && local_recorder_next(b->h, s, &r)) {
		if (r.kind != HEAP_RECORD_ALLOC && r.kind != HEAP_RECORD_FREE)
			continue;
		struct heapring_event ev = {.kind = (uint8_t)r.kind,
					    .tsc = r.tsc,
					    .addr = r.block,
					    .nr_bytes = r.n,
					    .stack = b->sites[(r.block - ADDR_FIRST) / 16] + 1u};
		heapaccount_add(account, &ev, 1);
		if (r.kind == HEAP_RECORD_ALLOC)
			vec_push(&b->sampled, r.block);
	}
}

/* Every other block is freed immediately. */
static void allocate(struct bench *b, unsigned site, struct truth *t)
{
	size_t idx = (next_block + 16 - ADDR_FIRST) / 16;
	size_t n = size_of(site);
	if (idx >= b->max)
		BUG("too many blocks");
	b->sites[idx] = (uint8_t)site;
	void *p = b->get(n);
	if (draw(2)) {
		b->put(p);
		return;
	}
	t->live[site] += (double)n;
	t->all += (double)n;
}

static void run(struct bench *b, uint64_t heap_bytes, struct result *r)
{
	struct truth t = {0};
	struct seen seen = {0};
	struct heapaccount *account = heapaccount_new(&(struct heapaccount_spec){
		.interval_bytes = INTERVAL, .nr_slots = 1, .on_row = on_row, .ctx = &seen});
	heapaccount_clock(account, &(struct heapclock){.ns_per_tick = 1e-9});
	next_block = ADDR_FIRST;
	while (t.all < (double)heap_bytes) {
		/* some sites have much of the heap, others little; sizes have nothing to do with it
		 */
		unsigned site = (unsigned)(MIN(draw(NR_SITES), draw(NR_SITES)) * 7 % NR_SITES);
		for (size_t i = 0; i < 1 + ((size_t)1024 >> site / 2); i++)
			allocate(b, site, &t);
		drain(b, account);
	}
	heapaccount_end(account);
	for (unsigned i = 0; i < NR_SITES; i++) {
		if (t.live[i] < t.all / 100)
			continue;
		if (!(seen.live[i] > 0)) { /* nothing is printed of it */
			r->nr_unseen++;
			continue;
		}
		struct stat_interval range = stat_estimate(seen.live[i], seen.variance[i]);
		r->nr++;
		r->nr_within += t.live[i] >= range.low && t.live[i] <= range.high;
	}
	heapaccount_free(account);
	vec_foreach(a, &b->sampled)
		b->put((void *)(uintptr_t)*a);
	vec_clear(&b->sampled);
	local_recorder_skip(local_recorder_slot(b->h));
}

int main(int argc, char **argv)
{
	static const uint64_t heaps_mb[] = {32, 128, 512};
	unsigned long nr_runs = argc > 1 ? strtoul(argv[1], NULL, 10) : 500;
	struct bench b = {.max = 40u << 20};
	b.h = local_recorder_new(
		&(struct local_recorder_spec){.interval_bytes = INTERVAL, .has_no_tables = true});
	if (!b.h) {
		puts("no recorder for this machine");
		return 77;
	}
	b.sites = xcalloc(b.max, 1);
	b.get = (void *(*)(size_t))local_recorder_hook(b.h, HEAP_ALLOC_0, (heap_fn)fake_malloc);
	b.put = (void (*)(void *))local_recorder_hook(b.h, HEAP_FREE_0, (heap_fn)fake_free);
	local_recorder_start(b.h);
	for (size_t i = 0; i < ARRAY_LEN(heaps_mb); i++) {
		struct result r = {0};
		for (unsigned long k = 0; k < MAX(nr_runs >> 2 * i, 1ul); k++)
			run(&b, heaps_mb[i] << 20, &r);
		printf("heap %4" PRIu64 " MB estimates %7" PRIu64 " within %7" PRIu64
		       " unseen %7" PRIu64 "\n",
		       heaps_mb[i], r.nr, r.nr_within, r.nr_unseen);
	}
	local_recorder_stop(b.h);
	local_recorder_free(b.h);
	free(b.sites);
	vec_release(&b.sampled);
	return 0;
}
