#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "capture/wait/blamechain.h"
#include "kernel_wait.h"
#include "locksim.h"
#include "tap.h"
#include "wait_reason.h"

#define START LOCKSIM_START
#define LOCK  0x1000

/* ---- by hand ------------------------------------------------------------------------------- */

struct got {
	struct blamechain_row rows[64];
	size_t n;
};

static int on_row(void *ctx, const struct blamechain_row *row)
{
	struct got *g = ctx;
	if (g->n < ARRAY_LEN(g->rows))
		g->rows[g->n++] = *row;
	return 0;
}

static void blame(struct got *g, const struct wait_interval *v, size_t n)
{
	struct blamechain_options o = {.epoch_ns = START};
	struct blamechain *bc = blamechain_new(&o);
	g->n = 0;
	blamechain_add(bc, v, n, v[n - 1].on_ns);
	blamechain_finish(bc);
	CHECK_U64(blamechain_take_rows(bc, on_row, g), 0);
	blamechain_free(bc);
}

/* Time of rows of a waiter; a culprit or reason of 0 means any. */
static uint64_t sum(const struct got *g, int32_t tid, int32_t culprit, enum wait_reason doing)
{
	int64_t ns = 0;
	for (size_t i = 0; i < g->n; i++)
		if (g->rows[i].tid == tid && (!culprit || g->rows[i].culprit_tid == culprit) &&
		    (!doing || g->rows[i].doing == doing))
			ns += g->rows[i].ns;
	return (uint64_t)ns;
}

static int64_t count(const struct got *g, int32_t tid)
{
	int64_t n = 0;
	for (size_t i = 0; i < g->n; i++)
		n += g->rows[i].tid == tid ? g->rows[i].count : 0;
	return n;
}

/* Times in ms after START. */
static struct wait_interval interval(int32_t tid, uint64_t off, uint64_t woken, uint64_t on,
				     enum wait_reason reason)
{
	return (struct wait_interval){
		.off_ns = START + off * NS_PER_MS,
		.woken_ns = START + woken * NS_PER_MS,
		.on_ns = START + on * NS_PER_MS,
		.user_ref = (uint64_t)tid * 10,
		.tgid = 1,
		.tid = tid,
		.fd = WAIT_NO_FD,
		.syscall = -1,
		.how = reason == WAIT_RUN_QUEUE ? HOW_PREEMPTED : HOW_BLOCKED,
		.reason = (uint8_t)reason,
	};
}

static struct wait_interval woken(int32_t tid, uint64_t off, uint64_t at, uint64_t on,
				  uint64_t object, int32_t by)
{
	struct wait_interval v = interval(tid, off, at, on, WAIT_SYNC);
	v.object_kind = OBJECT_FUTEX;
	v.object = object;
	v.waker_tgid = 1;
	v.waker_tid = by;
	v.waker_ref = (uint64_t)by * 100;
	return v;
}

TEST(blamechain_names_what_the_waker_did)
{
	struct got g;
	struct wait_interval v[] = {
		interval(2, 3, 5, 6, WAIT_FSYNC),
		interval(2, 7, 7, 8, WAIT_RUN_QUEUE),
		woken(1, 2, 10, 11, LOCK, 2),
	};
	blame(&g, v, ARRAY_LEN(v));
	CHECK_U64(sum(&g, 1, 2, 0), 8 * NS_PER_MS);
	CHECK_U64(sum(&g, 1, 2, WAIT_FSYNC), 2 * NS_PER_MS);
	CHECK_U64(sum(&g, 1, 2, WAIT_RUN_QUEUE), 2 * NS_PER_MS);
	CHECK_U64(sum(&g, 1, 2, WAIT_ON_CPU), 4 * NS_PER_MS);
	CHECK_U64(count(&g, 1), 1);
	for (size_t i = 0; i < g.n; i++) {
		CHECK(g.rows[i].reason == WAIT_SYNC && g.rows[i].nr_steps == 1);
		CHECK_U64(g.rows[i].culprit_ref, g.rows[i].doing == WAIT_ON_CPU ? 200 : 20);
		CHECK_U64(g.rows[i].count, g.rows[i].doing == WAIT_ON_CPU);
	}
}

