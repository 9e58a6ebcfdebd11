/* Which intervals off the CPU are kept for the recording. */
#include "base/base.h"
#include "capture/wait/keptwaits.h"
#include "tap.h"

#include "base/clock.h"
#include "wait_reason.h"

struct got {
	struct wait_interval v[64];
	uint64_t ran_ns[64];
	size_t n;
};

static int on_kept(void *ctx, const struct wait_interval *i, uint64_t ran_ns, struct err *err)
{
	struct got *g = ctx;
	(void)err;
	CHECK(!g->n || g->v[g->n - 1].on_ns <= i->on_ns);
	if (g->n < ARRAY_LEN(g->v)) {
		g->ran_ns[g->n] = ran_ns;
		g->v[g->n++] = *i;
	}
	return 0;
}

static void emit(struct keptwaits *k, struct got *g)
{
	CLEANUP(err_release) struct err err = {0};
	g->n = 0;
	CHECK(!keptwaits_emit(k, on_kept, g, &err));
}

static bool has(const struct got *g, int32_t tid, uint64_t off_ms)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->v[i].tid == tid && g->v[i].off_ns == off_ms * NS_PER_MS)
			return true;
	return false;
}

/* Times in ms; @by: the waker, 0: none. */
static void add(struct keptwaits *k, int32_t tid, uint64_t off, uint64_t woken, uint64_t on,
		enum wait_reason reason, int32_t by)
{
	struct wait_interval i = {.off_ns = off * NS_PER_MS,
				  .woken_ns = woken * NS_PER_MS,
				  .on_ns = on * NS_PER_MS,
				  .tgid = 1,
				  .tid = tid,
				  .waker_tid = by,
				  .reason = (uint8_t)reason};
	keptwaits_add(k, &i, tid);
}

/* Short waits of a thread that has nothing to do with others, one each ms in [from, to). */
static void fill(struct keptwaits *k, uint64_t from, uint64_t to)
{
	for (uint64_t t = from; t < to; t++)
		add(k, 99, t, t, t + 1, WAIT_RUN_QUEUE, 0);
}

TEST(keptwaits_keeps_everything_while_there_is_room)
{
	struct got g;
	struct keptwaits *k = keptwaits_new(&(struct keptwaits_options){.nr_recent = 4096});
	for (uint64_t t = 0; t < 3000; t++)
		add(k, 1 + (int32_t)(t % 3), t, t, t + 1, WAIT_RUN_QUEUE, 0);
	emit(k, &g);
	CHECK_U64(g.n, ARRAY_LEN(g.v));
	CHECK_U64(g.ran_ns[1], 2);
	struct keptwaits_counts c = keptwaits_counts(k);
	CHECK(c.nr == 3000 && !c.nr_dropped && !c.nr_cut && !c.complete_from_ns);
	keptwaits_free(k);
}

TEST(keptwaits_drops_what_is_old_or_has_no_room)
{
	struct got g;
	struct keptwaits *k = keptwaits_new(
		&(struct keptwaits_options){.nr_recent = 16, .recent_ns = 100 * NS_PER_MS});
	fill(k, 0, 40);
	emit(k, &g);
	CHECK(g.n == 16 && g.v[0].off_ns == 24 * NS_PER_MS);
	CHECK_U64(keptwaits_counts(k).nr_dropped, 24);
	CHECK_U64(keptwaits_counts(k).complete_from_ns, 24 * NS_PER_MS);
	add(k, 1, 130, 130, 131, WAIT_RUN_QUEUE, 0);
	emit(k, &g);
	CHECK(g.n == 11 && g.v[0].off_ns == 30 * NS_PER_MS);
	keptwaits_free(k);
}

