/* analyze/page/waitbins: sums of waits divided over their second by the single waits that were kept. */
#include "base/base.h"
#include "analyze/page/waitbins.h"
#include "tap.h"

#include "made.h"
#include "model/tables.h"
#include "model/wait.h"

#define MS 1000000ull

struct input {
	struct profile *p;
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

static size_t split(struct input *in, enum wait_reason reason, uint64_t weight_ms,
		    struct waitbin parts[WAITBINS_MAX])
{
	CLEANUP(arena_release) struct arena a = {0};
	profile_seal(in->p);
	struct waitbins *w = waitbins_new(&a, in->p);
	CHECK(w);
	const struct waitbins_row row = {.task = in->task,
					 .stack = in->stack,
					 .reason = reason,
					 .start_ns = 1000 * MS,
					 .len_ns = 1000 * MS,
					 .weight_ns = weight_ms * MS};
	size_t n = waitbins_split(w, &row, parts);
	uint64_t sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += parts[i].weight_ns;
	CHECK_U64(sum, weight_ms * MS);
	profile_free(in->p);
	return n;
}

TEST(waitbins_place_waits_in_bins_of_ten_ms)
{
	struct waitbin parts[WAITBINS_MAX];
	struct input in = input_new();
	keep(&in, 1203, 4, 0);
	keep(&in, 1515, 10, 0); /* over the border of two bins */
	CHECK_U64(split(&in, WAIT_FSYNC, 14, parts), 3);
	CHECK_U64(parts[0].start_ns, 1200 * MS);
	CHECK_U64(parts[0].len_ns, 10 * MS);
	CHECK_U64(parts[0].weight_ns, 4 * MS);
	CHECK_U64(parts[1].start_ns, 1510 * MS);
	CHECK_U64(parts[1].weight_ns, 5 * MS);
	CHECK_U64(parts[2].start_ns, 1520 * MS);
}

TEST(waitbins_join_the_bins_of_one_long_wait)
{
	struct waitbin parts[WAITBINS_MAX];
	struct input in = input_new();
	keep(&in, 900, 700, 0); /* began in the second before */
	CHECK_U64(split(&in, WAIT_FSYNC, 600, parts), 1);
	CHECK_U64(parts[0].start_ns, 1000 * MS);
	CHECK_U64(parts[0].len_ns, 600 * MS);
}

TEST(waitbins_spread_what_was_not_kept_over_the_second)
{
	struct waitbin parts[WAITBINS_MAX];
	struct input in = input_new();
	keep(&in, 1203, 4, 0);
	CHECK_U64(split(&in, WAIT_FSYNC, 100, parts), 2);
	CHECK_U64(parts[1].start_ns, 1000 * MS);
	CHECK_U64(parts[1].len_ns, 1000 * MS);
	CHECK_U64(parts[1].weight_ns, 96 * MS);
}

TEST(waitbins_keep_a_sum_that_is_smaller_than_the_kept_waits)
{
	struct waitbin parts[WAITBINS_MAX];
	struct input in = input_new();
	keep(&in, 1203, 4, 0);
	keep(&in, 1303, 4, 0);
	CHECK_U64(split(&in, WAIT_FSYNC, 6, parts), 2);
	CHECK_U64(parts[0].weight_ns, 3 * MS);
}

TEST(waitbins_divide_a_wait_into_blocked_and_run_queue)
{
	struct waitbin parts[WAITBINS_MAX];
	struct input in = input_new();
	keep(&in, 1203, 33, 5);
	CHECK_U64(split(&in, WAIT_RUN_QUEUE, 5, parts), 1);
	CHECK_U64(parts[0].start_ns, 1230 * MS);
	struct input other = input_new();
	keep(&other, 1203, 40, 5);
	CHECK_U64(split(&other, WAIT_LOCK, 7, parts), 1); /* no such wait was kept */
	CHECK_U64(parts[0].len_ns, 1000 * MS);
}
