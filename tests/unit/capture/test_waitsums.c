#include "base/base.h"

#include "base/clock.h"
#include "capture/wait/waitsums.h"
#include "model/tables.h"
#include "tap.h"
#include "wait_reason.h"

#define START 5000000000ull
#define MS    1000000ull

struct got {
	int64_t on_ns;
	int64_t nr_runs;
	int64_t ns[WAIT_NR];
	int64_t nr[WAIT_NR];
	int64_t longest_ns[WAIT_NR];
	int64_t by_second[8];
	uint32_t log2_bits; /* of run queue rows */
	unsigned nr_rows;
};

static int on_row(void *ctx, const struct waitsums_row *row, struct err *err)
{
	struct got *g = ctx;
	(void)err;
	g->nr_rows++;
	g->by_second[row->key.second] += row->ns;
	if (row->key.table == TABLE_ON_CPU) {
		g->on_ns += row->ns;
		g->nr_runs += row->count;
		return 0;
	}
	g->ns[row->key.reason] += row->ns;
	g->nr[row->key.reason] += row->count;
	g->longest_ns[row->key.reason] = MAX(g->longest_ns[row->key.reason], row->longest_ns);
	if (row->key.reason == WAIT_RUN_QUEUE)
		g->log2_bits |= 1u << row->key.log2_ns;
	return 0;
}

static void take(struct waitsums *s, struct got *g)
{
	*g = (struct got){0};
	CHECK(!waitsums_emit(s, on_row, g, NULL));
}

static void add(struct waitsums *s, uint64_t ran_ns, uint64_t run_ns, uint64_t off_ns,
		uint64_t blocked_ns, uint64_t queue_ns, uint8_t how)
{
	struct wait_run run = {
		.interval = {.off_ns = off_ns,
			     .woken_ns = off_ns + blocked_ns,
			     .on_ns = off_ns + blocked_ns + queue_ns,
			     .tgid = 10,
			     .tid = 11,
			     .fd = WAIT_NO_FD,
			     .reason = how == HOW_BLOCKED ? WAIT_FSYNC : WAIT_RUN_QUEUE,
			     .how = how},
		.ran_ns = ran_ns,
		.run_ns = run_ns,
	};
	waitsums_add(s, &run);
}

TEST(waitsums_rows_add_up_to_elapsed_time)
{
	struct waitsums *s = waitsums_new(START);
	struct got g;
	add(s, 10 * MS, 10 * MS, START + 10 * MS, 20 * MS, 5 * MS, HOW_BLOCKED);
	add(s, 10 * MS, 7 * MS, START + 45 * MS, 0, 5 * MS, HOW_PREEMPTED);
	add(s, 50 * MS, 50 * MS, START + 100 * MS, 0, 0, HOW_ENDED);
	take(s, &g);
	CHECK(g.on_ns == 67 * (int64_t)MS && g.nr_runs == 3);
	CHECK(g.ns[WAIT_FSYNC] == 20 * (int64_t)MS && g.nr[WAIT_FSYNC] == 1);
	CHECK(g.ns[WAIT_RUN_QUEUE] == 10 * (int64_t)MS && g.nr[WAIT_RUN_QUEUE] == 2);
	CHECK(g.ns[WAIT_STOLEN] == 3 * (int64_t)MS && g.nr[WAIT_STOLEN] == 0);
	CHECK(g.by_second[0] == 100 * (int64_t)MS);
	take(s, &g);
	CHECK_U64(g.nr_rows, 0);
	waitsums_free(s);
}

TEST(waitsums_splits_at_seconds_and_counts_at_the_end)
{
	struct waitsums *s = waitsums_new(START);
	struct got g;
	add(s, 500 * MS, 250 * MS, START + 1250 * MS, 2000 * MS, 0, HOW_BLOCKED);
	take(s, &g);
	CHECK(g.by_second[0] == 250 * (int64_t)MS);
	CHECK(g.by_second[1] == 1000 * (int64_t)MS);
	CHECK(g.by_second[2] == 1000 * (int64_t)MS);
	CHECK(g.by_second[3] == 250 * (int64_t)MS);
	CHECK(g.on_ns == 250 * (int64_t)MS && g.ns[WAIT_STOLEN] == 250 * (int64_t)MS);
	CHECK(g.nr[WAIT_FSYNC] == 1 && g.longest_ns[WAIT_FSYNC] == 2000 * (int64_t)MS);
	waitsums_free(s);
}

