/* analyze/diagnose: what the sentences on the page of waits claim, and in which order. */
#include "base/base.h"
#include "tap.h"

#include <sys/syscall.h>

#include "analyze/wait/reason.h"
#include "analyze/wait/waittables.h"
#include "madewaits.h"
#include "model/facts.h"
#include "made.h"

static struct report *page_of(struct profile *p)
{
	struct report *r = report_new();
	profile_seal(p);
	CHECK(!waits_page(r, p, &(struct select_spec){0}, &(struct view_limits){0}, NULL));
	return r;
}

/* Returns the place of the first note with this text; the number of notes if there is none. */
static size_t note_at(const struct report *r, const char *part)
{
	size_t i = 0;
	while (i < r->notes.n && !strstr(r->notes.p[i], part))
		i++;
	return i;
}

static bool has_note(const struct report *r, const char *part)
{
	return note_at(r, part) < r->notes.n;
}

/* Whether a row of the table has this text in its first column of texts. */
static bool has_row(const struct report *r, const char *table, const char *text)
{
	vec_foreach(t, &r->tables)
		for (size_t i = 0; !strcmp(t->key, table) && i < t->nr_rows * t->nr_columns; i++)
			if (t->columns[i % t->nr_columns].kind == CELL_TEXT &&
			    !strcmp(t->cells[i].text, text))
				return true;
	return false;
}

#define MUTEX "main app;look_up app;pthread_mutex_lock libc.so.6"
#define SEM   "main app;await app;sem_wait libc.so.6"
#define COND  "main app;put app;pthread_cond_wait libc.so.6"

