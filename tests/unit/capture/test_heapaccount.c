/* Books of the heap against histories whose truth is known. */
#include "base/base.h"
#include "fake_recorder.h"
#include "tap.h"

#include <math.h>
#include <signal.h>

#include "capture/heap/heapsums.h"
#include "model/heap.h"
#include "model/tables.h"

#define START   FAKE_RECORDER_START
#define SECOND  1000000000ull
#define STACKS  20
#define BLOCKS  200 /* addresses there are */
#define THREADS 6

struct truth_block {
	bool is_live;
	bool is_busy; /* a realloc of it is under way */
	uint64_t nr_bytes;
	uint32_t stack;
	unsigned thread;
};

struct truth {
	struct fake_recorder *w;
	struct truth_block blocks[BLOCKS];
	uint64_t now;
	int64_t allocated[STACKS][THREADS][2]; /* calls, bytes */
	int64_t freed[STACKS][THREADS][2];
	int64_t temporary[STACKS][THREADS];
	int64_t live;
	int64_t peak;
	uint64_t peak_ns;
	int64_t live_of[STACKS][THREADS];
	int64_t peak_of[STACKS][THREADS];
	size_t last[THREADS]; /* block + 1 */
	int64_t nr_preexisting;
};

static uint64_t addr_of(size_t i)
{
	return 0x7f0000001000 + i * 48;
}

static void must_put(struct truth *t, bool is_put, unsigned thread, uint64_t tsc, size_t i,
		     const struct truth_block *b)
{
	if (is_put)
		return;
	fake_recorder_pass(t->w, t->now);
	CHECK(b ? fake_recorder_alloc(t->w, thread, tsc, addr_of(i), b->nr_bytes, b->stack)
		: fake_recorder_free(t->w, thread, tsc, addr_of(i)));
}

static void put_alloc(struct truth *t, unsigned thread, uint64_t tsc, size_t i,
		      const struct truth_block *b)
{
	must_put(t, fake_recorder_alloc(t->w, thread, tsc, addr_of(i), b->nr_bytes, b->stack),
		 thread, tsc, i, b);
}

static void put_free(struct truth *t, unsigned thread, uint64_t tsc, size_t i)
{
	must_put(t, fake_recorder_free(t->w, thread, tsc, addr_of(i)), thread, tsc, i, NULL);
}

static void count_alloc(struct truth *t, unsigned thread, size_t i, uint64_t tsc)
{
	struct truth_block *b = &t->blocks[i];
	int64_t bytes = (int64_t)b->nr_bytes;
	t->allocated[b->stack][thread][0]++;
	t->allocated[b->stack][thread][1] += bytes;
	t->live += bytes;
	t->live_of[b->stack][thread] += bytes;
	t->last[thread] = i + 1;
	if (t->live > t->peak) {
		t->peak = t->live;
		t->peak_ns = tsc;
		memcpy(t->peak_of, t->live_of, sizeof(t->peak_of));
	}
}

static void count_free(struct truth *t, unsigned thread, size_t i)
{
	struct truth_block *b = &t->blocks[i];
	t->freed[b->stack][b->thread][0]++;
	t->freed[b->stack][b->thread][1] += (int64_t)b->nr_bytes;
	t->live -= (int64_t)b->nr_bytes;
	t->live_of[b->stack][b->thread] -= (int64_t)b->nr_bytes;
	if (t->last[thread] == i + 1) {
		t->temporary[b->stack][thread] += b->thread == thread;
		t->last[thread] = 0;
	}
	b->is_live = false;
}

static size_t random_block(struct truth *t, bool is_live)
{
	for (;;) {
		size_t i = fake_recorder_random(t->w, BLOCKS);
		if (t->blocks[i].is_live == is_live && !t->blocks[i].is_busy)
			return i;
	}
}

static void make_block(struct truth *t, size_t i, unsigned thread)
{
	t->blocks[i] = (struct truth_block){
		.is_live = true,
		.nr_bytes = fake_recorder_random(t->w, 4) ? fake_recorder_random(t->w, 300)
							  : fake_recorder_random(t->w, 1u << 20),
		.stack = (uint32_t)fake_recorder_random(t->w, STACKS),
		.thread = thread,
	};
}