TEST(blamechain_passes_waits_on)
{
	struct got g;
	/* 1 waits for 2, which waits for 3, which is in fsync. */
	struct wait_interval v[] = {
		interval(3, 0, 6, 6, WAIT_FSYNC),
		woken(2, 2, 8, 8, LOCK + 64, 3),
		woken(1, 4, 10, 10, LOCK, 2),
	};
	blame(&g, v, ARRAY_LEN(v));
	CHECK_U64(sum(&g, 1, 3, WAIT_FSYNC), 2 * NS_PER_MS);
	CHECK_U64(sum(&g, 1, 3, WAIT_ON_CPU), 2 * NS_PER_MS);
	CHECK_U64(sum(&g, 1, 2, WAIT_ON_CPU), 2 * NS_PER_MS);
	CHECK_U64(sum(&g, 2, 3, WAIT_FSYNC), 4 * NS_PER_MS);
	for (size_t i = 0; i < g.n; i++) {
		bool is_passed = g.rows[i].tid == 1 && g.rows[i].culprit_tid == 3;
		CHECK_U64(g.rows[i].nr_steps, is_passed ? 2 : 1);
		/* 1 waits for 2, which is at its own wait. */
		CHECK_U64((uint64_t)g.rows[i].direct_tid, is_passed ? 2 : 0);
		CHECK_U64((uint64_t)g.rows[i].direct_tgid, is_passed ? 1 : 0);
		CHECK_U64(g.rows[i].direct_ref, is_passed ? 20 : 0);
	}
}

TEST(blamechain_does_not_blame_what_a_thread_did_before_it_took_the_lock)
{
	struct got g;
	/* 2 holds the lock until it wakes 3. Before 3 runs, 4 takes it, after a sleep, without waiting. */
	struct wait_interval v[] = {
		interval(4, 0, 8, 8, WAIT_SLEEP),
		woken(3, 1, 8, 9, LOCK, 2),
		woken(1, 2, 10, 10, LOCK, 4),
	};
	blame(&g, v, ARRAY_LEN(v));
	CHECK_U64(sum(&g, 1, 2, WAIT_ON_CPU), 6 * NS_PER_MS);
	CHECK_U64(sum(&g, 1, 4, WAIT_ON_CPU), 2 * NS_PER_MS);
	CHECK_U64(sum(&g, 1, 4, WAIT_SLEEP), 0);
}

TEST(blamechain_joins_the_words_of_a_lock)
{
	struct got g;
	/*
	 * A lock with a word for readers and one for writers. 2 holds it until it wakes writer 3,
	 * which wakes reader 5. The second time, 4 takes it after a sleep before 3 runs.
	 */
	struct wait_interval v[] = {
		woken(3, 1, 8, 8, LOCK + 4, 2),         woken(5, 1, 9, 9, LOCK, 3),
		interval(4, 101, 108, 108, WAIT_SLEEP), woken(3, 101, 108, 109, LOCK + 4, 2),
		woken(1, 102, 110, 110, LOCK, 4),
	};
	struct blamechain_options o = {.epoch_ns = START};
	struct blamechain *bc = blamechain_new(&o);
	g.n = 0;
	blamechain_add(bc, v, 2, START + 300 * NS_PER_MS);
	blamechain_add(bc, v + 2, 3, START + 300 * NS_PER_MS);
	blamechain_finish(bc);
	CHECK_U64(blamechain_take_rows(bc, on_row, &g), 0);
	blamechain_free(bc);
	CHECK_U64(sum(&g, 1, 2, WAIT_ON_CPU), 6 * NS_PER_MS);
	CHECK_U64(sum(&g, 1, 4, WAIT_SLEEP), 0);
}

