#include "base/base.h"

#include "base/clock.h"
#include "capture/wait/waitaccount.h"
#include "model/tables.h"
#include "tap.h"

#define START 1000000000ull
#define MS    1000000ull

struct got {
	uint64_t on_ns;
	uint64_t nr_on;
	uint64_t ns[WAIT_NR];
	uint64_t nr[WAIT_NR];
	uint64_t nr_preempted;
	uint64_t woken_ns;
	uint64_t by_second[4];
	uint64_t nr_rows;
	uint64_t longest_ns[WAIT_NR];
	uint8_t evidence;
};

static int on_row(void *ctx, const struct event *ev, struct err *err)
{
	struct got *g = ctx;
	const struct event_aggregate *y = &ev->aggregate;
	(void)err;
	g->nr_rows++;
	g->evidence |= y->evidence;
	g->by_second[(ev->time_ns - START) / NS_PER_SEC] += (uint64_t)y->values[1];
	if (y->spec == TABLE_ON_CPU) {
		g->on_ns += (uint64_t)y->values[1];
		g->nr_on += (uint64_t)y->values[0];
		return 0;
	}
	g->ns[y->reason] += (uint64_t)y->values[1];
	g->nr[y->reason] += (uint64_t)y->values[0];
	g->longest_ns[y->reason] = MAX(g->longest_ns[y->reason], (uint64_t)y->values[2]);
	if (y->detail && !strcmp(y->detail, "preempted"))
		g->nr_preempted += (uint64_t)y->values[0];
	if (y->detail && !strcmp(y->detail, "woken"))
		g->woken_ns += (uint64_t)y->values[1];
	return 0;
}

static void take(struct waitaccount *b, struct got *g)
{
	struct event_sink sink = {on_row, g};
	*g = (struct got){0};
	CHECK(!waitaccount_flush(b, &sink, NULL));
}

static const struct wait_cause fsync_cause = {.ref = 7, .reason = WAIT_FSYNC, .syscall = 74};
static const struct wait_cause sleep_cause = {
	.ref = 8, .reason = WAIT_SLEEP, .syscall = 230, .evidence = EVIDENCE_POLLED};

TEST(waitaccount_rows_add_up_to_elapsed_time)
{
	struct waitaccount b;
	struct got g;
	waitaccount_init(&b, START, 20 * MS);
	struct waitaccount_thread *t = waitaccount_thread(&b, 1, 2, START);
	waitaccount_switch_in(&b, t, START + 10 * MS);
	waitaccount_switch_out(&b, t, START + 30 * MS, OFFCPU_WAIT, &fsync_cause);
	waitaccount_switch_in(&b, t, START + 100 * MS);
	waitaccount_switch_out(&b, t, START + 150 * MS, OFFCPU_PREEMPTED, &fsync_cause);
	waitaccount_switch_in(&b, t, START + 160 * MS);
	waitaccount_finish(&b, START + 1000 * MS);
	take(&b, &g);
	CHECK_U64(g.on_ns, (20 + 50 + 840) * MS);
	CHECK_U64(g.nr_on, 2); /* the last run has not ended */
	CHECK_U64(g.ns[WAIT_FSYNC], 70 * MS);
	CHECK_U64(g.ns[WAIT_RUN_QUEUE], 20 * MS); /* 10 of them before its first switch */
	CHECK_U64(g.nr_preempted, 1);
	CHECK_U64(g.by_second[0], 1000 * MS);
	waitaccount_release(&b);
}

TEST(waitaccount_splits_a_wait_at_the_second_and_counts_it_where_it_ends)
{
	struct waitaccount b;
	struct got g;
	waitaccount_init(&b, START, 20 * MS);
	struct waitaccount_thread *t = waitaccount_thread(&b, 1, 2, START);
	waitaccount_switch_out(&b, t, START + 400 * MS, OFFCPU_WAIT, &fsync_cause);
	waitaccount_end_slice(&b, START + 1000 * MS);
	take(&b, &g);
	CHECK_U64(g.ns[WAIT_FSYNC], 600 * MS);
	CHECK_U64(g.nr[WAIT_FSYNC], 0);
	waitaccount_switch_in(&b, waitaccount_find(&b, 2), START + 1200 * MS);
	waitaccount_finish(&b, START + 2000 * MS);
	take(&b, &g);
	CHECK_U64(g.ns[WAIT_FSYNC], 200 * MS);
	CHECK_U64(g.nr[WAIT_FSYNC], 1);
	CHECK_U64(g.longest_ns[WAIT_FSYNC], 800 * MS); /* of the whole wait, not of its last part */
	CHECK_U64(g.by_second[0], 0);
	CHECK_U64(g.by_second[1], 1000 * MS);
	waitaccount_release(&b);
}

