/* host/limits: the calling thread before others while somebody waits for it, and after. */
#include "base/base.h"
#include "tap.h"

#include <sched.h>
#include <sys/prctl.h>

#include "host/limits.h"

TEST(urgency_ends_as_it_began_also_nested_and_in_any_order)
{
	struct host_urgency a;
	struct host_urgency b;
	int slack = prctl(PR_GET_TIMERSLACK);
	CHECK(sched_getscheduler(0) == SCHED_OTHER);
	host_urgent_begin(&a);
	bool is_raised = sched_getscheduler(0) == SCHED_FIFO;
	CHECK(is_raised == a.is_raised);
	CHECK(prctl(PR_GET_TIMERSLACK) <= 1); /* none of a thread in real time */
	host_urgent_begin(&b);
	CHECK(!b.is_raised && !b.has_slack);
	host_urgent_end(&a);
	host_urgent_end(&b);
	host_urgent_end(&b);
	CHECK(sched_getscheduler(0) == SCHED_OTHER);
	CHECK(prctl(PR_GET_TIMERSLACK) == slack);
}

TEST(urgency_is_refused_without_a_word)
{
	struct host_urgency u;
	/* Of a thread that has another policy already nothing is changed. */
	CHECK(!sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0}));
	host_urgent_begin(&u);
	CHECK(!u.is_raised && sched_getscheduler(0) == SCHED_BATCH);
	host_urgent_end(&u);
	CHECK(sched_getscheduler(0) == SCHED_BATCH);
}