/* 2, which released the lock, had waited for another word of it until 8 ms: 3 had it, not 2. */
TEST(blamechain_waits_directly_for_whom_others_of_the_lock_wait_for)
{
	struct got g;
	struct wait_interval v[] = {
		woken(2, 0, 8, 8, LOCK + 4, 3),
		woken(1, 2, 10, 10, LOCK, 2),
		interval(3, 11, 12, 12, WAIT_FSYNC),
	};
	blame(&g, v, ARRAY_LEN(v));
	CHECK_U64(sum(&g, 1, 2, 0), 2 * NS_PER_MS);
	for (size_t i = 0; i < g.n; i++)
		CHECK(g.rows[i].nr_steps == 1 && !g.rows[i].direct_tid);
}

TEST(blamechain_knows_wake_ups_of_threads_that_run_later)
{
	struct got g;
	/* As before, but 3 gets a CPU only after 1. */
	struct wait_interval v[] = {
		interval(4, 0, 8, 8, WAIT_SLEEP),
		woken(1, 2, 10, 10, LOCK, 4),
		woken(3, 1, 8, 30, LOCK, 2),
	};
	blame(&g, v, ARRAY_LEN(v));
	CHECK_U64(sum(&g, 1, 2, WAIT_ON_CPU), 6 * NS_PER_MS);
	CHECK_U64(sum(&g, 1, 4, 0), 2 * NS_PER_MS);
}

TEST(blamechain_does_not_know_a_waker_that_is_not_recorded)
{
	struct got g;
	struct wait_interval v[] = {woken(1, 2, 10, 10, LOCK, 77)};
	v[0].waker_ref = 0;
	blame(&g, v, ARRAY_LEN(v));
	CHECK_U64(sum(&g, 1, 77, WAIT_UNKNOWN), 8 * NS_PER_MS);
}

TEST(blamechain_attributes_open_waits_to_the_owner)
{
	struct got g;
	struct wait_interval v[] = {
		interval(2, 3, 10, 10, WAIT_FSYNC),
		interval(1, 2, 10, 10, WAIT_SYNC),
		interval(3, 2, 10, 10, WAIT_SYNC),
	};
	v[0].evidence = v[1].evidence = v[2].evidence = EVIDENCE_OPEN;
	v[1].owner_tid = 2;
	blame(&g, v, ARRAY_LEN(v));
	CHECK_U64(sum(&g, 1, 2, WAIT_FSYNC), 7 * NS_PER_MS);
	CHECK_U64(sum(&g, 1, 2, 0), 8 * NS_PER_MS);
	CHECK_U64(sum(&g, 3, 0, 0), 0);
}

/* An owner that computes all the time has no interval; where others are not yet known, nor is this. */
TEST(blamechain_takes_an_owner_without_waits_to_have_run_only_at_the_end)
{
	struct got g;
	struct wait_interval v[] = {interval(1, 0, 10, 10, WAIT_SYNC)};
	v[0].owner_tid = 2;
	blame(&g, v, ARRAY_LEN(v));
	CHECK_U64(sum(&g, 1, 2, WAIT_UNKNOWN), 10 * NS_PER_MS);
	v[0].evidence = EVIDENCE_OPEN;
	blame(&g, v, ARRAY_LEN(v));
	CHECK_U64(sum(&g, 1, 2, WAIT_ON_CPU), 10 * NS_PER_MS);
}

TEST(blamechain_joins_waits_that_time_out_to_the_one_that_follows)
{
	struct got g;
	/* Python: a thread that waits for the GIL looks every 5 ms whether it is still held. */
	struct wait_interval v[] = {
		interval(1, 0, 5, 5, WAIT_SYNC),
		woken(3, 0, 7, 7, LOCK, 2),
		interval(1, 5, 10, 10, WAIT_SYNC),
		woken(1, 10, 12, 12, LOCK, 3),
	};
	v[0].object_kind = v[2].object_kind = OBJECT_FUTEX;
	v[0].object = v[2].object = LOCK;
	v[0].evidence = v[2].evidence = EVIDENCE_BY_IRQ | EVIDENCE_SELF;
	blame(&g, v, ARRAY_LEN(v));
	CHECK_U64(sum(&g, 1, 2, WAIT_ON_CPU), 7 * NS_PER_MS);
	CHECK_U64(sum(&g, 1, 3, WAIT_ON_CPU), 5 * NS_PER_MS);
}

