/* Chains of causes: what a span's time was spent on, over all threads that it waited for. */
#include "base/base.h"
#include "analyze/wait/chain.h"
#include "tap.h"

#include "base/clock.h"

#define START (100 * NS_PER_SEC)

struct sim {
	struct profile *p;
	uint32_t table;
	uint64_t on_ms[100]; /* when a thread was switched in last */
};

static stack_id stack_of(struct profile *p, const char *function)
{
	return profile_stack(p, 0, profile_pseudo_location(p, function));
}

static task_id task_of(struct profile *p, int32_t tid)
{
	return tid ? profile_task(p, 1, tid, profile_cstr(p, "t"), START) : 0;
}

/* An interval, times in ms; the thread ran since its last one, @stolen ms of that were stolen. */
static void add(struct sim *s, int32_t tid, uint64_t off, uint64_t woken, uint64_t on,
		enum wait_reason reason, int32_t waker, uint64_t stolen)
{
	struct profile *p = s->p;
	struct tag tag = {.reason = (uint8_t)reason,
			  .log2_ns = LOG2_NONE,
			  .syscall = -1,
			  .other = task_of(p, waker),
			  .other_stack = waker ? stack_of(p, "wakes") : 0};
	const int64_t values[INTERVAL_COLUMNS] = {
		1, (int64_t)((on - off) * NS_PER_MS), (int64_t)((on - woken) * NS_PER_MS),
		(int64_t)((off - s->on_ms[tid] - stolen) * NS_PER_MS),
		(int64_t)(stolen * NS_PER_MS)};
	s->on_ms[tid] = on;
	profile_tagged_sample(p, s->table, START + off * NS_PER_MS, stack_of(p, wait_key(reason)),
			      task_of(p, tid), 0, profile_tag(p, &tag), values);
}

static struct sim begin(void)
{
	struct sim s = {.p = profile_new()};
	s.table = tables_add(s.p, TABLE_INTERVALS, 0);
	return s;
}

struct want {
	uint64_t from_ms;
	uint64_t to_ms;
	enum chain_kind kind;
	int32_t tid;
	const char *function; /* NULL: none */
};

static void check_part(const struct profile *p, const struct chain_part *got,
		       const struct want *want)
{
	CHECK_U64(got->from_ns, START + want->from_ms * NS_PER_MS);
	CHECK_U64(got->to_ns, START + want->to_ms * NS_PER_MS);
	CHECK_U64(got->kind, want->kind);
	CHECK_U64((uint64_t)got->tid, (uint64_t)want->tid);
	CHECK(!want->function == !got->stack);
	if (!want->function || !got->stack)
		return;
	const struct location *l = &p->locations.p[p->stacks.p[got->stack].loc];
	CHECK_STR(profile_frame_name(p, &p->frames.p[l->first_frame]), want->function);
}

/* Seals and frees the profile. */
static void check(struct sim *s, int32_t tid, uint64_t from, uint64_t to, const struct want *want,
		  size_t nr)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct chain_parts parts = {0};
	profile_seal(s->p);
	struct chains *c = chains_new(&a, s->p);
	CHECK(c != NULL);
	chains_walk(c, tid, START + from * NS_PER_MS, START + to * NS_PER_MS, &parts);
	CHECK_U64(parts.list.n, nr);
	for (size_t i = 0; i < nr && i < parts.list.n; i++)
		check_part(s->p, &parts.list.p[i], &want[i]);
	chain_parts_release(&parts);
	profile_free(s->p);
}

TEST(chain_of_a_thread_alone_is_what_it_did)
{
	struct sim s = begin();
	add(&s, 1, 10, 20, 23, WAIT_FSYNC, 0, 0);
	add(&s, 1, 40, 40, 45, WAIT_RUN_QUEUE, 0, 2);
	const struct want want[] = {
		{5, 10, CHAIN_ON_CPU, 1, "fsync"},      {10, 20, CHAIN_BLOCKED, 1, "fsync"},
		{20, 23, CHAIN_RUN_QUEUE, 1, "fsync"},  {23, 25, CHAIN_STOLEN, 1, "run_queue"},
		{25, 40, CHAIN_ON_CPU, 1, "run_queue"}, {40, 45, CHAIN_RUN_QUEUE, 1, "run_queue"},
		{45, 50, CHAIN_ON_CPU, 1, NULL},
	};
	check(&s, 1, 5, 50, want, ARRAY_LEN(want));
}

TEST(chain_follows_wakers_and_clips_their_time_to_the_wait)
{
	struct sim s = begin();
	/* 1 waits for 2, which waits for 3, which is in fsync; 3 has an interval after that. */
	add(&s, 2, 2, 11, 12, WAIT_POLL, 1, 0);
	add(&s, 3, 20, 50, 51, WAIT_FSYNC, 0, 0);
	add(&s, 2, 15, 60, 64, WAIT_SYNC, 3, 0);
	add(&s, 1, 10, 80, 81, WAIT_SYNC, 2, 0);
	add(&s, 3, 90, 95, 96, WAIT_SLEEP, 0, 0);
	const struct want want[] = {
		{12, 15, CHAIN_ON_CPU, 2, "sync"},   {15, 20, CHAIN_ON_CPU, 3, "fsync"},
		{20, 50, CHAIN_BLOCKED, 3, "fsync"}, {50, 51, CHAIN_RUN_QUEUE, 3, "fsync"},
		{51, 60, CHAIN_ON_CPU, 3, "wakes"},  {60, 64, CHAIN_RUN_QUEUE, 2, "sync"},
		{64, 80, CHAIN_ON_CPU, 2, "wakes"},  {80, 81, CHAIN_RUN_QUEUE, 1, "sync"},
		{81, 85, CHAIN_ON_CPU, 1, NULL},
	};
	check(&s, 1, 12, 85, want, ARRAY_LEN(want));
}

TEST(chain_does_not_follow_threads_that_are_not_recorded)
{
	struct sim s = begin();
	add(&s, 1, 10, 20, 20, WAIT_PIPE, 77, 0);
	const struct want want[] = {{9, 10, CHAIN_ON_CPU, 1, "pipe"},
				    {10, 20, CHAIN_BLOCKED, 1, "pipe"}};
	check(&s, 1, 9, 20, want, ARRAY_LEN(want));
}

TEST(chain_says_where_intervals_are_missing)
{
	struct sim s = begin();
	add(&s, 1, 10, 20, 20, WAIT_PIPE, 0, 0);
	s.on_ms[1] = 35; /* another interval, from 25 to 35, is not in the recording */
	add(&s, 1, 40, 41, 41, WAIT_PIPE, 0, 0);
	const struct want want[] = {{15, 20, CHAIN_BLOCKED, 1, "pipe"},
				    {20, 35, CHAIN_UNKNOWN, 1, NULL},
				    {35, 40, CHAIN_ON_CPU, 1, NULL}};
	check(&s, 1, 15, 40, want, ARRAY_LEN(want));
}

TEST(chain_ends_where_two_threads_seem_to_wait_for_each_other)
{
	struct sim s = begin();
	add(&s, 1, 10, 50, 50, WAIT_SYNC, 2, 0);
	add(&s, 2, 10, 50, 50, WAIT_SYNC, 1, 0);
	const struct want want[] = {{10, 50, CHAIN_BLOCKED, 1, "sync"}};
	check(&s, 1, 10, 50, want, ARRAY_LEN(want));
}