static void step(struct truth *t, size_t nr_live, unsigned nr_threads)
{
	unsigned thread = (unsigned)fake_recorder_random(t->w, nr_threads);
	t->now += 1 + fake_recorder_random(t->w, SECOND / 1000);
	bool has_to_free = nr_live > BLOCKS - 20;
	if (nr_live < 20 || (!has_to_free && fake_recorder_random(t->w, 2))) {
		size_t i = random_block(t, false);
		make_block(t, i, thread);
		put_alloc(t, thread, t->now, i, &t->blocks[i]);
		count_alloc(t, thread, i, t->now);
		return;
	}
	/* often the one that the thread allocated last */
	size_t i = t->last[thread] ? t->last[thread] - 1 : 0;
	if (!t->last[thread] || !t->blocks[i].is_live || fake_recorder_random(t->w, 2))
		i = random_block(t, true);
	put_free(t, thread, t->now, i);
	count_free(t, thread, i);
}

static size_t count_live(const struct truth *t)
{
	size_t nr = 0;
	for (size_t i = 0; i < BLOCKS; i++)
		nr += t->blocks[i].is_live;
	return nr;
}

static void check_sums(const struct truth *t)
{
	const struct fake_recorder *w = t->w;
	for (int s = 0; s < STACKS; s++)
		for (int th = 0; th < THREADS; th++) {
			int tid = 100 + th;
			CHECK_U64(fake_recorder_sum(w, TABLE_ALLOCATED, s, tid, 0),
				  t->allocated[s][th][0]);
			CHECK_U64(fake_recorder_sum(w, TABLE_ALLOCATED, s, tid, 1),
				  t->allocated[s][th][1]);
			CHECK_U64(fake_recorder_sum(w, TABLE_FREED, s, tid, 0), t->freed[s][th][0]);
			CHECK_U64(fake_recorder_sum(w, TABLE_FREED, s, tid, 1), t->freed[s][th][1]);
			CHECK_U64(fake_recorder_sum(w, TABLE_LIVE, s, tid, 1), t->live_of[s][th]);
		}
	CHECK_U64(heapaccount_info(w->account).live_bytes, t->live);
	CHECK_U64(heapaccount_info(w->account).nr_preexisting, t->nr_preexisting);
	CHECK_U64(fake_recorder_sum(w, TABLE_FREED_PREEXISTING, -1, -1, 0), t->nr_preexisting);
}

static void check_peak(const struct truth *t)
{
	for (int s = 0; s < STACKS; s++)
		for (int th = 0; th < THREADS; th++) {
			CHECK_U64(fake_recorder_sum(t->w, TABLE_PEAK, s, 100 + th, 1),
				  t->peak_of[s][th]);
			CHECK_U64(fake_recorder_sum(t->w, TABLE_ALLOCATED, s, 100 + th, 4),
				  t->temporary[s][th]);
		}
	struct heapaccount_info i = heapaccount_info(t->w->account);
	CHECK_U64(i.peak_bytes, t->peak);
	CHECK_U64(i.peak_ns, t->peak_ns);
}

TEST(heapaccount_is_exact_however_rings_are_read)
{
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct fake_recorder w;
		fake_recorder_init(&w, 0, seed);
		struct truth t = {.w = &w, .now = START};
		uint64_t every = 1 + fake_recorder_random(&w, 300);
		for (size_t i = 0; i < 3000; i++) {
			step(&t, count_live(&t), THREADS);
			if (i % every == 0) /* some of what is there is younger than the pass */
				fake_recorder_pass(&w, t.now - fake_recorder_random(&w, 20000000));
		}
		fake_recorder_pass(&w, t.now);
		heapaccount_end(w.account);
		check_sums(&t);
		check_peak(&t);
		CHECK_U64(heapaccount_info(w.account).nr_late, 0);
		CHECK_U64(heapring_counts(&w.ring).nr_broken, 0);
		fake_recorder_release(&w);
	}
}

/* A realloc tells its free after the call: meanwhile the address may be somebody else's. */
struct realloc_under_way {
	bool is_on;
	unsigned thread;
	size_t from;
	size_t to;
	uint64_t start;
	uint64_t end;
};