TEST(blamechain_joins_yields_to_the_wait_that_follows)
{
	struct got g;
	struct wait_interval v[] = {
		interval(1, 0, 0, 1, WAIT_RUN_QUEUE), /* long before */
		interval(1, 2, 2, 3, WAIT_RUN_QUEUE),
		interval(1, 3, 3, 5, WAIT_RUN_QUEUE),
		woken(1, 5, 10, 10, LOCK, 2),
	};
	v[0].how = v[1].how = v[2].how = HOW_YIELDED;
	blame(&g, v, ARRAY_LEN(v));
	CHECK_U64(sum(&g, 1, 2, WAIT_ON_CPU), 8 * NS_PER_MS);
	CHECK_U64(count(&g, 1), 3);
}

TEST(blamechain_does_not_blame_a_thread_that_only_interrupts_a_wait)
{
	struct got g;
	/* 9 sends a signal to 1; the lock's owner is still 2. */
	struct wait_interval v[] = {
		woken(1, 2, 6, 6, LOCK, 9),
		woken(1, 6, 10, 10, LOCK, 2),
	};
	v[0].owner_tid = v[1].owner_tid = 2;
	blame(&g, v, ARRAY_LEN(v));
	CHECK_U64(sum(&g, 1, 2, 0), 8 * NS_PER_MS);
}

TEST(blamechain_blames_nobody_on_itself)
{
	struct got g;
	/* Both ends of a pipe; their times overlap, since not all wake-ups are seen. */
	struct wait_interval v[] = {woken(1, 2, 8, 8, LOCK, 2), woken(2, 0, 10, 10, LOCK, 1)};
	v[0].reason = v[1].reason = WAIT_PIPE;
	v[0].object_kind = v[1].object_kind = OBJECT_PIPE;
	blame(&g, v, ARRAY_LEN(v));
	CHECK_U64(sum(&g, 1, 0, 0), 6 * NS_PER_MS);
	CHECK_U64(sum(&g, 1, 2, WAIT_PIPE), 6 * NS_PER_MS);
	CHECK_U64(sum(&g, 2, 0, 0), 10 * NS_PER_MS);
	CHECK_U64(sum(&g, 2, 1, 0), 10 * NS_PER_MS);
}

/*
 * Threads 1 to 4 have the lock in turn. Whoever has it waits most of that time for a thread that never takes it:
 * for one and the same (@nr_behind 1), or for another one each time.
 */
static void in_turn(struct got *g, const uint64_t *hold_ms, int32_t nr_behind)
{
	VEC(struct wait_interval) v = {0};
	struct wait_interval behind = {0};
	uint64_t free_since[5] = {0};
	uint64_t at = 0;
	for (int32_t k = 0; k < 80; k++) {
		int32_t tid = 1 + k % 4;
		uint64_t end = at + hold_ms[k % 4];
		if (k) {
			vec_push(&v, woken(tid, free_since[tid], at, at, LOCK, 1 + (k - 1) % 4));
			v.p[v.n - 1].user_ref = 5; /* where all lock it */
		}
		behind = woken(tid, at, end - 1, end - 1, LOCK + 64 * (uint64_t)tid,
			       100 + k / 4 % nr_behind);
		vec_push(&v, behind);
		free_since[tid] = end;
		at = end;
	}
	blame(g, v.p, v.n);
	vec_release(&v);
}

TEST(blamechain_takes_the_holders_of_a_lock_for_a_convoy_not_whom_they_wait_for)
{
	static const uint64_t alike[] = {10, 10, 10, 10};
	static const uint64_t one[] = {40, 2, 2, 2};
	struct got g;
	uint64_t nr = 0;
	in_turn(&g, alike, 1);
	for (size_t i = 0; i < g.n; i++) {
		CHECK_U64(g.rows[i].is_convoy, g.rows[i].object == LOCK);
		nr += g.rows[i].object == LOCK;
	}
	CHECK(nr > 0);
	in_turn(&g, one, 8);
	for (size_t i = 0; i < g.n; i++)
		CHECK(!g.rows[i].is_convoy);
}

