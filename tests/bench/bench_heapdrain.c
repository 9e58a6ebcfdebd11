/*
 * Measures the cost of draining the recorder's rings and of live-block accounting (capture/heap/
 * heapring, heapaccount): CPU ns for an allocation and its free, of a simulated program whose
 * threads each keep a table of blocks and reallocate random entries from several stacks.
 *
 *	bench_heapdrain [PAIRS [BLOCKS [STACKS [THREADS]]]]
 *
 * Prints the time for reading alone and the total. Under callgrind (one round is enough) the result
 * is in instructions.
 */
#include "base/base.h"

#include <stdio.h>
#include <time.h>

#include "base/mem.h"
#include "capture/heap/heapaccount.h"
#include "capture/heap/heapring.h"

#define RING_BYTES (1u << 20)
#define START      1000000000000ull
#define SLOTS_MAX  16
#define BATCH      256
#define PASS_PAIRS 4000 /* of each thread */

struct unwind_process {
	struct heap_shared shared;
	struct heap_slot slots[SLOTS_MAX];
	uint8_t *rings[SLOTS_MAX];
	uint64_t rng;
	uint64_t tsc;
	uint32_t nr_threads;
	uint32_t nr_blocks;
	uint32_t nr_stacks;
	uint64_t *blocks[SLOTS_MAX];
	struct heapring ring;
	struct heapaccount *account;
	uint64_t nr_rows;
};

static double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static uint64_t draw(struct unwind_process *w)
{
	w->rng ^= w->rng << 13;
	w->rng ^= w->rng >> 7;
	w->rng ^= w->rng << 17;
	return w->rng;
}

static void put(struct unwind_process *w, uint32_t slot, const uint64_t *words, uint32_t nr)
{
	struct heap_slot *s = &w->slots[slot];
	uint64_t at = s->head % RING_BYTES;
	if (at + 8 * nr > RING_BYTES) {
		*(uint64_t *)(void *)(w->rings[slot] + at) = HEAP_RECORD_PAD;
		s->head += RING_BYTES - at;
		at = 0;
	}
	memcpy(w->rings[slot] + at, words, 8 * (size_t)nr);
	s->head += 8 * (uint64_t)nr;
}

static uint64_t pick_size(struct unwind_process *w)
{
	uint64_t r = draw(w);
	unsigned log2 = 4 + (unsigned)__builtin_ctzll(r | 1 << 14);
	uint64_t n = (uint64_t)1 << log2;
	return n + n / 16 * ((r >> 32) % 16);
}

static void one_pair(struct unwind_process *w, uint32_t slot)
{
	uint64_t i = draw(w) % w->nr_blocks;
	uint64_t *block = &w->blocks[slot][i];
	w->tsc += 100;
	if (*block) {
		uint64_t words[] = {HEAP_RECORD_FREE | w->tsc << HEAP_TSC_SHIFT, *block};
		put(w, slot, words, 2);
	} else {
		/* An address of its own, for good, as an allocator gives the same ones again. */
		*block = 0x7f0000000000 + ((uint64_t)slot << 34) + i * 2992 / 16 * 16;
	}
	uint64_t n = pick_size(w);
	uint64_t stack = 1 + draw(w) % w->nr_stacks * 37;
	w->tsc += 100;
	uint64_t words[] = {HEAP_RECORD_ALLOC | w->tsc << HEAP_TSC_SHIFT,
			    *block | stack << HEAP_STACK_SHIFT,
			    n | stack >> 16 << HEAP_STACK_SHIFT};
	put(w, slot, words, 3);
}

static void on_row(void *ctx, const struct heapaccount_row *row)
{
	struct unwind_process *w = ctx;
	w->nr_rows += row->values[0] != 0;
}

static void on_thread(void *ctx, uint16_t slot, int32_t tid)
{
	struct unwind_process *w = ctx;
	heapaccount_thread(w->account, slot, tid);
}

static void on_stack(void *ctx, uint32_t stack, const uint64_t *frames, uint32_t nr,
		     enum walk_end end)
{
	(void)ctx, (void)stack, (void)frames, (void)nr, (void)end;
}

static void make_world(struct unwind_process *w)
{
	const uint8_t *rings[SLOTS_MAX];
	w->rng = 88172645463325252u;
	w->tsc = START;
	for (uint32_t i = 0; i < w->nr_threads; i++) {
		w->blocks[i] = xcalloc(w->nr_blocks, sizeof(uint64_t));
		rings[i] = w->rings[i] = xcalloc(1, RING_BYTES);
		w->slots[i].owner = 0x7000 + i;
		w->slots[i].tid = 100 + i;
	}
	w->account = heapaccount_new(&(struct heapaccount_spec){
		.start_ns = START, .nr_slots = w->nr_threads, .on_row = on_row, .ctx = w});
	heapaccount_clock(w->account, &(struct heapclock){START, START, 1});
	heapring_init(&w->ring, &(struct heapring_spec){.shared = &w->shared,
							.slots = w->slots,
							.nr_slots = w->nr_threads,
							.ring_bytes = RING_BYTES,
							.rings = rings,
							.on_thread = on_thread,
							.on_stack = on_stack,
							.ctx = w});
}

int main(int argc, char **argv)
{
	static struct unwind_process w;
	static struct heapring_event events[BATCH];
	uint64_t nr_pairs = argc > 1 ? strtoull(argv[1], NULL, 10) : 2000000;
	w.nr_blocks = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 20000;
	w.nr_stacks = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 72;
	w.nr_threads = argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : 2;
	if (!w.nr_blocks || !w.nr_stacks || !w.nr_threads || w.nr_threads > SLOTS_MAX)
		return 2;
	make_world(&w);
	double ring_ns = 0, waitaccount_ns = 0;
	uint64_t nr_done = 0;
	while (nr_done < nr_pairs) {
		for (uint32_t i = 0; i < PASS_PAIRS; i++)
			for (uint32_t k = 0; k < w.nr_threads; k++, nr_done++)
				one_pair(&w, k);
		double from = now_ns();
		heapring_begin(&w.ring, w.tsc);
		for (;;) {
			double before = now_ns();
			size_t n = heapring_next(&w.ring, events, BATCH);
			ring_ns += now_ns() - before;
			if (!n)
				break;
			heapaccount_add(w.account, events, n);
		}
		waitaccount_ns += now_ns() - from;
	}
	heapaccount_advance(w.account, w.tsc);
	struct heapaccount_info info = heapaccount_info(w.account);
	printf("%.1f ns a pair, %.1f of them for reading; %llu sites, %llu blocks live, %.0f bytes, peak %.0f\n",
	       waitaccount_ns / (double)nr_done, ring_ns / (double)nr_done,
	       (unsigned long long)info.nr_sites, (unsigned long long)info.nr_live, info.live_bytes,
	       info.peak_bytes);
	heapring_release(&w.ring);
	heapaccount_free(w.account);
	for (uint32_t i = 0; i < w.nr_threads; i++) {
		free(w.rings[i]);
		free(w.blocks[i]);
	}
	return 0;
}