/* The two clocks are read at different moments: what one run lacks, the next one has. */
TEST(waitsums_differences_between_the_clocks_are_not_stolen_time)
{
	struct waitsums *s = waitsums_new(START);
	struct got g;
	uint64_t at = START;
	for (unsigned i = 0; i < 1000; i++) {
		at += 10000;
		add(s, 8000, i % 2 ? 7900 : 8100, at, 2000, 0, HOW_BLOCKED);
	}
	take(s, &g);
	CHECK(g.on_ns == 8000 * 1000 && g.ns[WAIT_STOLEN] == 0);
	waitsums_free(s);
}

/*
 * The scheduler's clock can be read long before the switch, at the wake-up that preempts: what it
 * counts for the run is then more than the run's elapsed time.
 */
TEST(waitsums_on_cpu_is_what_the_scheduler_counted)
{
	struct waitsums *s = waitsums_new(START);
	struct got g;
	add(s, 30000, 46000, START + MS, 20 * MS, 0, HOW_BLOCKED);
	add(s, 50000, 62000, START + 22 * MS, 0, MS, HOW_PREEMPTED);
	take(s, &g);
	CHECK_U64(g.on_ns, 46000 + 62000);
	CHECK_U64(g.ns[WAIT_FSYNC], 20 * MS - 16000);
	CHECK_U64(g.ns[WAIT_RUN_QUEUE], MS - 12000);
	CHECK_U64(g.by_second[0], 80000 + 21 * MS);
	add(s, 80000, 90000, START + 24 * MS, 0, 0, HOW_ENDED);
	take(s, &g);
	CHECK_U64(g.on_ns, 90000);
	waitsums_free(s);
}

TEST(waitsums_of_a_thread_that_lives_do_not_exceed_its_time)
{
	struct waitsums *s = waitsums_new(START);
	struct got g;
	struct wait_run run = {
		.interval = {.off_ns = START + MS,
			     .woken_ns = START + MS,
			     .on_ns = START + MS,
			     .tid = 11,
			     .how = HOW_ENDED,
			     .evidence = EVIDENCE_OPEN},
		.ran_ns = 80000,
		.run_ns = 90000,
	};
	waitsums_add(s, &run);
	take(s, &g);
	CHECK_U64(g.on_ns, 80000);
	/* The next thread with this TID. */
	add(s, 50000, 45000, START + 2 * MS, 0, 0, HOW_ENDED);
	take(s, &g);
	CHECK_U64(g.on_ns, 45000);
	waitsums_free(s);
}

TEST(waitsums_wakeup_latencies_are_exact_by_class)
{
	struct waitsums *s = waitsums_new(START);
	struct got g;
	add(s, 1000, 1000, START + MS, 2000, 100, HOW_BLOCKED);
	add(s, 1000, 1000, START + MS, 2000, 1000, HOW_BLOCKED);
	add(s, 1000, 1000, START + MS, 2000, 5000, HOW_BLOCKED);
	add(s, 1000, 1000, START + MS, 2000, 20 * MS, HOW_BLOCKED);
	take(s, &g);
	CHECK(g.log2_bits == (1u << 6 | 1u << 9 | 1u << 12 | 1u << 24));
	CHECK(g.ns[WAIT_RUN_QUEUE] == 100 + 1000 + 5000 + 20 * (int64_t)MS);
	CHECK(g.longest_ns[WAIT_RUN_QUEUE] == 20 * (int64_t)MS);
	waitsums_free(s);
}

TEST(waitsums_of_what_had_no_room_keep_their_time)
{
	struct waitsums *s = waitsums_new(START);
	struct got g;
	struct wait_single u = {.record = {.off_ns = START + MS, .tid = 11, .tgid = 10},
				.blocked_ns = 700,
				.ran_ns = 300,
				.run_ns = 200,
				.nr_intervals = 5,
				.nr_runs = 6};
	waitsums_add_unaccounted(s, &u);
	take(s, &g);
	CHECK(g.ns[WAIT_UNKNOWN] == 700 && g.nr[WAIT_UNKNOWN] == 5);
	CHECK(g.on_ns == 200 && g.nr_runs == 6 && g.ns[WAIT_STOLEN] == 100);
	waitsums_free(s);
}