TEST(waitaccount_marks_waits_open_at_the_end)
{
	struct waitaccount b;
	struct got g;
	waitaccount_init(&b, START, 20 * MS);
	struct waitaccount_thread *t = waitaccount_thread(&b, 1, 2, START);
	waitaccount_add_poll(&b, t, START + MS, START + 2 * MS, &sleep_cause);
	waitaccount_finish(&b, START + 500 * MS);
	take(&b, &g);
	CHECK_U64(g.ns[WAIT_SLEEP], 500 * MS);
	CHECK_U64(g.nr[WAIT_SLEEP], 1); /* as in the kernel's accounting */
	CHECK(g.evidence & EVIDENCE_OPEN);
	waitaccount_release(&b);
}

TEST(waitaccount_distributes_short_waits_over_polled_causes)
{
	struct waitaccount b;
	struct got g;
	waitaccount_init(&b, START, 20 * MS);
	struct waitaccount_thread *t = waitaccount_thread(&b, 1, 2, START);
	uint64_t at = START;
	for (int i = 0; i < 40; i++) { /* waits of 10 ms, every tenth one is polled */
		waitaccount_switch_in(&b, t, at + 5 * MS);
		waitaccount_switch_out(&b, t, at + 10 * MS, OFFCPU_WAIT, NULL);
		if (i % 10 == 0)
			waitaccount_add_poll(&b, t, at + 12 * MS, at + 13 * MS,
					     i < 10 ? &fsync_cause : &sleep_cause);
		at += 15 * MS;
	}
	waitaccount_switch_in(&b, t, at + 5 * MS);
	waitaccount_finish(&b, at + 5 * MS);
	take(&b, &g);
	uint64_t all = g.ns[WAIT_SLEEP] + g.ns[WAIT_FSYNC];
	CHECK_U64(all, 40 * 10 * MS);
	CHECK_U64(g.nr[WAIT_SLEEP] + g.nr[WAIT_FSYNC], 40);
	CHECK_U64(g.ns[WAIT_UNKNOWN], 0);
	CHECK_U64(g.by_second[0], at + 5 * MS - START);
	waitaccount_release(&b);
}

TEST(waitaccount_ignores_a_poll_across_a_switch)
{
	struct waitaccount b;
	struct got g;
	waitaccount_init(&b, START, 20 * MS);
	struct waitaccount_thread *t = waitaccount_thread(&b, 1, 2, START);
	waitaccount_switch_in(&b, t, START + 5 * MS);
	waitaccount_switch_out(&b, t, START + 10 * MS, OFFCPU_WAIT, NULL);
	waitaccount_add_poll(&b, t, START + 9 * MS, START + 11 * MS, &sleep_cause);
	waitaccount_switch_in(&b, t, START + 300 * MS); /* too long to count as short */
	waitaccount_finish(&b, START + 300 * MS);
	take(&b, &g);
	CHECK_U64(g.ns[WAIT_SLEEP], 0);
	CHECK_U64(g.ns[WAIT_UNKNOWN], 290 * MS);
	waitaccount_release(&b);
}

TEST(waitaccount_distributes_the_run_queue_by_number_of_waits)
{
	struct waitaccount b;
	struct got g;
	waitaccount_init(&b, START, 20 * MS);
	struct waitaccount_thread *t = waitaccount_thread(&b, 1, 2, START);
	struct wait_cause other = fsync_cause;
	other.ref = 9;
	other.reason = WAIT_POLL;
	waitaccount_add_off(&b, t, START + 900 * MS, 300 * MS, 10 * MS, 30, OFFCPU_WAIT,
			    &fsync_cause);
	waitaccount_add_off(&b, t, START + 900 * MS, 500 * MS, 50 * MS, 10, OFFCPU_WAIT, &other);
	waitaccount_distribute_queue(&b, t, 40 * MS);
	take(&b, &g);
	CHECK_U64(g.ns[WAIT_FSYNC], 270 * MS);
	CHECK_U64(g.ns[WAIT_POLL], 490 * MS);
	CHECK_U64(g.woken_ns, 40 * MS);
	CHECK_U64(g.nr[WAIT_FSYNC], 30);
	waitaccount_release(&b);
}

TEST(waitaccount_drops_exited_threads_and_separates_a_reused_tid)
{
	struct waitaccount b;
	struct got g;
	waitaccount_init(&b, START, 20 * MS);
	waitaccount_exit(&b, waitaccount_thread(&b, 1, 2, START), START + 10 * MS);
	struct waitaccount_thread *t = waitaccount_thread(&b, 5, 2, START + 20 * MS);
	CHECK_U64(t->pid, 5);
	waitaccount_switch_in(&b, t, START + 20 * MS);
	waitaccount_end_slice(&b, START + 30 * MS);
	take(&b, &g);
	CHECK_U64(b.threads.n, 1);
	CHECK(waitaccount_find(&b, 2) && waitaccount_find(&b, 2)->pid == 5);
	CHECK_U64(g.by_second[0], 20 * MS);
	waitaccount_release(&b);
}