static void finish_realloc(struct truth *t, struct realloc_under_way *r)
{
	put_free(t, r->thread, r->start, r->from);
	put_alloc(t, r->thread, r->end, r->to, &t->blocks[r->to]);
	t->blocks[r->to].is_busy = false;
	r->is_on = false;
}

static void start_realloc(struct truth *t, struct realloc_under_way *r)
{
	unsigned thread = THREADS - 1; /* it is inside, so nothing else is done by it meanwhile */
	r->from = random_block(t, true);
	r->to = random_block(t, false);
	r->is_on = true;
	r->thread = thread;
	r->start = ++t->now;
	r->end = ++t->now;
	make_block(t, r->to, thread);
	t->blocks[r->to].is_busy = true;
	count_free(t, thread, r->from);
	count_alloc(t, thread, r->to, r->end);
}

TEST(heapaccount_is_exact_when_reallocs_are_reported_late)
{
	uint64_t nr_implied = 0;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct fake_recorder w;
		fake_recorder_init(&w, 0, seed);
		struct truth t = {.w = &w, .now = START};
		struct realloc_under_way r = {0};
		for (size_t i = 0; i < 3000; i++) {
			if (!r.is_on && count_live(&t) > 30 && count_live(&t) < BLOCKS - 30 &&
			    !fake_recorder_random(&w, 4))
				start_realloc(&t, &r);
			else
				step(&t, count_live(&t), r.is_on ? THREADS - 1 : THREADS);
			if (r.is_on && !fake_recorder_random(&w, 8))
				finish_realloc(&t, &r);
			if (!fake_recorder_random(&w, 5))
				fake_recorder_pass(&w, t.now);
		}
		if (r.is_on)
			finish_realloc(&t, &r);
		fake_recorder_pass(&w, t.now);
		heapaccount_end(w.account);
		check_sums(&t);
		CHECK(heapaccount_info(w.account).nr_late > 0);
		nr_implied += heapaccount_info(w.account).nr_implied;
		fake_recorder_release(&w);
	}
	CHECK(nr_implied > 100);
}

TEST(heapaccount_counts_frees_of_older_blocks_apart)
{
	struct fake_recorder w;
	fake_recorder_init(&w, 0, 5);
	struct truth t = {.w = &w, .now = START};
	for (size_t i = 0; i < 500; i++) {
		step(&t, count_live(&t), THREADS);
		unsigned thread = (unsigned)fake_recorder_random(&w, THREADS);
		t.now++;
		if (!fake_recorder_free(&w, thread, t.now, 0x555500000000 + i * 16)) {
			fake_recorder_pass(&w, t.now);
			CHECK(fake_recorder_free(&w, thread, t.now, 0x555500000000 + i * 16));
		}
		t.nr_preexisting++;
	}
	fake_recorder_pass(&w, t.now);
	heapaccount_end(w.account);
	check_sums(&t);
	check_peak(&t);
	fake_recorder_release(&w);
}

/* The rows of a slice are emitted when it has ended: the recording of a killed assay has them. */
TEST(heapaccount_emits_the_rows_of_each_slice)
{
	struct fake_recorder w;
	fake_recorder_init(&w, 0, 1);
	const uint64_t half_ns = 500000000;
	uint64_t sum = 0;
	for (unsigned i = 0; i < 8; i++) {
		uint64_t now = START + (8 + i) * half_ns;
		CHECK(fake_recorder_alloc(&w, 1, now + 1, 0x1000 + i * 64, 32, 1));
		fake_recorder_pass(&w, now + half_ns);
		sum += 32;
		CHECK_U64(heapaccount_reach_ns(w.account), now + half_ns);
		CHECK_U64(fake_recorder_sum(&w, TABLE_ALLOCATED, -1, -1, 1), sum);
	}
	heapaccount_end(w.account);
	CHECK_U64(fake_recorder_sum(&w, TABLE_ALLOCATED, -1, -1, 1), sum);
	fake_recorder_release(&w);
}

