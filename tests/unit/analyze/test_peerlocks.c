/* analyze/peerlocks: locks that are known by who ends the waits, and pools that only look so. */
#include "base/base.h"
#include "tap.h"

#include <sys/syscall.h>

#include "analyze/wait/reason.h"
#include "madewaits.h"

#define SERVE "start_thread libc.so.6;serve db"

/* Two threads, each of which ends the waits of the other. @by_others: waits that a third one ends. */
struct want {
	const char *request; /* where they wait for requests; NULL: nowhere */
	const char *wait;
	const char *end;
	int64_t nr_by_others;
	enum wait_reason want;
};

static void add_ended(struct profile *p, const struct want *w, int32_t tid, int32_t by, int64_t nr)
{
	madewait(p, &(struct madewait){.comm = "w",
				       .tid = tid,
				       .reason = WAIT_SYNC,
				       .stack = w->wait,
				       .other = "w",
				       .other_tid = by,
				       .other_stack = w->end,
				       .nr = nr,
				       .ms = 5 * nr});
}

static void check(const char *what, const struct want *w)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(profile_free_p) struct profile *p = madewaits_new(2);
	for (int32_t tid = 2; tid <= 3; tid++) {
		add_ended(p, w, tid, 5 - tid, 20);
		if (w->nr_by_others)
			add_ended(p, w, tid, 9, w->nr_by_others);
		if (w->request)
			madewait(p, &(struct madewait){.comm = "w",
						       .tid = tid,
						       .reason = WAIT_POLL,
						       .stack = w->request,
						       .nr = 20,
						       .ms = 100});
	}
	profile_seal(p);
	struct reasons *rs = reasons_new(&a, p);
	const struct table *t = tables_find_rows(p, TABLE_OFF_CPU);
	for (size_t i = 0; i < t->n; i++) {
		enum wait_reason r = reason_of(rs, t->stack[i], &p->tags.p[t->tag[i]]);
		if (p->tags.p[t->tag[i]].reason == WAIT_SYNC && r != w->want)
			tap_fail(__FILE__, __LINE__, "%s: %s, expected %s", what, wait_key(r),
				 wait_key(w->want));
	}
}

#define COND  "pthread_cond_wait libc.so.6"
#define NET   SERVE ";poll libc.so.6"
#define ROW   SERVE ";handle db;update db;db!fn_10 db;db!fn_20 db;" COND
#define AWAKE SERVE ";handle db;commit db;db!fn_30 db;pthread_cond_signal libc.so.6"

TEST(peerlocks_requests_that_wait_for_each_other_wait_for_a_lock)
{
	check("row lock", &(struct want){NET, ROW, AWAKE, 0, WAIT_LOCK});
	check("jobs of a channel", &(struct want){SERVE ";std::sync::mpsc::Receiver::recv app", ROW,
						  AWAKE, 0, WAIT_LOCK});
	/* A thread that looks for deadlocks ends some of the waits. */
	check("ended by others now and then", &(struct want){NET, ROW, AWAKE, 2, WAIT_LOCK});
}

TEST(peerlocks_threads_that_wait_for_work_are_idle)
{
	/* A worker that takes a job wakes the next one; a producer gives the jobs. */
	check("cascade",
	      &(struct want){SERVE ";handle db;poll libc.so.6", SERVE ";take db;" COND,
			     SERVE ";take db;pthread_cond_signal libc.so.6", 20, WAIT_PARK});
	/* Jobs give other jobs: the threads share the loop. */
	check("pool", &(struct want){NET, SERVE ";take db;" COND,
				     SERVE ";handle db;submit db;pthread_cond_signal libc.so.6", 0,
				     WAIT_PARK});
	/* One waits for events, the others for their turn to do so. */
	check("leader and followers",
	      &(struct want){SERVE ";next db;poll libc.so.6", SERVE ";next db;" COND,
			     SERVE ";next db;wake db;pthread_cond_signal libc.so.6", 0, WAIT_PARK});
	check("nothing else to wait for", &(struct want){NULL, ROW, AWAKE, 0, WAIT_PARK});
	check("ended by others", &(struct want){NET, ROW, AWAKE, 20, WAIT_PARK});
}
