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
	if (y->detail && !strcmp(y->detail, "preempted"))
		g->nr_preempted += (uint64_t)y->values[0];
	if (y->detail && !strcmp(y->detail, "woken"))
		g->woken_ns += (uint64_t)y->values[1];
	return 0;
}

static void take(struct account *b, struct got *g)
{
	struct event_sink sink = {on_row, g};
	*g = (struct got){0};
	CHECK(!waitaccount_flush(b, &sink, NULL));
}

static const struct why fsync_why = {.ref = 7, .reason = WAIT_FSYNC, .syscall = 74};
static const struct why sleep_why = {
	.ref = 8, .reason = WAIT_SLEEP, .syscall = 230, .evidence = EVIDENCE_POLLED};

TEST(waitaccount_adds_up_to_the_wall_time)
{
	struct account b;
	struct got g;
	waitaccount_init(&b, START, 20 * MS);
	struct waitaccount_thread *t = waitaccount_thread(&b, 1, 2, START);
	waitaccount_on(&b, t, START + 10 * MS);
	waitaccount_off(&b, t, START + 30 * MS, WAITACCOUNT_WAIT, &fsync_why);
	waitaccount_on(&b, t, START + 100 * MS);
	waitaccount_off(&b, t, START + 150 * MS, WAITACCOUNT_PREEMPTED, &fsync_why);
	waitaccount_on(&b, t, START + 160 * MS);
	waitaccount_cut(&b, START + 1000 * MS, true);
	take(&b, &g);
	CHECK_U64(g.on_ns, (20 + 50 + 840) * MS);
	CHECK_U64(g.nr_on, 2); /* the last run has not ended */
	CHECK_U64(g.ns[WAIT_FSYNC], 70 * MS);
	CHECK_U64(g.ns[WAIT_RUN_QUEUE], 20 * MS); /* 10 before anything was known of it */
	CHECK_U64(g.nr_preempted, 1);
	CHECK_U64(g.by_second[0], 1000 * MS);
	waitaccount_release(&b);
}

TEST(waitaccount_cuts_at_the_border_and_counts_where_a_wait_ends)
{
	struct account b;
	struct got g;
	waitaccount_init(&b, START, 20 * MS);
	struct waitaccount_thread *t = waitaccount_thread(&b, 1, 2, START);
	waitaccount_off(&b, t, START + 400 * MS, WAITACCOUNT_WAIT, &fsync_why);
	waitaccount_cut(&b, START + 1000 * MS, false);
	take(&b, &g);
	CHECK_U64(g.ns[WAIT_FSYNC], 600 * MS);
	CHECK_U64(g.nr[WAIT_FSYNC], 0);
	waitaccount_on(&b, waitaccount_find(&b, 2), START + 1200 * MS);
	waitaccount_cut(&b, START + 2000 * MS, true);
	take(&b, &g);
	CHECK_U64(g.ns[WAIT_FSYNC], 200 * MS);
	CHECK_U64(g.nr[WAIT_FSYNC], 1);
	CHECK_U64(g.by_second[0], 0);
	CHECK_U64(g.by_second[1], 1000 * MS);
	waitaccount_release(&b);
}

TEST(waitaccount_marks_what_is_open_at_the_end)
{
	struct account b;
	struct got g;
	waitaccount_init(&b, START, 20 * MS);
	struct waitaccount_thread *t = waitaccount_thread(&b, 1, 2, START);
	waitaccount_look(&b, t, START + MS, START + 2 * MS, &sleep_why);
	waitaccount_cut(&b, START + 500 * MS, true);
	take(&b, &g);
	CHECK_U64(g.ns[WAIT_SLEEP], 500 * MS);
	CHECK(g.evidence & EVIDENCE_OPEN);
	waitaccount_release(&b);
}