/* The first events one by one, then a 128th of the time passed apart; nothing before the first. */
TEST(heapaccount_notes_what_is_live_at_close_instants)
{
	struct fake_recorder w;
	fake_recorder_init(&w, 0, 1);
	uint64_t now = START;
	for (uint64_t i = 0; i < 4000; i++) {
		now += 100000;
		CHECK(fake_recorder_alloc(&w, 1, now, 0x1000 + i * 64, 32, 1));
		fake_recorder_pass(&w, now + 1);
	}
	heapaccount_end(w.account);
	size_t nr = 0;
	uint64_t last_ns = START;
	vec_foreach(row, &w.rows) {
		if (row->spec != TABLE_HEAP_LEVEL)
			continue;
		uint64_t passed = row->time_ns - START;
		CHECK(row->time_ns >= last_ns);
		CHECK(row->time_ns - last_ns <= MAX(passed / 64, (uint64_t)200000));
		/* before the event, except for the last row */
		CHECK(row->values[HEAP_BYTES] == 32 * row->values[HEAP_BLOCKS]);
		CHECK((uint64_t)row->values[HEAP_BLOCKS] + 1 >= passed / 100000);
		last_ns = row->time_ns;
		nr++;
	}
	CHECK(nr >= 300 && nr <= 2000);
	CHECK_U64(last_ns, now);
	fake_recorder_release(&w);
}

TEST(heapaccount_knows_no_older_blocks_where_it_has_all)
{
	struct fake_recorder w;
	fake_recorder_init(&w, 0, 1);
	w.account->spec.has_all = true;
	CHECK(fake_recorder_free(&w, 1, START + 20, 0x1000)); /* of an allocator's own */
	fake_recorder_pass(&w, START + 30);
	heapaccount_end(w.account);
	CHECK_U64(fake_recorder_sum(&w, TABLE_FREED_PREEXISTING, -1, -1, 0), 0);
	CHECK_U64(heapaccount_info(w.account).nr_preexisting, 0);
	CHECK_U64(heapaccount_info(w.account).nr_unmatched, 1);
	fake_recorder_release(&w);
}

TEST(heapaccount_pairs_an_allocation_that_comes_after_its_free)
{
	struct fake_recorder w;
	fake_recorder_init(&w, 0, 1);
	CHECK(fake_recorder_free(&w, 1, START + 20, 0x1000));
	fake_recorder_pass(&w, START + 30);
	CHECK_U64(heapaccount_info(w.account).nr_preexisting, 1);
	CHECK(fake_recorder_alloc(&w, 0, START + 10, 0x1000, 64, 3));
	fake_recorder_pass(&w, START + 40);
	heapaccount_end(w.account);
	CHECK_U64(heapaccount_info(w.account).nr_preexisting, 0);
	CHECK_U64(fake_recorder_sum(&w, TABLE_FREED_PREEXISTING, -1, -1, 0), 0);
	CHECK_U64(fake_recorder_sum(&w, TABLE_ALLOCATED, 3, 100, 1), 64);
	CHECK_U64(fake_recorder_sum(&w, TABLE_FREED, 3, 100, 1), 64);
	CHECK_U64(fake_recorder_sum(&w, TABLE_LIVE, -1, -1, 0), 0);
	fake_recorder_release(&w);
}

TEST(heapaccount_of_a_process_that_ended_before_others_has_nothing_live)
{
	struct fake_recorder w;
	fake_recorder_init(&w, 0, 1);
	CHECK(fake_recorder_alloc(&w, 0, START + 10, 0x1000, 64, 3));
	CHECK(fake_recorder_alloc(&w, 0, START + 20, 0x2000, 32, 3));
	CHECK(fake_recorder_free(&w, 0, START + 30, 0x2000));
	fake_recorder_pass(&w, START + 2 * SECOND + 5);
	heapaccount_end_freed(w.account, SIGKILL);
	CHECK_U64(fake_recorder_sum(&w, TABLE_LIVE, -1, -1, 0), 0);
	CHECK_U64(fake_recorder_sum(&w, TABLE_FREED, 3, 100, 1), 96);
	CHECK_U64(fake_recorder_sum(&w, TABLE_PEAK, 3, 100, 1), 96);
	vec_foreach(row, &w.rows) {
		bool is_held = row->spec == TABLE_FREED && row->detail;
		if (is_held) {
			CHECK(!strcmp(row->detail, HEAP_FREED_BY_KILL));
			CHECK_U64(row->values[HEAP_BLOCKS], 1);
			CHECK_U64(row->values[HEAP_BYTES], 64);
			CHECK_U64(row->time_ns, START + 2 * SECOND + 5);
		}
		if (row->spec == TABLE_HEAP_LEVEL && row == vec_last(&w.rows))
			CHECK_U64(row->values[HEAP_BYTES], 0);
	}
	CHECK(vec_last(&w.rows)->spec == TABLE_HEAP_LEVEL);
	fake_recorder_release(&w);
}

