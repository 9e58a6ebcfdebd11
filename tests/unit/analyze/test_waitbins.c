/* analyze/page/waitbins: how the single waits that were kept spread the sums of a second. */
#include "base/base.h"
#include "analyze/page/waitbins.h"
#include "tap.h"

#include "made.h"
#include "model/tables.h"
#include "model/wait.h"

#define MS 1000000ull

struct input {
	struct profile *p;
	struct waitbins *w;
	task_id task;
	stack_id stack;
};

static struct input input_new(void)
{
	struct input in = {.p = profile_new()};
	in.task = profile_task(in.p, 1, 2, profile_cstr(in.p, "worker"), 1);
	in.stack = made_stack(in.p, "main;fsync");
	return in;
}

/* A wait for the disk from @from_ms, @ms long, the last @queue_ms of it in the run queue. */
static void keep(struct input *in, uint64_t from_ms, uint64_t ms, uint64_t queue_ms)
{
	uint32_t t = tables_add(in->p, TABLE_INTERVALS, 0);
	const int64_t values[INTERVAL_COLUMNS] = {1, (int64_t)(ms * MS), (int64_t)(queue_ms * MS)};
	uint32_t tag = profile_tag(in->p, &(struct tag){.reason = WAIT_FSYNC, .syscall = -1});
	profile_tagged_sample(in->p, t, from_ms * MS, in->stack, in->task, 0, tag, values);
}

/* The bins of the sums of a second; their number is 0 if there is no shape. */
static const struct waitbin *find(struct input *in, enum wait_reason reason, uint64_t second,
				  size_t *ret_n)
{
	if (!in->w) {
		profile_seal(in->p);
		in->w = waitbins_new(in->p);
	}
	const struct waitbins_row row = {.task = in->task,
					 .stack = in->stack,
					 .reason = reason,
					 .start_ns = second * 1000 * MS};
	uint32_t shape = waitbins_shape(in->w, &row);
	*ret_n = 0;
	return shape ? waitbins_of(in->w, shape, ret_n) : NULL;
}

static void release(struct input *in)
{
	waitbins_free(in->w);
	profile_free(in->p);
}

TEST(waitbins_place_waits_in_bins_of_ten_ms)
{
	size_t n;
	struct input in = input_new();
	keep(&in, 1203, 4, 0);
	keep(&in, 1208, 1, 0);
	keep(&in, 1515, 10, 0); /* over the border of two bins */
	const struct waitbin *b = find(&in, WAIT_FSYNC, 1, &n);
	CHECK_U64(n, 3);
	CHECK_U64(b[0].bin, 20);
	CHECK_U64(b[0].ns, 5 * MS);
	CHECK_U64(b[1].bin, 51);
	CHECK_U64(b[1].ns, 5 * MS);
	CHECK_U64(b[2].bin, 52);
	release(&in);
}

TEST(waitbins_divide_a_long_wait_over_its_seconds)
{
	size_t n;
	struct input in = input_new();
	keep(&in, 900, 1200, 0);
	const struct waitbin *b = find(&in, WAIT_FSYNC, 1, &n);
	CHECK_U64(n, 100);
	CHECK_U64(b[99].bin, 99);
	CHECK_U64(b[99].ns, 10 * MS);
	b = find(&in, WAIT_FSYNC, 2, &n);
	CHECK_U64(n, 10);
	CHECK_U64(b[9].bin, 9);
	find(&in, WAIT_FSYNC, 3, &n);
	CHECK_U64(n, 0);
	release(&in);
}

TEST(waitbins_put_bins_in_order)
{
	size_t n;
	struct input in = input_new();
	keep(&in, 1100, 700, 0); /* another thread name, the same place: overlapping intervals */
	keep(&in, 1105, 3, 0);
	const struct waitbin *b = find(&in, WAIT_FSYNC, 1, &n);
	CHECK_U64(n, 70);
	for (size_t i = 0; i < n; i++)
		CHECK_U64(b[i].bin, 10 + i);
	CHECK_U64(b[0].ns, 13 * MS);
	release(&in);
}

TEST(waitbins_divide_a_wait_into_blocked_and_run_queue)
{
	size_t n;
	struct input in = input_new();
	keep(&in, 1203, 33, 5);
	const struct waitbin *b = find(&in, WAIT_RUN_QUEUE, 1, &n);
	CHECK_U64(n, 1);
	CHECK_U64(b[0].bin, 23);
	CHECK_U64(b[0].ns, 5 * MS);
	CHECK(!find(&in, WAIT_LOCK, 1, &n)); /* no such wait was kept */
	release(&in);
}

TEST(waitbins_know_nothing_of_seconds_that_begin_at_other_times)
{
	size_t n;
	struct input in = input_new();
	keep(&in, 1203, 33, 0);
	CHECK(find(&in, WAIT_FSYNC, 1, &n));
	const struct waitbins_row row = {
		.task = in.task, .stack = in.stack, .reason = WAIT_FSYNC, .start_ns = 1001 * MS};
	CHECK_U64(waitbins_shape(in.w, &row), 0);
	release(&in);
}