TEST(findings_come_largest_share_first)
{
	CLEANUP(profile_free_p) struct profile *p = madewaits_new(4);
	struct madewait rows[] = {
		{.comm = "a",
		 .tid = 2,
		 .reason = WAIT_RUN_QUEUE,
		 .detail = "woken",
		 .stack = MUTEX,
		 .nr = 500,
		 .ms = 900},
		{.comm = "a",
		 .tid = 2,
		 .reason = WAIT_FSYNC,
		 .stack = "main app;commit app",
		 .nr = 500,
		 .ms = 2100},
		{.comm = "a",
		 .tid = 2,
		 .reason = WAIT_FILE_READ,
		 .stack = "main app;load app",
		 .nr = 500,
		 .ms = 1000},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		madewait(p, &rows[i]);
	CLEANUP(report_free_p) struct report *r = page_of(p);
	CHECK(note_at(r, "reach the disk (fsync); most in commit") < note_at(r, "file reads"));
	CHECK(note_at(r, "file reads") < note_at(r, "CPU shortage: 22 %"));
	CHECK(has_note(r, "CPU shortage"));
}

/* 100 ms of 4 s of an idle thread: its waits for a CPU are no shortage that anybody feels. */
TEST(findings_of_cpu_time_come_behind_longer_waits)
{
	struct madewait rows[] = {{.comm = "a",
				   .tid = 2,
				   .reason = WAIT_FSYNC,
				   .stack = "main app;commit app",
				   .nr = 500,
				   .ms = 2100},
				  {.comm = "a",
				   .tid = 2,
				   .reason = WAIT_FILE_READ,
				   .stack = "main app;load app",
				   .nr = 500,
				   .ms = 900}};
	for (unsigned cpu_ms = 1000; cpu_ms <= 3000; cpu_ms += 2000) {
		CLEANUP(profile_free_p) struct profile *p = madewaits_new(4);
		for (size_t i = 0; i < ARRAY_LEN(rows); i++)
			madewait(p, &rows[i]);
		madewait(p, &(struct madewait){.comm = "a",
					       .tid = 2,
					       .reason = WAIT_ON_CPU,
					       .nr = 1000,
					       .ms = cpu_ms});
		CLEANUP(report_free_p) struct report *r = report_new();
		profile_seal(p);
		report_finding(r, "hottest path");
		report_finding(r, "kernel"); /* of a quarter of the CPU time */
		report_rank(r, 25);
		CHECK(!waits_page(r, p, &(struct select_spec){0}, &(struct view_limits){0}, NULL));
		CHECK(r->findings.n >= 4);
		CHECK(!!strstr(r->findings.p[cpu_ms == 1000 ? 1 : 0], "hottest path"));
		CHECK(!!strstr(r->findings.p[cpu_ms == 1000 ? 0 : 1], "fsync"));
		CHECK(!!strstr(r->findings.p[2], "file reads"));
		CHECK_STR(r->findings.p[3], "kernel");
	}
}

TEST(findings_call_little_waiting_for_a_cpu_no_shortage)
{
	CLEANUP(profile_free_p) struct profile *p = madewaits_new(4);
	struct madewait rows[] = {
		{.comm = "a",
		 .tid = 2,
		 .reason = WAIT_RUN_QUEUE,
		 .detail = "woken",
		 .stack = "main app;tick app",
		 .nr = 500,
		 .ms = 100},
		{.comm = "a",
		 .tid = 2,
		 .reason = WAIT_POLL,
		 .stack = "main app;tick app",
		 .nr = 500,
		 .ms = 900},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		madewait(p, &rows[i]);
	CLEANUP(report_free_p) struct report *r = page_of(p);
	CHECK(!has_note(r, "CPU shortage"));
}

TEST(findings_name_the_quota_that_holds_threads_back)
{
	CLEANUP(profile_free_p) struct profile *p = madewaits_new(1);
	madewait(p, &(struct madewait){.comm = "a",
				       .tid = 2,
				       .reason = WAIT_RUN_QUEUE,
				       .detail = "preempted",
				       .stack = "main app;f app",
				       .nr = 10,
				       .ms = 800});
	profile_fact(p, FACT_THROTTLED_NS, "700000000");
	CLEANUP(report_free_p) struct report *r = page_of(p);
	CHECK(has_note(r, "CPU quota: 100 % of non-idle thread time was spent runnable"));
	CHECK(has_note(r, "quota of its cgroup held back its threads for 700 ms"));
}

/* Nobody can see whether put() waits for work, or for a place in a queue. */
TEST(findings_name_the_place_of_idle_waits_and_what_else_they_may_be)
{
	CLEANUP(profile_free_p) struct profile *p = madewaits_new(1);
	madewait(p, &(struct madewait){.comm = "a",
				       .tid = 2,
				       .reason = WAIT_SYNC,
				       .stack = COND,
				       .nr = 10,
				       .ms = 990});
	CLEANUP(report_free_p) struct report *r = page_of(p);
	CHECK(has_note(r, "mostly idle, unless it waits there for an answer or for another thread: "
			  "100 % of thread time was spent in park, poll, sleep or waits for "
			  "children, most in put (park)"));
}

/*
 * On a busy machine, idle threads wait for a CPU at each wake-up; a thread that never gets one is not
 * idle. Waits for a CPU of 1 % of thread time are no shortage.
 */
TEST(findings_call_idle_threads_idle_also_where_cpus_are_short)
{
	for (int i = 0; i < 2; i++) {
		CLEANUP(profile_free_p) struct profile *p = madewaits_new(1);
		struct madewait w = {.comm = "a", .tid = 2, .stack = "main app;tick app"};
		w.reason = WAIT_POLL;
		w.nr = 200;
		w.ms = i ? 10 : 850;
		madewait(p, &w);
		w.reason = WAIT_RUN_QUEUE;
		w.detail = "woken";
		w.ms = 1000 - w.ms;
		madewait(p, &w);
		for (w.tid = 3; w.tid < 13; w.tid++) {
			w.reason = WAIT_POLL;
			w.detail = NULL;
			w.ms = 1000;
			madewait(p, &w);
		}
		CLEANUP(report_free_p) struct report *r = page_of(p);
		CHECK(has_note(r, "mostly idle") == !i);
		CHECK(has_note(r, "CPU shortage: 100 % of non-idle thread time") == !!i);
	}
}

/* Where the root of a stack is missing, the sentence names the innermost known function. */
TEST(findings_name_no_function_that_is_none)
{
	CLEANUP(profile_free_p) struct profile *p = madewaits_new(1);
	madewait(p, &(struct madewait){.comm = "a",
				       .tid = 2,
				       .reason = WAIT_SYNC,
				       .stack = "[truncated];pthread_mutex_lock libc.so.6;"
						"__lll_lock_wait libc.so.6",
				       .object = "lock 0x10",
				       .nr = 100,
				       .ms = 900});
	CLEANUP(report_free_p) struct report *r = page_of(p);
	CHECK(has_note(r, "for one lock, waiters in pthread_mutex_lock"));
}

/* Python's: each waiter sleeps on a word of its own, which another waiter of the same function posts. */
TEST(findings_call_permits_by_words_of_their_own_permits)
{
	CLEANUP(profile_free_p) struct profile *p = madewaits_new(1);
	static const char *const words[] = {"lock 0x10", "lock 0x20", "lock 0x30"};
	for (int32_t i = 0; i < 3; i++)
		madewait(p, &(struct madewait){.comm = "a",
					       .tid = 2 + i,
					       .reason = WAIT_SYNC,
					       .stack = SEM,
					       .object = words[i],
					       .other = "a",
					       .other_tid = 2 + (i + 1) % 3,
					       .nr = 100,
					       .ms = 900});
	CLEANUP(report_free_p) struct report *r = page_of(p);
	CHECK(has_note(r, "items of a pool (permits); most in await"));
	CHECK(!has_note(r, "posted only by threads"));
}

/* Two threads have all permits and never wait. */
TEST(findings_call_permits_that_are_posted_by_the_function_that_waits_permits)
{
	CLEANUP(profile_free_p) struct profile *p = madewaits_new(1);
	madewait(p, &(struct madewait){.comm = "a",
				       .tid = 2,
				       .reason = WAIT_SYNC,
				       .stack = SEM,
				       .object = "lock 0x10",
				       .other = "a",
				       .other_tid = 3,
				       .other_stack =
					       "main app;await app;release app;sem_post libc.so.6",
				       .nr = 100,
				       .ms = 900});
	CLEANUP(report_free_p) struct report *r = page_of(p);
	CHECK(has_note(r, "items of a pool (permits); most in await"));
	CHECK(!has_note(r, "posted only by threads"));
}

TEST(findings_name_the_share_of_all_futex_waits_that_is_unclear)
{
	CLEANUP(profile_free_p) struct profile *p = madewaits_new(4);
	struct madewait w = {.comm = "a",
			     .tid = 2,
			     .reason = WAIT_SYNC,
			     .stack = SEM,
			     .object = "lock 0x10",
			     .nr = 100,
			     .ms = 3000};
	madewait(p, &w);
	w.stack = "main app;my_lock app";
	w.ms = 1000;
	madewait(p, &w);
	CLEANUP(report_free_p) struct report *r = page_of(p);
	CHECK(has_note(r, "25 % of futex wait time may be lock waits or parking"));
}

/* All wait for one thread that answers them, which blame of idle waits knows. */
TEST(findings_of_an_idle_program_name_whom_it_waits_for)
{
	CLEANUP(profile_free_p) struct profile *p = madewaits_new(1);
	for (int32_t i = 0; i < 30; i++) {
		struct madewait w = {.comm = "handler",
				     .tid = 10 + i,
				     .reason = WAIT_SYNC,
				     .stack = COND,
				     .other = "executor",
				     .other_tid = 3,
				     .other_stack = "main app;call_remote app;usleep libc.so.6",
				     .nr = 100,
				     .ms = 993};
		madewait(p, &w);
		w.table = "blame";
		w.detail = "sleep/1";
		madewait(p, &w);
		madewait(p, &(struct madewait){.comm = "handler",
					       .tid = 10 + i,
					       .reason = WAIT_RUN_QUEUE,
					       .detail = "woken",
					       .stack = COND,
					       .nr = 100,
					       .ms = 7});
	}
	CLEANUP(report_free_p) struct report *r = page_of(p);
	CHECK(has_note(r, "mostly idle, unless"));
	CHECK(has_note(
		r,
		"; threads of the recording ended 100 % of that, the largest part (100 %) executor in "
		"call_remote (sleep): assay report --blame --idle"));
	CHECK(!has_note(r, "record under load"));
	CHECK(!has_note(r, "CPU shortage")); /* 210 ms of 1 s, 0.7 % of thread time */
}

/* A futex of a function that nobody knows may be a lock. */
TEST(findings_say_that_a_futex_may_be_a_lock)
{
	CLEANUP(profile_free_p) struct profile *p = madewaits_new(1);
	struct madewait w = {.comm = "a",
			     .tid = 2,
			     .reason = WAIT_SYNC,
			     .stack = "main app;my_lock app",
			     .other = "b",
			     .other_tid = 3,
			     .other_stack = "main app;my_unlock app",
			     .nr = 100,
			     .ms = 900};
	madewait(p, &w);
	w.table = "blame";
	w.detail = "sleep";
	madewait(p, &w);
	CLEANUP(report_free_p) struct report *r = page_of(p);
	CHECK(has_note(r, "100 % of non-idle thread time was spent waiting on futexes, for a lock "
			  "or for work: no function that is known to wait for either is on the "
			  "stacks; most in my_lock"));
	CHECK(has_note(r, "waiting for other threads: 100 %"));
	CHECK(!has_note(r, "not for locks"));
}

/* A hundred idle threads do not make the one idle that waits for the disk all the time. */
TEST(findings_do_not_call_a_program_idle_whose_one_thread_is_at_work)
{
	CLEANUP(profile_free_p) struct profile *p = madewaits_new(1);
	for (int32_t i = 0; i < 100; i++)
		madewait(p, &(struct madewait){.comm = "pool",
					       .tid = 10 + i,
					       .reason = WAIT_SYNC,
					       .stack = COND,
					       .nr = 1,
					       .ms = 1000});
	madewait(p, &(struct madewait){.comm = "main",
				       .tid = 2,
				       .reason = WAIT_FSYNC,
				       .stack = "main app;commit app",
				       .nr = 100,
				       .ms = 1000});
	CLEANUP(report_free_p) struct report *r = page_of(p);
	CHECK(!has_note(r, "mostly idle"));
	CHECK(has_note(r, "100 % of non-idle thread time was spent waiting for data to reach"));
}

static struct profile *semaphore(int32_t poster)
{
	struct profile *p = madewaits_new(1);
	for (int32_t i = 0; i < 2; i++)
		madewait(p, &(struct madewait){.comm = "worker",
					       .tid = 2 + i,
					       .reason = WAIT_SYNC,
					       .stack = SEM,
					       .object = "lock 0x1000",
					       .other = poster < 4 ? "worker" : "boss",
					       .other_tid = poster < 4 ? 3 - i : poster,
					       .nr = 100,
					       .ms = 500});
	return p;
}

TEST(findings_tell_permits_from_semaphores_that_pass_on_work)
{
	CLEANUP(profile_free_p) struct profile *pool = semaphore(2);
	CLEANUP(report_free_p) struct report *r = page_of(pool);
	CHECK(has_note(r, "items of a pool (permits); most in await"));
	CLEANUP(profile_free_p) struct profile *queue = semaphore(9);
	CLEANUP(report_free_p) struct report *q = page_of(queue);
	CHECK(has_note(
		q,
		"posted only by threads which do not wait for them: as for work or a result; most in "
		"await"));
	CHECK(!has_note(q, "(permits)"));
}

static enum wait_reason reason_in(enum wait_reason raw, int syscall)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	stack_id s = made_stack(p, "main;f");
	profile_seal(p);
	return reason_of(reasons_new(&a, p), s,
			 &(struct tag){.reason = (uint8_t)raw, .syscall = (int16_t)syscall});
}

TEST(reason_of_writes_to_full_pipes_and_sockets_is_backpressure)
{
	CHECK(reason_in(WAIT_PIPE, SYS_write) == WAIT_BACKPRESSURE);
	CHECK(reason_in(WAIT_NET, SYS_sendto) == WAIT_BACKPRESSURE);
	CHECK(reason_in(WAIT_PIPE, SYS_read) == WAIT_PIPE);
	CHECK(reason_in(WAIT_NET, SYS_recvfrom) == WAIT_NET);
	CHECK(reason_in(WAIT_FILE_WRITE, SYS_write) == WAIT_FILE_WRITE);
	CHECK(reason_in(WAIT_NET, -1) == WAIT_NET);
}

/* Waits for one lock. The row of who is blamed for them has the table "blame". */
static struct madewait lock_wait(const char *comm, const char *stack)
{
	return (struct madewait){.comm = comm,
				 .tid = 2,
				 .stack = stack,
				 .reason = WAIT_SYNC,
				 .object = "lock 0x1000",
				 .nr = 10,
				 .ms = 600};
}

#define MUTEX_RELEASED "main app;look_up app;pthread_mutex_unlock libc.so.6"

/* In a queue of waiters each is woken by the one before it; who held the lock is another thread. */
TEST(findings_name_who_held_a_lock_not_who_released_it_last)
{
	CLEANUP(profile_free_p) struct profile *p = madewaits_new(1);
	struct madewait w = lock_wait("waiter", MUTEX);
	w.other = "waiter";
	w.other_tid = 3;
	w.other_stack = MUTEX_RELEASED;
	madewait(p, &w);
	w.table = "blame";
	w.other = "holder";
	w.other_tid = 4;
	w.other_stack = "main app;update app;usleep libc.so.6";
	w.detail = "sleep/1";
	w.ms = 594;
	madewait(p, &w);
	w.other = "waiter";
	w.other_tid = 3;
	w.ms = 6;
	madewait(p, &w);
	madewait(p,
		 &(struct madewait){.comm = "waiter", .tid = 2, .reason = WAIT_STOLEN, .ms = 20});
	CLEANUP(report_free_p) struct report *r = page_of(p);
	CHECK(!has_row(r, "waiting_functions", "stolen"));
	CHECK(has_note(
		r,
		"for a lock in look_up while its holder holder slept in main > update (sleep: 100 %"));
	CHECK(has_row(r, "locks", "holder (99 %)"));
}

/* "web" holds the lock and waits for an answer of "db", which never takes it. */
TEST(findings_name_who_holds_a_lock_not_whom_the_holder_waits_for)
{
	CLEANUP(profile_free_p) struct profile *p = madewaits_new(1);
	struct madewait w = lock_wait("web", MUTEX);
	w.other = "web";
	w.other_tid = 3;
	w.other_stack = MUTEX_RELEASED;
	madewait(p, &w);
	w.table = "blame";
	w.detail = "on_cpu/1";
	w.ms = 12;
	madewait(p, &w);
	w.other = "db";
	w.other_tid = 4;
	w.other_stack = "serve app;usleep libc.so.6";
	w.detail = "sleep/2";
	w.direct = "web";
	w.direct_tid = 3;
	w.direct_stack = "main app;look_up app;fetch app;read libc.so.6";
	w.ms = 588;
	madewait(p, &w);
	CLEANUP(report_free_p) struct report *r = page_of(p);
	CHECK(has_note(
		r,
		"for a lock in look_up while db, for which its holder waited in look_up > fetch, "
		"slept in serve (sleep: 98 %"));
	CHECK(has_row(r, "locks", "web"));
	CHECK(!has_row(r, "locks", "db"));
}

/*
 * A recording before format 1.4 has only the end of the chain, which is not called the holder; of a lock
 * whose waiters park, a chain is the queue of its waiters, and the end is its holder.
 */
TEST(findings_call_the_end_of_a_chain_no_holder_unless_it_is_a_queue)
{
	static const char parked[] =
		"main app;app::get app;parking_lot::raw_mutex::RawMutex::lock_slow app;"
		"parking_lot_core::parking_lot::park app";
	for (int i = 0; i < 2; i++) {
		CLEANUP(profile_free_p) struct profile *p = madewaits_new(1);
		struct madewait w = lock_wait("web", i ? parked : MUTEX);
		madewait(p, &w);
		w.table = "blame";
		w.other = "db";
		w.other_tid = 4;
		w.other_stack = "serve app;usleep libc.so.6";
		w.detail = "sleep/2";
		w.direct = i ? "web" : NULL;
		w.direct_tid = 3;
		w.direct_stack = i ? parked : NULL;
		madewait(p, &w);
		CLEANUP(report_free_p) struct report *r = page_of(p);
		CHECK(has_note(r, i ? "while its holder db slept in serve"
				    : "while db, for which its holder waited, slept in serve"));
		CHECK(has_row(r, "locks", "db") == !!i);
	}
}

/* An owner that computes does so where the wait does not show it: its row has no stack. */
TEST(findings_name_who_keeps_a_lock_for_the_whole_capture)
{
	CLEANUP(profile_free_p) struct profile *p = madewaits_new(1);
	struct madewait w = lock_wait("waiter", MUTEX);
	w.evidence = EVIDENCE_OPEN;
	w.nr = 1;
	w.ms = 900;
	madewait(p, &w);
	w.table = "blame";
	w.other = "keeper";
	w.other_tid = 4;
	w.detail = "on_cpu/1";
	w.ms = 800;
	madewait(p, &w);
	w.other_stack = "main app;rebuild app";
	w.detail = "run_queue/1";
	w.ms = 100;
	madewait(p, &w);
	CLEANUP(report_free_p) struct report *r = page_of(p);
	CHECK(has_note(r, "held longest by keeper in rebuild; meanwhile the lock holder was doing: "
			  "on CPU 89 %, run queue 11 %; not released during the capture"));
}

/* Its writer works, or it sleeps: then what the reader waits for, work or an answer, is not known. */
TEST(findings_of_pipes_come_last_if_their_writers_are_idle)
{
	for (int is_worked = 0; is_worked < 2; is_worked++) {
		CLEANUP(profile_free_p) struct profile *p = madewaits_new(2);
		struct madewait w = {.comm = "reader",
				     .tid = 2,
				     .reason = WAIT_PIPE,
				     .stack = "main app;take_job app;read libc.so.6",
				     .nr = 100,
				     .ms = 1500};
		madewait(p, &w);
		w.table = "blame";
		w.other = "writer";
		w.other_tid = 3;
		w.other_stack = "main app;submit app;usleep libc.so.6";
		w.detail = is_worked ? "fsync/1" : "sleep/1";
		madewait(p, &w);
		madewait(p, &(struct madewait){.comm = "reader",
					       .tid = 2,
					       .reason = WAIT_FSYNC,
					       .stack = "main app;commit app",
					       .nr = 100,
					       .ms = 500});
		CLEANUP(report_free_p) struct report *r = page_of(p);
		size_t pipes =
			note_at(r, is_worked ? "terminals or similar; most in take_job; their "
					       "writers, or whom those waited for, were at "
					       "work: the largest part (100 %) writer in submit "
					       "(fsync)"
					     : "idle themselves or are not recorded: for");
		CHECK(pipes < r->notes.n);
		CHECK(has_note(r, "for work (then it is idle) or for an answer") == !is_worked);
		CHECK((pipes < note_at(r, "reach the disk")) == is_worked);
		CHECK(has_note(r, "for writer in submit (fsync)") == is_worked);
	}
}

/* The moments in which an idle backend and the proxy run, to write, are no work that clients wait for. */
TEST(findings_of_sockets_name_a_backend_that_sleeps_and_blame_nobody_else)
{
	CLEANUP(profile_free_p) struct profile *p = madewaits_new(2);
	struct madewait w = {.comm = "client",
			     .tid = 2,
			     .reason = WAIT_NET,
			     .stack = "main app;ask app;read libc.so.6",
			     .nr = 100,
			     .ms = 1900};
	madewait(p, &w);
	w.table = "blame";
	w.other = "backend";
	w.other_tid = 3;
	w.other_stack = "main app;reply app;usleep libc.so.6";
	w.detail = "sleep/1";
	w.ms = 1500;
	madewait(p, &w);
	w.other = "proxy";
	w.other_tid = 4;
	w.other_stack = "main app;forward app;write libc.so.6";
	w.detail = "on_cpu/1";
	w.ms = 400;
	madewait(p, &w);
	CLEANUP(report_free_p) struct report *r = page_of(p);
	CHECK(has_note(
		r, "the other end of sockets: for an answer or a request; most in ask; 79 % of it "
		   "for backend in reply (idle: sleep)"));
	CHECK(!has_note(r, "waiting for other threads"));
}

/* Python's functions are not known of a thread that waits when the capture begins: the main thread joins. */
TEST(findings_name_the_gil_before_the_code_that_holds_it)
{
	CLEANUP(profile_free_p) struct profile *p = madewaits_new(1);
	struct madewait w = {.comm = "python3",
			     .tid = 1,
			     .reason = WAIT_SYNC,
			     .evidence = EVIDENCE_AT_START | EVIDENCE_OPEN,
			     .stack = "main py;lock_PyThread_acquire_lock py;sem_wait libc.so.6",
			     .nr = 1,
			     .ms = 1000};
	madewait(p, &w);
	for (int tid = 2; tid < 4; tid++) {
		w = (struct madewait){.comm = "python3",
				      .tid = tid,
				      .reason = WAIT_SYNC,
				      .stack =
					      "run py;take_gil py;pthread_cond_timedwait libc.so.6",
				      .object = "lock 0x1000",
				      .nr = 100,
				      .ms = 400};
		madewait(p, &w);
		madewait(p, &(struct madewait){.comm = "python3",
					       .tid = tid,
					       .reason = WAIT_ON_CPU,
					       .nr = 100,
					       .ms = 600});
	}
	CLEANUP(report_free_p) struct report *r = report_new();
	profile_seal(p);
	report_finding(r, "hottest path");
	CHECK(!waits_page(r, p, &(struct select_spec){0}, &(struct view_limits){0}, NULL));
	CHECK(!!strstr(r->findings.p[0], "lock contention: 40 % of non-idle thread time"));
	CHECK(!!strstr(r->findings.p[0], "CPython's GIL"));
	CHECK(!!strstr(r->findings.p[1], "hottest path"));
	CHECK(!has_note(r, "waiting on futexes"));
}

/* parking_lot yields before it sleeps: what was called says that it is a lock. */
TEST(findings_name_the_lock_that_yields)
{
	CLEANUP(profile_free_p) struct profile *p = madewaits_new(1);
	madewait(p, &(struct madewait){.comm = "w",
				       .tid = 2,
				       .reason = WAIT_RUN_QUEUE,
				       .detail = "yielded",
				       .stack = "main app;get app;lock_api::mutex::Mutex::lock app;"
						"parking_lot::raw_mutex::RawMutex::lock_slow app;"
						"sched_yield libc.so.6",
				       .nr = 300,
				       .ms = 900});
	CLEANUP(report_free_p) struct report *r = page_of(p);
	CHECK(has_note(r, "most in get, in its call of lock_api::mutex::Mutex::lock"));
}

/* What Rust's compiler puts between a program and malloc is no function of the program. */
TEST(findings_name_who_allocates_not_rusts_allocator)
{
	static const char *const shims[] = {"__rustc::__rdl_realloc", "__rdl_alloc",
					    "__rust_realloc", "alloc::raw_vec::finish_grow"};
	for (size_t i = 0; i < ARRAY_LEN(shims); i++) {
		CLEANUP(arena_release) struct arena a = {0};
		CLEANUP(profile_free_p) struct profile *p = madewaits_new(1);
		madewait(p,
			 &(struct madewait){
				 .comm = "w",
				 .tid = 2,
				 .reason = WAIT_SYNC,
				 .object = "lock 0x1000",
				 .stack = arena_fmt(&a,
						    "main app;parse app;%s app;realloc libc.so.6;"
						    "__lll_lock_wait_private libc.so.6",
						    shims[i]),
				 .nr = 300,
				 .ms = 900});
		CLEANUP(report_free_p) struct report *r = page_of(p);
		CHECK(has_note(r, "for one lock, waiters in parse"));
	}
}

/* Semaphores and Python's locks of unknown purpose that nobody released all the time. */
TEST(findings_say_what_is_not_known_of_locks_held_throughout)
{
	static const char *const stacks[] = {
		"main app;serve app;PyThread_acquire_lock_timed python3;sem_wait libc.so.6",
		"main app;serve app;sem_wait libc.so.6",
		"main app;serve app;pthread_cond_wait libc.so.6"};
	for (size_t i = 0; i < ARRAY_LEN(stacks); i++)
		for (int is_whole = 0; is_whole < 2; is_whole++) {
			CLEANUP(profile_free_p) struct profile *p = madewaits_new(2);
			for (int32_t tid = 2; tid < 5; tid++)
				madewait(p, &(struct madewait){
						    .comm = "w",
						    .tid = tid,
						    .reason = WAIT_SYNC,
						    .evidence = EVIDENCE_OPEN |
								(is_whole ? EVIDENCE_AT_START : 0),
						    .stack = stacks[i],
						    .object = "lock 0x1000",
						    .nr = 1,
						    .ms = 2000});
			CLEANUP(report_free_p) struct report *r = page_of(p);
			CHECK(has_note(r,
				       "3 threads waited for the whole capture for a semaphore or "
				       "a lock of Python that nobody released, as in") ==
			      (is_whole && i < 2));
			CHECK(has_note(r, "who holds it is not known") == (is_whole && i < 2));
		}
}

TEST(findings_say_that_a_lock_was_not_released)
{
	CLEANUP(profile_free_p) struct profile *p = madewaits_new(1);
	madewait(p,
		 &(struct madewait){.comm = "w",
				    .tid = 2,
				    .reason = WAIT_SYNC,
				    .evidence = EVIDENCE_AT_START | EVIDENCE_OPEN,
				    .stack = "main app;take_gil app;pthread_mutex_lock libc.so.6",
				    .object = "lock 0x1000",
				    .nr = 1,
				    .ms = 900});
	CLEANUP(report_free_p) struct report *r = page_of(p);
	CHECK(has_note(
		r, "waiters in main (CPython's GIL: one thread runs Python code at a "
		   "time); meanwhile the lock holder was doing: not known (not released during the "
		   "capture)"));
}