/* 1 waits for 2, which waits for 3, which is in fsync and preempted; thread 4 is not involved. */
static void add_chain(struct keptwaits *k)
{
	add(k, 4, 5, 6, 7, WAIT_PIPE, 0);
	add(k, 3, 1, 9, 10, WAIT_POLL, 0); /* ended before */
	add(k, 2, 2, 11, 12, WAIT_POLL, 0);
	add(k, 3, 20, 50, 51, WAIT_FSYNC, 0);
	add(k, 4, 50, 51, 52, WAIT_PIPE, 0);
	add(k, 3, 60, 60, 70, WAIT_RUN_QUEUE, 0);
	add(k, 2, 19, 80, 81, WAIT_SYNC, 3);
	add(k, 3, 83, 84, 85, WAIT_SLEEP, 0); /* bounds the run that woke 2 */
	add(k, 3, 86, 87, 88, WAIT_SLEEP, 0);
	add(k, 1, 15, 90, 91, WAIT_SYNC, 2);
}

static void check_chain(const struct got *g)
{
	CHECK(has(g, 1, 15) && has(g, 2, 19) && has(g, 3, 20) && has(g, 3, 60));
	CHECK(has(g, 3, 83));
	CHECK(!has(g, 3, 1) && !has(g, 2, 2) && !has(g, 4, 5) && !has(g, 4, 50) && !has(g, 3, 86));
}

TEST(keptwaits_keeps_the_chain_of_a_long_wait)
{
	struct got g;
	struct keptwaits *k = keptwaits_new(&(struct keptwaits_options){.nr_recent = 16});
	add_chain(k);
	fill(k, 200, 300);
	emit(k, &g);
	check_chain(&g);
	CHECK(!keptwaits_counts(k).nr_cut);
	keptwaits_free(k);
}

TEST(keptwaits_keeps_the_chain_of_a_slow_span)
{
	struct got g;
	struct keptwaits *k = keptwaits_new(&(struct keptwaits_options){.nr_recent = 32});
	fill(k, 0, 8);
	add(k, 2, 8, 9, 10, WAIT_PIPE, 0);
	add(k, 1, 8, 11, 12, WAIT_PIPE, 2);
	keptwaits_add_span(k, 1, 7 * NS_PER_MS, 13 * NS_PER_MS);
	add(k, 1, 14, 15, 16, WAIT_PIPE, 2); /* after the span: bounds its last run */
	fill(k, 200, 300);
	emit(k, &g);
	CHECK(has(&g, 1, 8) && has(&g, 2, 8) && has(&g, 1, 14));
	CHECK_U64(g.n, 32 + 3);
	keptwaits_free(k);
}

TEST(keptwaits_forgets_long_waits_that_are_idle)
{
	struct got g;
	struct keptwaits *k = keptwaits_new(&(struct keptwaits_options){.nr_recent = 16});
	add(k, 2, 1, 2, 3, WAIT_PIPE, 0);
	add(k, 1, 0, 60, 61, WAIT_POLL, 0);
	add(k, 3, 0, 60, 61, WAIT_SYNC, 0);   /* timed out */
	add(k, 4, 0, 60, 62, WAIT_SYNC, 777); /* by a thread that is not recorded */
	add(k, 5, 0, 60, 63, WAIT_POLL, 2);   /* 2 had let it wait */
	add(k, 6, 0, 60, 64, WAIT_FILE_READ, 0);
	fill(k, 200, 300);
	emit(k, &g);
	CHECK(!has(&g, 1, 0) && !has(&g, 3, 0) && !has(&g, 4, 0));
	CHECK(has(&g, 5, 0) && has(&g, 6, 0) && has(&g, 2, 1));
	keptwaits_free(k);
}

TEST(keptwaits_bounds_chains_and_counts_what_is_cut)
{
	struct got g;
	struct keptwaits *k =
		keptwaits_new(&(struct keptwaits_options){.nr_recent = 16, .nr_chains = 3});
	add_chain(k);
	fill(k, 200, 300);
	emit(k, &g);
	CHECK_U64(g.n, 16 + 3);
	CHECK_U64(keptwaits_counts(k).nr_cut, 2);
	/* Two threads that seem to have woken each other do not make it run for ever. */
	for (uint64_t t = 0; t < 50; t++) {
		add(k, 1, 300 + t, 400 + t, 400 + t, WAIT_SYNC, 2);
		add(k, 2, 300 + t, 400 + t, 400 + t, WAIT_SYNC, 1);
	}
	fill(k, 500, 600);
	keptwaits_free(k);
}
