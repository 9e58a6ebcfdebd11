/* analyze/deadlock: threads that wait for each other's locks, and others that only look so. */
#include "base/base.h"
#include "tap.h"

#include "analyze/wait/waittables.h"
#include "made.h"
#include "madewaits.h"

#define MUTEX "main app;transfer app;pthread_mutex_lock libc.so.6"

/* @waiter waits for a lock that @holder has, who waits for what @end has if that is not 0. */
struct want {
	int32_t waiter;
	int32_t holder;
	int32_t end;
	int64_t ms;
	unsigned evidence;
	const char *stack;
	bool is_one_lock; /* else each holder has one of its own */
};

static const char *name_of(int32_t tid)
{
	static const char *const names[] = {"-",     "main", "alice", "bob",
					    "carol", "dave", "erin",  "frank"};
	return names[tid];
}

static void add(struct profile *p, const struct want *w)
{
	static const char *const lock_of[] = {"lock 0x0", "lock 0x1", "lock 0x2", "lock 0x3",
					      "lock 0x4", "lock 0x5", "lock 0x6", "lock 0x7"};
	struct madewait row = {.comm = name_of(w->waiter),
			       .tid = w->waiter,
			       .reason = WAIT_SYNC,
			       .evidence = w->evidence,
			       .object = lock_of[w->is_one_lock ? 0 : w->holder],
			       .stack = w->stack,
			       .nr = 1,
			       .ms = w->ms};
	int32_t end = w->end ? w->end : w->holder;
	madewait(p, &row);
	row.table = "blame";
	row.other = name_of(end);
	row.other_tid = end;
	row.other_stack = w->stack;
	row.detail = w->end ? "sync/2" : "sync/1";
	row.direct = w->end ? name_of(w->holder) : NULL;
	row.direct_tid = w->end ? w->holder : 0;
	row.direct_stack = w->end ? w->stack : NULL;
	madewait(p, &row);
}

/* Checks the first statement on the waits: it begins with @want, or is of no deadlock. */
static void check_first(const struct want *list, size_t n, const char *want)
{
	CLEANUP(profile_free_p) struct profile *p = madewaits_new(2);
	CLEANUP(report_free_p) struct report *r = report_new();
	for (size_t i = 0; i < n; i++)
		add(p, &list[i]);
	profile_seal(p);
	CHECK(!waits_page(r, p, &(struct select_spec){0}, &(struct view_limits){0}, NULL));
	CHECK(r->findings.n > 0);
	if (want)
		CHECK_STR(r->findings.p[0], want);
	for (size_t i = 0; !want && i < r->findings.n; i++)
		CHECK(!strstr(r->findings.p[i], "deadlock"));
}

#define OPEN EVIDENCE_OPEN

TEST(deadlock_of_two_threads_is_the_first_statement)
{
	static const struct want two[] = {{2, 3, 0, 2000, OPEN, MUTEX},
					  {3, 2, 0, 2000, OPEN, MUTEX}};
	check_first(
		two, ARRAY_LEN(two),
		"deadlock: alice (tid 2) waits in transfer for a lock that bob (tid 3) holds, bob (tid 3) "
		"in transfer for one that alice (tid 2) holds, for the whole capture");
}

TEST(deadlock_is_not_said_of_one_lock_or_of_a_moment)
{
	static const struct want one[] = {{2, 3, 0, 2000, OPEN, MUTEX, true},
					  {3, 2, 0, 2000, OPEN, MUTEX, true}};
	static const struct want moment[] = {{2, 3, 0, 2000, OPEN, MUTEX, false},
					     {3, 2, 0, 20, OPEN, MUTEX, false}};
	check_first(one, ARRAY_LEN(one), NULL);
	check_first(moment, ARRAY_LEN(moment), NULL);
}

TEST(deadlock_of_three_threads_has_others_behind_it)
{
	static const struct want three[] = {
		{2, 3, 0, 2000, OPEN, MUTEX}, {3, 4, 2, 1900, OPEN, MUTEX},
		{4, 2, 0, 1800, OPEN, MUTEX}, {5, 3, 2, 1700, OPEN, MUTEX},
		{6, 5, 2, 1600, OPEN, MUTEX}, {7, 1, 0, 1900, OPEN, MUTEX}};
	check_first(
		three, ARRAY_LEN(three),
		"deadlock: alice (tid 2) waits in transfer for a lock that bob (tid 3) holds, bob (tid 3) "
		"in transfer for one that carol (tid 4) holds, carol (tid 4) in transfer for one that "
		"alice (tid 2) holds, for the last 1.80 s of the capture; 2 further threads wait for "
		"locks that such threads hold");
}

TEST(deadlock_is_not_said_without_a_cycle_of_open_waits_for_locks)
{
	static const char cond[] = "main app;pop app;pthread_cond_wait libc.so.6";
	static const struct want chain[] = {{2, 3, 4, 2000, OPEN, MUTEX},
					    {3, 4, 0, 2000, OPEN, MUTEX}};
	static const struct want ended[] = {{2, 3, 0, 2000, OPEN, MUTEX},
					    {3, 2, 0, 2000, 0, MUTEX}};
	static const struct want parked[] = {{2, 3, 0, 2000, OPEN, MUTEX},
					     {3, 2, 0, 2000, OPEN, cond}};
	static const struct want unknown[] = {{2, 3, 0, 2000, OPEN | EVIDENCE_LOCK_WORD,
					       "main app;f app"},
					      {3, 2, 0, 2000, OPEN, MUTEX}};
	check_first(chain, ARRAY_LEN(chain), NULL);
	check_first(ended, ARRAY_LEN(ended), NULL);
	check_first(parked, ARRAY_LEN(parked), NULL);
	check_first(unknown, ARRAY_LEN(unknown), NULL);
}