TEST(waitaccount_shares_short_waits_over_what_was_seen)
{
	struct account b;
	struct got g;
	waitaccount_init(&b, START, 20 * MS);
	struct waitaccount_thread *t = waitaccount_thread(&b, 1, 2, START);
	uint64_t at = START;
	for (int i = 0; i < 40; i++) { /* waits of 10 ms, each tenth one is looked at */
		waitaccount_on(&b, t, at + 5 * MS);
		waitaccount_off(&b, t, at + 10 * MS, WAITACCOUNT_WAIT, NULL);
		if (i % 10 == 0)
			waitaccount_look(&b, t, at + 12 * MS, at + 13 * MS,
					 i < 10 ? &fsync_why : &sleep_why);
		at += 15 * MS;
	}
	waitaccount_on(&b, t, at + 5 * MS);
	waitaccount_cut(&b, at + 5 * MS, true);
	take(&b, &g);
	uint64_t all = g.ns[WAIT_SLEEP] + g.ns[WAIT_FSYNC];
	CHECK_U64(all, 40 * 10 * MS);
	CHECK_U64(g.nr[WAIT_SLEEP] + g.nr[WAIT_FSYNC], 40);
	CHECK_U64(g.ns[WAIT_UNKNOWN], 0);
	CHECK_U64(g.by_second[0], at + 5 * MS - START);
	waitaccount_release(&b);
}

TEST(waitaccount_ignores_a_look_across_a_switch)
{
	struct account b;
	struct got g;
	waitaccount_init(&b, START, 20 * MS);
	struct waitaccount_thread *t = waitaccount_thread(&b, 1, 2, START);
	waitaccount_on(&b, t, START + 5 * MS);
	waitaccount_off(&b, t, START + 10 * MS, WAITACCOUNT_WAIT, NULL);
	waitaccount_look(&b, t, START + 9 * MS, START + 11 * MS, &sleep_why);
	waitaccount_on(&b, t, START + 300 * MS); /* too long to be shared out as a short one */
	waitaccount_cut(&b, START + 300 * MS, true);
	take(&b, &g);
	CHECK_U64(g.ns[WAIT_SLEEP], 0);
	CHECK_U64(g.ns[WAIT_UNKNOWN], 290 * MS);
	waitaccount_release(&b);
}

TEST(waitaccount_shares_the_run_queue_by_number_of_waits)
{
	struct account b;
	struct got g;
	waitaccount_init(&b, START, 20 * MS);
	struct waitaccount_thread *t = waitaccount_thread(&b, 1, 2, START);
	struct why other = fsync_why;
	other.ref = 9;
	other.reason = WAIT_POLL;
	waitaccount_add(&b, t, START + 900 * MS, 300 * MS, 30, WAITACCOUNT_WAIT, &fsync_why);
	waitaccount_add(&b, t, START + 900 * MS, 500 * MS, 10, WAITACCOUNT_WAIT, &other);
	waitaccount_share_queue(&b, t, 40 * MS);
	take(&b, &g);
	CHECK_U64(g.ns[WAIT_FSYNC], 270 * MS);
	CHECK_U64(g.ns[WAIT_POLL], 490 * MS);
	CHECK_U64(g.woken_ns, 40 * MS);
	CHECK_U64(g.nr[WAIT_FSYNC], 30);
	waitaccount_release(&b);
}

TEST(waitaccount_forgets_threads_that_are_gone_and_keeps_a_reused_tid_apart)
{
	struct account b;
	struct got g;
	waitaccount_init(&b, START, 20 * MS);
	waitaccount_gone(&b, waitaccount_thread(&b, 1, 2, START), START + 10 * MS);
	struct waitaccount_thread *t = waitaccount_thread(&b, 5, 2, START + 20 * MS);
	CHECK_U64(t->pid, 5);
	waitaccount_on(&b, t, START + 20 * MS);
	waitaccount_cut(&b, START + 30 * MS, false);
	take(&b, &g);
	CHECK_U64(b.threads.n, 1);
	CHECK(waitaccount_find(&b, 2) && waitaccount_find(&b, 2)->pid == 5);
	CHECK_U64(g.by_second[0], 20 * MS);
	waitaccount_release(&b);
}