#define INSIDE 300000000ull /* of a second */

TEST(heapaccount_puts_rows_in_their_slices_and_live_blocks_in_steps)
{
	struct fake_recorder w;
	fake_recorder_init(&w, 0, 1);
	for (uint64_t s = 0; s < 5; s++) {
		CHECK(fake_recorder_alloc(&w, 0, START + s * SECOND + INSIDE, 0x1000 + 64 * s,
					  10 + s, 3));
		fake_recorder_pass(&w, START + s * SECOND + SECOND / 2);
	}
	CHECK(fake_recorder_free(&w, 1, START + 5 * SECOND, 0x1000));
	fake_recorder_pass(&w, START + 6 * SECOND);
	heapaccount_end(w.account);
	size_t nr_live = 0;
	vec_foreach(row, &w.rows) {
		uint64_t ns = row->time_ns - START;
		uint64_t s = (uint64_t)row->values[1] - 10;
		if (row->spec == TABLE_ALLOCATED)
			CHECK_U64(ns, heap_slice_start(s * SECOND + INSIDE));
		if (row->spec == TABLE_LIVE)
			CHECK_U64(ns, s * SECOND + 2ull * HEAP_TICK_NS);
		if (row->spec == TABLE_PEAK)
			CHECK_U64(ns % SECOND, INSIDE);
		if (row->spec == TABLE_FREED) {
			CHECK_U64(ns, 5 * SECOND);
			CHECK_U64(row->values[1], 10);
			CHECK_U64(row->tid, 100); /* who allocated it */
		}
		nr_live += row->spec == TABLE_LIVE;
	}
	CHECK_U64(nr_live, 4);
	fake_recorder_release(&w);
}

static void count_live_rows(void *ctx, const struct heapaccount_row *row)
{
	int64_t *nr = ctx;
	if (row->spec == TABLE_LIVE)
		nr[row->stack ? 0 : 1] += row->values[HEAP_BLOCKS];
}

TEST(heapaccount_keeps_its_size_whatever_stacks_are_made_up)
{
	int64_t nr_live[2] = {0}; /* of stacks that are distinguished, and not */
	struct heapaccount *b =
		heapaccount_new(&(struct heapaccount_spec){.start_ns = START,
							   .max_sites = 1000,
							   .nr_slots = 1,
							   .on_row = count_live_rows,
							   .ctx = nr_live});
	heapaccount_clock(b, &(struct heapclock){START, START, 1});
	for (uint32_t i = 0; i < 50000; i++) {
		struct heapring_event ev = {.kind = HEAP_RECORD_ALLOC,
					    .tsc = START + i,
					    .addr = 0x10000 + 16 * (uint64_t)i,
					    .nr_bytes = 16,
					    .stack = i + 1};
		heapaccount_add(b, &ev, 1);
	}
	CHECK_U64(heapaccount_info(b).nr_sites, 4001);
	heapaccount_end(b);
	CHECK_U64(nr_live[0], 4000);
	CHECK_U64(nr_live[1], 46000);
	heapaccount_free(b);
}

TEST(heapaccount_keeps_its_size_whatever_threads_are_made_up)
{
	struct heapaccount *b =
		heapaccount_new(&(struct heapaccount_spec){.start_ns = START, .nr_slots = 1});
	for (int32_t tid = 1; tid <= 300000; tid++)
		heapaccount_thread(b, 0, tid);
	CHECK(b->threads.n <= UINT16_MAX);
	CHECK(b->thread_of.n <= UINT16_MAX);
	CHECK_U64(b->thread_of_slot[0], 0);
	heapaccount_thread(b, 0, 7);
	CHECK_U64((uint64_t)b->threads.p[b->thread_of_slot[0]].tid, 7);
	heapaccount_free(b);
}

static void ignore_row(void *ctx, const struct heapaccount_row *row)
{
	(void)ctx, (void)row;
}