TEST(blamechain_splits_waits_at_seconds_and_counts_them_once)
{
	struct got g;
	struct wait_interval v[] = {woken(1, 500, 3200, 3200, LOCK, 2)};
	blame(&g, v, ARRAY_LEN(v));
	CHECK_U64(g.n, 4);
	static const uint64_t ms[] = {500, 1000, 1000, 200};
	for (size_t i = 0; i < g.n; i++) {
		CHECK_U64(g.rows[i].second, i);
		CHECK_U64(g.rows[i].ns, ms[i] * NS_PER_MS);
		CHECK_U64(g.rows[i].count, i == 3);
	}
}

TEST(blamechain_is_unknown_before_its_history)
{
	struct blamechain_options o = {.epoch_ns = START, .nr_intervals = 16};
	struct blamechain *bc = blamechain_new(&o);
	struct got g = {.n = 0};
	for (uint64_t i = 0; i < 100; i++) {
		struct wait_interval v = interval(2, i, i + 1, i + 1, WAIT_FSYNC);
		blamechain_add(bc, &v, 1, v.on_ns);
	}
	struct wait_interval v = woken(1, 10, 110, 110, LOCK, 2);
	blamechain_add(bc, &v, 1, v.on_ns);
	blamechain_finish(bc);
	CHECK_U64(blamechain_take_rows(bc, on_row, &g), 0);
	CHECK_U64(sum(&g, 1, 0, 0), 100 * NS_PER_MS);
	CHECK_U64(sum(&g, 1, 2, WAIT_FSYNC), 15 * NS_PER_MS);
	CHECK_U64(sum(&g, 1, 2, WAIT_UNKNOWN), 75 * NS_PER_MS);
	CHECK_U64(blamechain_counts(bc).unknown_ns, 75 * NS_PER_MS);
	CHECK_U64(blamechain_counts(bc).ns, 100 * NS_PER_MS);
	blamechain_free(bc);
}

static int on_any_row(void *ctx, const struct blamechain_row *row)
{
	uint64_t *ns = ctx;
	CHECK(row->ns >= 0 && row->count >= 0 && row->nr_steps >= 1);
	*ns += (uint64_t)row->ns;
	return 0;
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state >> 11;
}

/* Whatever the intervals are, also contradictory ones: the parts add up, and nothing is lost. */
TEST(blamechain_parts_of_any_intervals_add_up)
{
	static const uint8_t reasons[] = {WAIT_SYNC, WAIT_SYNC,  WAIT_PIPE,       WAIT_FSYNC,
					  WAIT_NET,  WAIT_SLEEP, WAIT_FILE_OTHER, WAIT_MMAP_LOCK};
	uint64_t state = 88172645463325252ull;
	for (int round = 0; round < 20; round++) {
		struct blamechain_options o = {.epoch_ns = START, .lag_ns = 1000};
		o.nr_intervals = round % 2 ? 64 : 0;
		struct blamechain *bc = blamechain_new(&o);
		uint64_t now = START;
		uint64_t rows_ns = 0;
		uint64_t want_ns = 0;
		for (int i = 0; i < 3000; i++) {
			now += next_random(&state) % 300;
			uint64_t woken_ago = next_random(&state) % (i % 50 ? 500 : 5000000);
			struct wait_interval v = interval(1 + (int32_t)(next_random(&state) % 6), 0,
							  0, 0, reasons[next_random(&state) % 8]);
			v.on_ns = now;
			v.woken_ns = now - MIN(woken_ago, now - START);
			v.off_ns = v.woken_ns - MIN(next_random(&state) % 3000, v.woken_ns - START);
			v.waker_tid = (int32_t)(next_random(&state) % 9);
			v.waker_tgid = 1;
			v.waker_ref = v.waker_tid > 6 ? 0 : 7;
			v.owner_tid = (int32_t)(next_random(&state) % 8);
			v.user_ref = next_random(&state) % 3;
			v.object_kind = v.reason == WAIT_SYNC ? OBJECT_FUTEX : OBJECT_PIPE;
			v.object = LOCK + 4 * (next_random(&state) % 5);
			v.how = i % 7 ? HOW_BLOCKED : HOW_PREEMPTED;
			v.evidence = i % 11 ? 0 : EVIDENCE_OPEN;
			blamechain_add(bc, &v, 1, now);
			if (i % 1000 == 0)
				CHECK_U64(blamechain_take_rows(bc, on_any_row, &rows_ns), 0);
		}
		blamechain_finish(bc);
		CHECK_U64(blamechain_take_rows(bc, on_any_row, &rows_ns), 0);
		want_ns = blamechain_counts(bc).ns;
		CHECK(want_ns > 0 && blamechain_counts(bc).unknown_ns <= want_ns);
		CHECK_U64(rows_ns, want_ns);
		blamechain_free(bc);
	}
}

/* ---- simulated locks ------------------------------------------------------------------------ */

struct score {
	uint64_t ns[LOCKSIM_THREADS];
	uint64_t blocked_ns[LOCKSIM_THREADS]; /* ... and blocked for its own reason */
	uint64_t all_ns;
	uint64_t convoy_ns;
	uint64_t nr_waits;
};

static int on_score(void *ctx, const struct blamechain_row *row)
{
	struct score *to = ctx;
	int32_t i = row->culprit_tid - LOCKSIM_TID;
	CHECK(row->user_ref - LOCKSIM_WAIT <= 1 && row->reason == WAIT_SYNC);
	CHECK(i >= 0 && i < LOCKSIM_THREADS);
	to->ns[i] += (uint64_t)row->ns;
	to->blocked_ns[i] += row->doing == WAIT_FSYNC ? (uint64_t)row->ns : 0;
	to->all_ns += (uint64_t)row->ns;
	to->convoy_ns += row->is_convoy ? (uint64_t)row->ns : 0;
	to->nr_waits += (uint64_t)row->count;
	return 0;
}

static struct score score(const struct locksim *s)
{
	struct blamechain_options o = {.epoch_ns = START};
	struct blamechain *bc = blamechain_new(&o);
	struct score to = {0};
	for (size_t i = 0; i < s->intervals.n; i += 100) {
		size_t n = MIN(s->intervals.n - i, (size_t)100);
		blamechain_add(bc, s->intervals.p + i, n, s->intervals.p[i + n - 1].on_ns);
	}
	blamechain_finish(bc);
	CHECK_U64(blamechain_take_rows(bc, on_score, &to), 0);
	CHECK_U64(blamechain_counts(bc).ns, to.all_ns);
	blamechain_free(bc);
	return to;
}

static const struct {
	const char *name;
	unsigned kind;
} kinds[] = {
	{"mutex", LOCKSIM_BARGING | LOCKSIM_OWNER},
	{"std", LOCKSIM_BARGING | LOCKSIM_SPINNING},
	{"pi", LOCKSIM_OWNER},
	{"semaphore", LOCKSIM_BARGING},
	{"fair", 0},
	{"own fair", LOCKSIM_OWN_WORD},
	{"own barging", LOCKSIM_OWN_WORD | LOCKSIM_BARGING | LOCKSIM_SPINNING},
};

static struct locksim planted(unsigned kind, uint32_t nr_waiters, uint64_t seed)
{
	struct locksim s = {.kind = kind,
			    .seed = seed,
			    .nr_cpus = 2,
			    .nr_threads = 1 + nr_waiters,
			    .nr_us = 60000};
	s.plans[0] = (struct locksim_plan){.think_us = 10, .hold_us = 2000, .place = 1};
	for (uint32_t i = 1; i <= nr_waiters; i++)
		s.plans[i] = (struct locksim_plan){
			.think_us = 20, .rest_us = seed % 2 ? 300 : 0, .hold_us = 1};
	return s;
}

static double share(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 1;
}