/* Each is looked for among the frees that were reported before; that is not done for ever. */
TEST(heapaccount_looks_back_for_a_part_of_the_time_only)
{
	struct heapaccount *b = heapaccount_new(
		&(struct heapaccount_spec){.start_ns = START, .nr_slots = 1, .on_row = ignore_row});
	heapaccount_clock(b, &(struct heapclock){START, START, 1});
	struct heapring_event ev = {.kind = HEAP_RECORD_FREE, .tsc = START + 10, .stack = 1};
	for (uint64_t i = 0; i < HEAP_PENDING_FREES; i++) {
		ev.addr = 0x10000 + 16 * i;
		heapaccount_add(b, &ev, 1);
	}
	ev = (struct heapring_event){
		.kind = HEAP_RECORD_ALLOC, .tsc = START + 9, .stack = 1, .nr_bytes = 16};
	for (uint64_t i = 0; i < 5000; i++) {
		ev.addr = 0x90000000 + 16 * i;
		heapaccount_add(b, &ev, 1);
	}
	CHECK_U64(b->nr_log_scans, 1u << 26);
	CHECK_U64(heapaccount_info(b).nr_late, 5000);
	ev.tsc = START + SECOND + 10; /* the next second begins with all of it */
	heapaccount_add(b, &ev, 1);
	ev.tsc--;
	ev.addr = 0x10000;
	heapaccount_add(b, &ev, 1);
	CHECK_U64(b->nr_log_scans, HEAP_PENDING_FREES);
	heapaccount_free(b);
}

/* ---- samples ------------------------------------------------------------------------------ */

/* Whether the interval that goes with the estimate holds the truth. */
static bool is_within(const struct fake_recorder *w, uint32_t spec, int stack, double truth)
{
	double sum = (double)fake_recorder_sum(w, spec, stack, -1, 1);
	double variance = (double)fake_recorder_sum(w, spec, stack, -1, 3);
	return fabs(sum - truth) <= 1.96 * sqrt(variance) + 1;
}

TEST(heapaccount_estimates_are_within_their_intervals)
{
	const uint64_t interval = 4096;
	size_t nr_within = 0;
	size_t nr = 0;
	double ratio = 0;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct fake_recorder w;
		fake_recorder_init(&w, interval, seed);
		double allocated[4] = {0};
		double live[4] = {0};
		for (size_t i = 0; i < 20000; i++) {
			uint64_t stack = fake_recorder_random(&w, 4);
			uint64_t bytes = fake_recorder_random(&w, 10) ? 16 + 100 * stack : 8000;
			uint64_t tsc = START + i * 100000;
			bool is_freed = fake_recorder_random(&w, 4);
			allocated[stack] += (double)bytes;
			live[stack] += is_freed ? 0 : (double)bytes;
			double luck = (double)fake_recorder_random(&w, 1u << 30) / (1u << 30);
			if (luck < heapaccount_probability(bytes, interval)) {
				uint64_t addr = 0x10000 + i * 16;
				CHECK(fake_recorder_alloc(&w, stack & 1, tsc, addr, bytes,
							  (uint32_t)stack));
				if (is_freed)
					CHECK(fake_recorder_free(&w, 2, tsc + 1, addr));
			}
			if (i % 50 == 0)
				fake_recorder_pass(&w, tsc);
		}
		fake_recorder_pass(&w, START + 3 * SECOND);
		heapaccount_end(w.account);
		for (int s = 0; s < 4; s++) {
			nr += 2;
			nr_within += is_within(&w, TABLE_ALLOCATED, s, allocated[s]);
			nr_within += is_within(&w, TABLE_LIVE, s, live[s]);
			ratio += (double)fake_recorder_sum(&w, TABLE_ALLOCATED, s, -1, 1) /
				 allocated[s];
		}
		double left = (double)(fake_recorder_sum(&w, TABLE_ALLOCATED, -1, -1, 1) -
				       fake_recorder_sum(&w, TABLE_FREED, -1, -1, 1) -
				       fake_recorder_sum(&w, TABLE_LIVE, -1, -1, 1));
		CHECK(fabs(left) < (double)w.sums.n); /* a row is off by less than one */
		fake_recorder_release(&w);
	}
	CHECK(nr_within * 100 >= nr * 92);
	CHECK(fabs(ratio / (double)nr * 2 - 1) < 0.02);
}