/* The waits of all threads: at least 95 % of what is the holder's is attributed to it, no more. */
static void check_planted(const struct locksim *s, const char *what, uint32_t nr)
{
	struct score to = score(s);
	double holder = share(to.ns[0], s->held_ns[0]);
	double blocked = share(to.blocked_ns[0], s->blocked_ns[0]);
	/* Until a woken thread has the lock nobody holds it; this is attributed to that thread. */
	double most = share(s->held_ns[0] + s->free_ns + s->wait_ns / 50, s->held_ns[0]);
	if (getenv("BLAME_FIGURES"))
		printf("# %-12s %2u waiters, seed %2" PRIu64 ": holder has %5.1f %% of the waits, "
		       "%5.1f %% of it attributed, blocked %5.1f %%, convoy %.1f %%\n",
		       what, nr, s->seed, 100 * share(s->held_ns[0], s->wait_ns), 100 * holder,
		       100 * blocked, 100 * share(to.convoy_ns, to.all_ns));
	CHECK(holder >= 0.95 && holder <= most);
	CHECK(blocked >= 0.95 && blocked <= 1.05);
	CHECK_U64(to.convoy_ns, 0);
}

TEST(blamechain_blames_the_holder_of_simulated_locks)
{
	static const uint32_t waiters[] = {1, 2, 4, 8, 16, 32};
	for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
		for (size_t n = 0; n < ARRAY_LEN(waiters); n++)
			for (uint64_t seed = 1; seed <= 2; seed++) {
				struct locksim s = planted(kinds[k].kind, waiters[n], seed);
				locksim_run(&s);
				check_planted(&s, kinds[k].name, waiters[n]);
				locksim_release(&s);
			}
}

TEST(blamechain_blames_holders_that_block_or_are_preempted)
{
	for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
		for (uint64_t seed = 1; seed <= 3; seed++) {
			struct locksim s = planted(kinds[k].kind, 1 + 6 * (uint32_t)seed, seed);
			s.plans[0].hold_us = 500;
			s.plans[0].block_us = 1500;
			s.plans[0].reason = WAIT_FSYNC;
			if (seed % 3 == 0) { /* others want its CPU */
				s.slice_us = 300;
				for (uint32_t i = s.nr_threads; i < s.nr_threads + 3; i++)
					s.plans[i] = (struct locksim_plan){.is_burner = true};
				s.nr_threads += 3;
				s.nr_us *= 2;
			}
			locksim_run(&s);
			check_planted(&s, kinds[k].name, s.nr_threads);
			locksim_release(&s);
		}
}

TEST(blamechain_calls_two_holders_among_others_no_convoy)
{
	for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
		for (uint64_t seed = 1; seed <= 3; seed++) {
			struct locksim s = planted(kinds[k].kind, (uint32_t)seed * 10 - 8, seed);
			s.plans[1] = s.plans[0];
			locksim_run(&s);
			struct score to = score(&s);
			CHECK_U64(to.convoy_ns, 0);
			CHECK(share(to.ns[0] + to.ns[1], s.held_ns[0] + s.held_ns[1]) >= 0.95);
			locksim_release(&s);
		}
}

TEST(blamechain_finds_convoys)
{
	for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
		for (uint32_t nr = 3; nr <= 16; nr += 1 + nr / 4) {
			struct locksim s = {.kind = kinds[k].kind,
					    .seed = nr,
					    .nr_cpus = 2,
					    .nr_threads = nr,
					    .nr_us = 80000,
					    .slice_us = 1000};
			for (uint32_t i = 0; i < nr; i++)
				s.plans[i] = (struct locksim_plan){.think_us = 10, .hold_us = 50};
			locksim_run(&s);
			struct score to = score(&s);
			if (getenv("BLAME_FIGURES"))
				printf("# convoy %-12s %2u: %.1f %%\n", kinds[k].name, nr,
				       100 * share(to.convoy_ns, to.all_ns));
			CHECK(share(to.convoy_ns, to.all_ns) > 0.9);
			locksim_release(&s);
		}
}
