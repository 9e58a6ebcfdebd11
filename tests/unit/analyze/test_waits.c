/* analyze/: thread time breakdown, waits, blame, hot/cold, on recordings with known numbers. */
#include "base/base.h"
#include "tap.h"

#include <errno.h>
#include <math.h>

#include "analyze/wait/blame.h"
#include "analyze/stacks/calltree.h"
#include "analyze/stacks/hotcold.h"
#include "analyze/wait/breakdown.h"
#include "analyze/wait/quantile.h"
#include "analyze/views.h"
#include "analyze/wait/waittables.h"
#include "base/buf.h"
#include "format/assay/assayfile.h"
#include "madewaits.h"

#define MS 1000000ull

struct fixture {
	struct profile *p;
	struct arena a;
	struct selection sel;
	struct breakdown l;
	struct report *r;
};

static void fixture_release(struct fixture *f)
{
	report_free(f->r);
	arena_release(&f->a);
	profile_free(f->p);
}

static struct fixture make_fixture(bool has_samples, const struct select_spec *spec)
{
	struct fixture f = {.p = madewaits_service(has_samples), .r = report_new()};
	CLEANUP(err_release) struct err err = {0};
	struct select_spec of_waits = *spec;
	of_waits.event = of_waits.event ? of_waits.event : "off-cpu";
	if (select_run(&f.a, f.p, &of_waits, &f.sel, &err) ||
	    breakdown_make(&f.a, f.p, spec, &f.l, &err))
		tap_fail(__FILE__, __LINE__, "%s", err_msg(&err));
	return f;
}

static const struct report_table *find_table(const struct report *r, const char *key)
{
	vec_foreach(t, &r->tables)
		if (!strcmp(t->key, key))
			return t;
	tap_fail(__FILE__, __LINE__, "no table '%s'", key);
	static const struct report_table none;
	return &none;
}

static size_t column_of(const struct report_table *t, const char *key)
{
	for (size_t c = 0; c < t->nr_columns; c++)
		if (!strcmp(t->columns[c].key, key))
			return c;
	tap_fail(__FILE__, __LINE__, "no column '%s' in %s", key, t->key);
	return 0;
}

static const union cell *cell_at(const struct report_table *t, size_t row, const char *column)
{
	static const union cell none = {.text = ""};
	if (row >= t->nr_rows) {
		tap_fail(__FILE__, __LINE__, "%s has no row %zu", t->key, row);
		return &none;
	}
	return &t->cells[row * t->nr_columns + column_of(t, column)];
}

static uint64_t sum_of(const struct report_table *t, const char *column)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < t->nr_rows; i++)
		sum += cell_at(t, i, column)->u;
	return sum;
}

static bool has_note(const struct report *r, const char *part)
{
	vec_foreach(n, &r->notes)
		if (strstr(*n, part))
			return true;
	return false;
}

/* ---- thread time breakdown -------------------------------------------------------*/

TEST(breakdown_of_each_thread_closes_to_its_wall_time)
{
	CLEANUP(fixture_release) struct fixture f = make_fixture(false, &(struct select_spec){0});
	CHECK_U64(f.l.nr_rows, 8);
	for (size_t i = 0; i < f.l.nr_rows; i++) {
		CHECK_U64(f.l.rows[i].wall_ns, 2000 * MS);
		CHECK_U64(breakdown_sum_ns(&f.l.rows[i]), 2000 * MS);
	}
	CHECK_U64(f.l.total.wall_ns, 16000 * MS);
	CHECK_U64(f.l.total.ns[WAIT_LOCK], 2400 * MS);
	CHECK_U64(f.l.total.ns[WAIT_PARK], 8000 * MS);
	CHECK_U64(f.l.total.ns[WAIT_SYNC], 0);
	CHECK_U64(f.l.total.woken_ns, 180 * MS);
	CHECK_U64(f.l.total.preempted_ns, 120 * MS);
	CHECK_U64(f.l.total.nr_involuntary, 30);
	CHECK_U64(f.l.total.nr_voluntary, 3 * 2 * 70 + 2 * 120 + 8);
	CHECK_U64(breakdown_idle_ns(&f.l.total), 9400 * MS);
	/* what is kept from running stands first */
	CHECK(strncmp(f.l.rows[0].name, "worker-", 7) == 0);
	CHECK_U64((uint64_t)breakdown_covered_pct(&f.l.total), 100);
}

TEST(breakdown_of_a_window_and_a_thread_closes_too)
{
	struct select_spec spec = {.time = "1..2", .thread = "worker-2"};
	CLEANUP(fixture_release) struct fixture f = make_fixture(false, &spec);
	CHECK_U64(f.l.nr_rows, 1);
	CHECK_U64(f.l.total.wall_ns, 1000 * MS);
	CHECK_U64(breakdown_sum_ns(&f.l.total), 1000 * MS);
	CHECK_U64(f.l.window_ns, 1000 * MS);
}

TEST(breakdown_of_a_window_within_a_second_is_of_that_second)
{
	static const char *const times[] = {"0.65..1.89", "0.1..0.9", "1.2..1.3", "..1", "1.."};
	for (size_t i = 0; i < ARRAY_LEN(times); i++) {
		struct select_spec spec = {.time = times[i], .thread = "worker-2"};
		CLEANUP(fixture_release) struct fixture f = make_fixture(false, &spec);
		CHECK_U64(f.l.window_ns, (i ? 1000 : 2000) * MS);
		CHECK_U64(breakdown_sum_ns(&f.l.total), f.l.window_ns);
		CHECK_U64(f.sel.last_ns - f.sel.first_ns, f.l.window_ns);
	}
}

TEST(breakdown_of_some_waits_is_of_these_only)
{
	struct select_spec spec = {.function = "fsync", .reason = "fsync"};
	CLEANUP(fixture_release) struct fixture f = make_fixture(false, &spec);
	CHECK(f.l.is_of_waits);
	CHECK_U64(breakdown_sum_ns(&f.l.total), 1500 * MS);
	CHECK_U64(f.l.total.wall_ns, 1500 * MS);
	CHECK_U64(f.sel.weight, 1500 * MS);
}

TEST(breakdown_follows_a_thread_through_its_names_and_ends_it_at_its_exit)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(profile_free_p) struct profile *p = madewaits_new(4);
	madewait(p, &(struct madewait){
			    .comm = "young", .tid = 5, .reason = WAIT_ON_CPU, .nr = 1, .ms = 1000});
	madewait(p, &(struct madewait){.comm = "old",
				       .tid = 5,
				       .second = 1,
				       .reason = WAIT_SLEEP,
				       .nr = 1,
				       .ms = 500});
	p->tasks.p[2].start_ns = MADEWAITS_START_NS + 1000 * MS;
	p->tasks.p[2].end_ns = MADEWAITS_START_NS + 1500 * MS;
	profile_seal(p);
	struct breakdown l;
	CHECK(!breakdown_make(&a, p, &(struct select_spec){0}, &l, NULL));
	CHECK_U64(l.nr_rows, 1);
	CHECK_STR(l.rows[0].name, "old");
	CHECK_U64(l.total.wall_ns, 1500 * MS);
	CHECK_U64(breakdown_sum_ns(&l.total), 1500 * MS);
}

TEST(breakdown_of_a_short_process_lasts_as_long_as_its_accounting)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(profile_free_p) struct profile *p = madewaits_new(1);
	madewait(p, &(struct madewait){
			    .comm = "short", .tid = 5, .reason = WAIT_ON_CPU, .nr = 1, .us = 1200});
	p->tasks.p[1].start_ns = MADEWAITS_START_NS + 100 * MS; /* the event of its fork */
	p->tasks.p[1].end_ns = MADEWAITS_START_NS + 101 * MS;   /* and of its exit */
	profile_seal(p);
	struct breakdown l;
	CHECK(!breakdown_make(&a, p, &(struct select_spec){0}, &l, NULL));
	CHECK_U64(l.total.wall_ns, 1200000);
}

TEST(breakdown_says_what_it_does_not_cover)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(profile_free_p) struct profile *p = madewaits_new(1);
	madewait(p, &(struct madewait){.comm = "half", .reason = WAIT_ON_CPU, .nr = 1, .ms = 500});
	profile_seal(p);
	struct breakdown l;
	CHECK(!breakdown_make(&a, p, &(struct select_spec){0}, &l, NULL));
	breakdown_report(r, &l);
	breakdown_threads_report(r, &l, 0, &(struct view_limits){0});
	const struct report_table *t = find_table(r, "breakdown");
	CHECK_STR(cell_at(t, 1, "what")->text, "not accounted for");
	CHECK_U64(cell_at(t, 1, "time_ns")->u, 500 * MS);
	CHECK(fabs(cell_at(find_table(r, "breakdown_threads"), 0, "covered_pct")->d - 50) < 1e-9);
}

TEST(breakdown_names_the_hypervisor_where_the_kernel_accounts_for_it)
{
	static const uint64_t steal_ms[] = {0, 40, 60};
	for (size_t i = 0; i < ARRAY_LEN(steal_ms); i++) {
		CLEANUP(arena_release) struct arena a = {0};
		CLEANUP(report_free_p) struct report *r = report_new();
		CLEANUP(profile_free_p) struct profile *p = madewaits_new(1);
		struct breakdown l;
		madewait(p, &(struct madewait){.comm = "a", .reason = WAIT_STOLEN, .ms = 100});
		profile_fact_nr(p, FACT_STEAL, steal_ms[i] * MS);
		profile_seal(p);
		CHECK(!breakdown_make(&a, p, &(struct select_spec){0}, &l, NULL));
		breakdown_report(r, &l);
		const char *what = cell_at(find_table(r, "breakdown"), 0, "what")->text;
		CHECK_STR(what, steal_ms[i] >= 50 ? "stolen by the hypervisor"
						  : "interrupts and stolen time");
	}
}

TEST(breakdown_groups_add_up_to_the_threads)
{
	CLEANUP(fixture_release) struct fixture f = make_fixture(false, &(struct select_spec){0});
	breakdown_threads_report(f.r, &f.l, BREAKDOWN_GROUPS, &(struct view_limits){.max_rows = 1});
	const struct report_table *t = find_table(f.r, "breakdown_groups");
	CHECK_U64(t->nr_rows, 2);
	CHECK_STR(cell_at(t, 0, "thread")->text, "worker-#");
	CHECK_U64(cell_at(t, 0, "threads")->u, 3);
	CHECK_STR(cell_at(t, 1, "thread")->text, "<other>");
	CHECK_U64(sum_of(t, "total_ns"), 16000 * MS);
	CHECK_U64(sum_of(t, "idle_ns"), 9400 * MS);
}

/* ---- selections --------------------------------------------------------------------------- */

static uint64_t weight_of(const struct select_spec *spec)
{
	CLEANUP(fixture_release) struct fixture f = make_fixture(false, spec);
	return f.sel.weight;
}

TEST(waits_filters_by_reason_and_idle)
{
	CHECK_U64(weight_of(&(struct select_spec){0}), 2400 * MS + 1500 * MS + 300 * MS + 400 * MS);
	CHECK_U64(weight_of(&(struct select_spec){.flags = SELECT_IDLE}), 14000 * MS);
	CHECK_U64(weight_of(&(struct select_spec){.reason = "idle"}), 9400 * MS);
	CHECK_U64(weight_of(&(struct select_spec){.reason = "lock,fsync"}), 3900 * MS);
	CHECK_U64(weight_of(&(struct select_spec){.reason = "!lock"}), 11600 * MS);
	CHECK_U64(weight_of(&(struct select_spec){.reason = "active,!run_queue"}), 4300 * MS);
	CHECK_U64(weight_of(&(struct select_spec){.reason = "futex"}), 10400 * MS);
}

TEST(waits_filters_by_duration_object_waker_and_text)
{
	CHECK_U64(weight_of(&(struct select_spec){.min_duration = "500ms", .flags = SELECT_IDLE}),
		  8000 * MS);
	CHECK_U64(weight_of(&(struct select_spec){.max_duration = "1ms"}), 180 * MS);
	CHECK_U64(weight_of(&(struct select_spec){.object = "/index$"}), 400 * MS);
	CHECK_U64(weight_of(&(struct select_spec){.waker = "^worker-2$"}), 800 * MS);
	CHECK_U64(weight_of(&(struct select_spec){.waker = "^pthread_mutex_unlock$"}), 2400 * MS);
	CHECK_U64(weight_of(&(struct select_spec){.function = "log_append", .reason = "fsync"}),
		  1500 * MS);
}

TEST(waits_bad_filters_are_reported_with_a_remedy)
{
	static const struct {
		struct select_spec spec;
		int code;
		const char *hint;
	} cases[] = {
		{{.reason = "locks"}, -EINVAL, "run_queue"},
		{{.reason = "lock,,fsync"}, -EINVAL, "reasons:"},
		{{.min_duration = "soon"}, -EINVAL, "500us"},
		{{.min_duration = "2s", .max_duration = "1s"}, -EINVAL, NULL},
		{{.object = "/nowhere"}, -ENOENT, NULL},
		{{.waker = "^nobody$"}, -ENOENT, NULL},
		{{.object = "("}, -EINVAL, NULL},
	};
	CLEANUP(profile_free_p) struct profile *p = madewaits_service(true);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(arena_release) struct arena a = {0};
		CLEANUP(err_release) struct err err = {0};
		struct selection sel;
		CHECK_U64((uint64_t)-select_run(&a, p, &cases[i].spec, &sel, &err),
			  (uint64_t)-cases[i].code);
		if (cases[i].hint && (!err.hint || !strstr(err.hint, cases[i].hint)))
			tap_fail(__FILE__, __LINE__, "hint of case %zu: %s", i, err.hint);
	}
	CLEANUP(arena_release) struct arena a = {0};
	struct selection sel;
	struct select_spec of_samples = {.event = "cpu-clock", .reason = "lock"};
	CLEANUP(err_release) struct err err = {0};
	CHECK(select_run(&a, p, &of_samples, &sel, &err) == -EINVAL);
}

TEST(waits_durations_round_to_their_class_and_say_so)
{
	struct select_spec spec = {.min_duration = "10ms", .max_duration = "20ms"};
	CLEANUP(fixture_release) struct fixture f = make_fixture(false, &spec);
	CHECK_U64(f.sel.min_ns, 1 << 23);
	CHECK_U64(f.sel.max_ns, 1 << 25);
	CHECK(!waits_overview(f.r, f.p, &spec, NULL, &(struct view_limits){0}, NULL));
	CHECK(has_note(f.r, "power-of-two buckets: shown are waits of 8.39 ms to 33.6 ms"));
}

TEST(waits_of_a_recording_without_any_are_an_empty_view)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	profile_seal(p);
	struct selection sel;
	CHECK(!select_run(&a, p, &(struct select_spec){.flags = SELECT_IDLE}, &sel, NULL));
	CHECK_U64(sel.nr_rows, 0);
	CHECK(!tables_has_rows(p, TABLE_OFF_CPU) && !tables_has_rows(p, TABLE_BLAME));
}

TEST(waits_end_where_the_scheduler_begins)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(profile_free_p) struct profile *p = madewaits_new(1);
	madewait(p,
		 &(struct madewait){.stack = "main app;read libc.so.6;schedule [k];__schedule [k];"
					     "__traceiter_sched_switch [k]",
				    .reason = WAIT_PIPE,
				    .nr = 1,
				    .ms = 1});
	madewait(p,
		 &(struct madewait){.stack = "main app;read libc.so.6;schedule [k];__schedule [k]",
				    .reason = WAIT_PIPE,
				    .nr = 1,
				    .ms = 2});
	madewait(p,
		 &(struct madewait){
			 .stack = "main app;schedule app", .reason = WAIT_PIPE, .nr = 1, .ms = 3});
	profile_seal(p);
	struct selection sel;
	CHECK(!select_run(&a, p, &(struct select_spec){0}, &sel, NULL));
	CHECK_U64(sel.nr_rows, 2); /* a program's own "schedule" stays */
	CHECK_U64(sel.rows[0].weight, 3 * MS);
	CHECK_U64(sel.weight, 6 * MS);
}

/* ---- tables ------------------------------------------------------------------------------- */

TEST(waits_tables_add_up_to_what_is_in_view)
{
	CLEANUP(fixture_release) struct fixture f = make_fixture(false, &(struct select_spec){0});
	struct view_limits two = {.max_rows = 2};
	waits_table(f.r, &f.sel, WAITS_REASONS, &two);
	waits_table(f.r, &f.sel, WAITS_FUNCTIONS, &two);
	waits_table(f.r, &f.sel, WAITS_RUN_QUEUE, &two);
	waits_table(f.r, &f.sel, WAITS_STACKS, &two);
	static const char *const keys[] = {"reasons", "waiting_stacks"};
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		const struct report_table *t = find_table(f.r, keys[i]);
		CHECK_U64(sum_of(t, "time_ns"), f.sel.weight);
		CHECK_U64(sum_of(t, "waits"), f.sel.nr_samples);
	}
	const struct report_table *t = find_table(f.r, "waiting_functions");
	const struct report_table *queue = find_table(f.r, "run_queue");
	CHECK_U64(sum_of(t, "time_ns") + sum_of(queue, "time_ns"), f.sel.weight);
	CHECK_U64(sum_of(t, "waits") + sum_of(queue, "waits"), f.sel.nr_samples);
	CHECK_U64(sum_of(queue, "waits"), 450);
	CHECK_STR(cell_at(t, 0, "function")->text, "log_append");
	CHECK_STR(cell_at(t, 0, "in")->text, "pthread_mutex_lock");
	CHECK_STR(cell_at(t, 0, "reason")->text, "lock");
	CHECK_U64(cell_at(t, 0, "time_ns")->u, 2400 * MS);
	CHECK_U64(cell_at(t, 1, "time_ns")->u, 1500 * MS);
	CHECK_STR(cell_at(t, 2, "function")->text, "<other>");
}

TEST(waits_a_lock_has_its_waiters_releaser_and_what_holders_did)
{
	CLEANUP(fixture_release) struct fixture f = make_fixture(false, &(struct select_spec){0});
	waits_locks(f.r, &f.sel, &(struct select_spec){0}, &(struct view_limits){0});
	const struct report_table *t = find_table(f.r, "locks");
	CHECK_U64(t->nr_rows, 1);
	CHECK_U64(cell_at(t, 0, "time_ns")->u, 2400 * MS);
	CHECK_U64(cell_at(t, 0, "threads")->u, 3);
	CHECK_STR(cell_at(t, 0, "lock")->text, "lock 0x55d0c0de1040");
	CHECK_STR(cell_at(t, 0, "waits_in")->text, "log_append");
	CHECK_STR(cell_at(t, 0, "held_in")->text, "log_append");
	CHECK_STR(cell_at(t, 0, "held_by")->text, "worker-#");
	CHECK_STR(cell_at(t, 0, "holder")->text, "fsync 90 %, on CPU 10 %");
}

/* Waiters of such locks park on words of their own, one a thread: one lock all the same. */
TEST(waits_locks_that_park_go_by_where_they_are_taken)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(profile_free_p) struct profile *p = madewaits_new(1);
	static const char *const words[] = {"lock 0x1000", "lock 0x2000"};
	for (int32_t i = 0; i < 2; i++)
		madewait(p, &(struct madewait){
				    .comm = "w",
				    .tid = 2 + i,
				    .object = words[i],
				    .stack = "main app;app::get app;"
					     "parking_lot::raw_mutex::RawMutex::lock_slow app;"
					     "parking_lot_core::parking_lot::park app",
				    .reason = WAIT_SYNC,
				    .nr = 1,
				    .ms = 5});
	profile_seal(p);
	struct selection sel;
	CHECK(!select_run(&a, p, &(struct select_spec){0}, &sel, NULL));
	waits_locks(r, &sel, &(struct select_spec){0}, &(struct view_limits){0});
	CHECK_U64(find_table(r, "locks")->nr_rows, 1);
	CHECK_STR(cell_at(find_table(r, "locks"), 0, "lock")->text, "locked in app::get");
}

TEST(waits_overview_says_contention_only_of_locks)
{
	CLEANUP(fixture_release) struct fixture f = make_fixture(false, &(struct select_spec){0});
	CHECK(!waits_overview(f.r, f.p, &(struct select_spec){0}, "x.assay",
			      &(struct view_limits){.max_rows = 20}, NULL));
	CHECK(has_note(f.r, "disk sync under a lock: 2.16 s (33 % of non-idle thread time) were"));
	CHECK(has_note(f.r, "holder worker-# was in fsync in handle_request > log_append (fsync"));
	CHECK(!has_note(f.r, "contention") && !has_note(f.r, "mostly idle"));
	CHECK_U64(f.r->hints.p[0].command, HINT_FLAME);
	CHECK_STR(f.r->hints.p[0].input, "x.assay");

	CLEANUP(profile_free_p) struct profile *idle = madewaits_new(2);
	CLEANUP(report_free_p) struct report *r = report_new();
	for (int32_t i = 0; i < 8; i++)
		madewait(idle, &(struct madewait){.comm = "pool",
						  .tid = 2 + i,
						  .stack = "start_thread libc.so.6;pool app;"
							   "pthread_cond_wait libc.so.6",
						  .reason = WAIT_SYNC,
						  .evidence = EVIDENCE_LOCK_WORD,
						  .nr = 5000,
						  .ms = 2000});
	profile_seal(idle);
	CHECK(!waits_overview(r, idle, &(struct select_spec){0}, NULL, &(struct view_limits){0},
			      NULL));
	CHECK(has_note(r, "another thread: 100 % of thread time"));
	CHECK(!has_note(r, "contention"));
}

/* ---- quantiles ---------------------------------------------------------------------------- */

TEST(quantiles_are_within_a_class_and_means_exact)
{
	struct quantile q = {0};
	uint64_t sum = 0;
	for (uint64_t ns = 1; ns <= 1000; ns++) { /* uniform */
		quantile_add(&q, 63u - (unsigned)__builtin_clzll(ns), 1, ns, ns);
		sum += ns;
	}
	CHECK_U64(quantile_mean(&q), sum / 1000);
	CHECK(quantile_at(&q, 0.5) >= 480 && quantile_at(&q, 0.5) <= 520);
	CHECK(quantile_at(&q, 0.99) >= 970 && quantile_at(&q, 0.99) <= 1000);
	CHECK_U64(quantile_at(&q, 1), 1000);
	CHECK_U64(q.longest_ns, 1000);
}

TEST(quantiles_of_few_values_are_among_them)
{
	struct quantile q = {0};
	quantile_add(&q, 8, 1, 500, 500);
	quantile_add(&q, 22, 1, 5000000, 5000000);
	CHECK_U64(quantile_at(&q, 0.5), 500);
	CHECK_U64(quantile_at(&q, 0.99), 5000000);
	quantile_add(&q, 13, 1, 10000, 10000);
	CHECK_U64(quantile_at(&q, 0.5), 10000);
}

TEST(quantiles_bend_towards_the_mean_of_their_class_and_end_at_the_longest)
{
	struct quantile q = {0};
	quantile_add(&q, 20, 1000, 1000 * 1050000ull, 1060000); /* all but at the lower end */
	CHECK(quantile_at(&q, 0.5) >= 1048576 && quantile_at(&q, 0.5) < 1052000);
	CHECK(quantile_at(&q, 0.99) <= 1060000);
	struct quantile empty = {0};
	CHECK_U64(quantile_at(&empty, 0.5), 0);
	CHECK_U64(quantile_mean(&empty), 0);
}

/* ---- blame -------------------------------------------------------------------------------- */

/* @detail: what the blocker did, see model/blametag.h. */
static struct madewait blamed(const char *waiter, int32_t tid, const char *stack,
			      const char *blocker, int32_t other_tid, const char *detail,
			      const char *other_stack, int64_t ms)
{
	return (struct madewait){.table = "blame",
				 .comm = waiter,
				 .tid = tid,
				 .stack = stack,
				 .other = blocker,
				 .other_tid = other_tid,
				 .other_stack = other_stack,
				 .reason = WAIT_SYNC,
				 .detail = detail,
				 .nr = ms / 10,
				 .ms = ms};
}

#define LOCK_AT(f) "main app;" f " app;pthread_mutex_lock libc.so.6"

static const struct blame_row *row_of(const struct blame *b, const struct profile *p,
				      const char *waiter, const char *blocker)
{
	for (size_t i = 0; i < b->nr_rows; i++)
		if (!strcmp(profile_text(p, p->tasks.p[b->rows[i].waiter].comm), waiter) &&
		    !strcmp(profile_text(p, p->tasks.p[b->rows[i].blocker].comm), blocker))
			return &b->rows[i];
	tap_fail(__FILE__, __LINE__, "no blame for %s of %s", blocker, waiter);
	static const struct blame_row none;
	return &none;
}

#define SYNC_IN(f) "main app;" f " app;fsync libc.so.6"

/* a waits for b and c, which syncs; c waits for a socket that d writes. */
static struct profile *blame_profile(void)
{
	struct profile *p = madewaits_new(1);
	struct madewait rows[] = {
		blamed("a", 2, LOCK_AT("fa") ";futex_wait [k]", "c", 4, "fsync/2", SYNC_IN("fc"),
		       600),
		blamed("a", 2, LOCK_AT("fa") ";futex_wait [k]", "b", 3, "on_cpu/1",
		       "main app;fb app", 200),
		blamed("c", 4, "main app;fc app;recv libc.so.6", "d", 5, "sync/1", LOCK_AT("fd"),
		       100),
	};
	rows[2].reason = WAIT_NET;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		madewait(p, &rows[i]);
		struct madewait wait = rows[i];
		wait.table = NULL;
		wait.detail = NULL;
		madewait(p, &wait);
	}
	madewait(p, &(struct madewait){.comm = "c",
				       .tid = 4,
				       .stack = SYNC_IN("fc"),
				       .reason = WAIT_FSYNC,
				       .nr = 1,
				       .ms = 100});
	profile_seal(p);
	return p;
}

TEST(blame_has_what_the_blamed_threads_did)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(profile_free_p) struct profile *p = blame_profile();
	struct blame b;
	CHECK(!blame_make(&a, p, &(struct select_spec){0}, &b, NULL));
	CHECK_U64(b.nr_rows, 3);
	CHECK_U64(b.ns, 900 * MS);
	CHECK_U64(row_of(&b, p, "a", "c")->ns, 600 * MS);
	CHECK_U64(row_of(&b, p, "a", "c")->nr_steps, 2);
	CHECK(row_of(&b, p, "a", "c")->doing == WAIT_FSYNC);
	CHECK(row_of(&b, p, "a", "c")->reason == WAIT_LOCK);
	CHECK(row_of(&b, p, "a", "b")->doing == WAIT_ON_CPU);
	CHECK(row_of(&b, p, "c", "d")->reason == WAIT_NET);
	CHECK(row_of(&b, p, "c", "d")->doing == WAIT_LOCK); /* by its frames */
	CHECK_U64(b.convoy_ns, 0);
}

TEST(blame_says_how_much_of_the_waiting_it_explains)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(profile_free_p) struct profile *p = blame_profile();
	struct blame b;
	CHECK(!blame_make(&a, p, &(struct select_spec){0}, &b, NULL));
	CHECK_U64(b.of_ns, 1000 * MS);
	CHECK_U64(b.reason_ns[WAIT_FSYNC], 100 * MS);
	blame_report(r, &b, &(struct view_limits){0});
	CHECK_U64(r->notes.n, 1);
	CHECK(strstr(r->notes.p[0], "waiting (90 %"));
	CHECK(strstr(r->notes.p[0], "unknown threads: fsync 10 %"));
	CHECK_U64(sum_of(find_table(r, "blame"), "time_ns"), b.ns);
	CHECK(cell_at(find_table(r, "blame"), 0, "pct")->d == 60);
}

TEST(blame_filters_select_waiters_and_keep_their_chains)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(profile_free_p) struct profile *p = blame_profile();
	CLEANUP(calltree_free_p) struct calltree *ct = calltree_new(r, 0);
	struct blame b;
	CHECK(!blame_make(&a, p, &(struct select_spec){.reason = "lock"}, &b, NULL));
	CHECK_U64(b.ns, 800 * MS);
	CHECK_U64(b.of_ns, 800 * MS);
	CHECK(!blame_make(&a, p, &(struct select_spec){.reason = "net"}, &b, NULL));
	CHECK_U64(b.ns, 100 * MS);
	CHECK(!blame_make(&a, p, &(struct select_spec){.within = "^fa$"}, &b, NULL));
	CHECK_U64(b.ns, 800 * MS);
	CHECK_U64(row_of(&b, p, "a", "c")->ns, 600 * MS);
	blame_add_to_tree(ct, &b);
	const struct report_tree *t = calltree_finish(ct, "flame", "tree");
	size_t nr = 0;
	for (size_t i = 0; i < t->nr_nodes; i++)
		nr += !strcmp(intern_str(&r->names, t->nodes[i].name), "fc");
	CHECK_U64(nr, 1);
}

TEST(blame_marks_convoys_of_waits_that_are_not_idle)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(profile_free_p) struct profile *p = madewaits_new(1);
	struct madewait rows[] = {
		blamed("a", 2, LOCK_AT("f"), "b", 3, "on_cpu/1/convoy", "main app;f app", 500),
		blamed("pool", 4, "main app;pool app;pthread_cond_wait libc.so.6", "b", 3,
		       "on_cpu/1/convoy", "main app;f app", 300),
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		madewait(p, &rows[i]);
	profile_seal(p);
	struct blame b;
	CHECK(!blame_make(&a, p, &(struct select_spec){.flags = SELECT_IDLE}, &b, NULL));
	CHECK_U64(b.ns, 800 * MS);
	CHECK_U64(b.convoy_ns, 500 * MS);
	blame_report(r, &b, &(struct view_limits){0});
	CHECK_STR(cell_at(find_table(r, "blame"), 0, "doing")->text, "convoy (on_cpu)");
}

TEST(page_names_the_thread_that_others_wait_for)
{
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(profile_free_p) struct profile *p = blame_profile();
	CHECK(!waits_page(r, p, &(struct select_spec){0}, &(struct view_limits){0}, NULL));
	CHECK(has_note(r, "sync under a lock: 600 ms (60 % of non-idle thread time) were spent"));
	CHECK(has_note(r, "lock in fa while c, for which its holder waited, was in fsync in "));
	CHECK(has_note(r, "waiting for other threads, not for locks: 10 % of non-idle thread time; "
			  "the largest part (100 %) for d in fd (lock)"));
}

/* There the reason is what the blamed thread did. */
TEST(blame_of_earlier_versions_is_read)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(profile_free_p) struct profile *p = madewaits_new(1);
	struct madewait w = blamed("a", 2, LOCK_AT("f"), "b", 3, NULL, SYNC_IN("g"), 500);
	w.reason = WAIT_FSYNC;
	madewait(p, &w);
	profile_seal(p);
	struct blame b;
	CHECK(!blame_make(&a, p, &(struct select_spec){.reason = "lock"}, &b, NULL));
	CHECK_U64(b.nr_rows, 1);
	CHECK(b.rows[0].doing == WAIT_FSYNC && b.rows[0].reason == WAIT_LOCK);
	CHECK(blame_make(&a, p, &(struct select_spec){.reason = "fsync"}, &b, NULL) || !b.ns);
}

TEST(blame_leaves_out_waiters_with_nothing_to_do)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(profile_free_p) struct profile *p = madewaits_new(1);
	struct madewait w =
		blamed("pool", 2, "main app;pool app;pthread_cond_wait libc.so.6", "boss", 3,
		       "sleep/1", "main app;boss app;nanosleep libc.so.6", 900);
	madewait(p, &w);
	profile_seal(p);
	struct blame b;
	CHECK(!blame_make(&a, p, &(struct select_spec){0}, &b, NULL));
	CHECK_U64(b.ns, 0);
	CHECK_U64(b.sel.weight_idle, 900 * MS);
	CHECK(!blame_make(&a, p, &(struct select_spec){.flags = SELECT_IDLE}, &b, NULL));
	CHECK_U64(b.ns, 900 * MS);
}

TEST(blame_of_a_recording_without_it_is_reported)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(profile_free_p) struct profile *p = madewaits_new(1);
	profile_seal(p);
	struct blame b;
	CHECK(blame_make(&a, p, &(struct select_spec){0}, &b, &err) == -ENODATA);
	CHECK(err.hint && strstr(err.hint, "assay offcpu"));
}

TEST(blame_tree_stacks_the_culprit_on_the_waiter)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(profile_free_p) struct profile *p = madewaits_service(false);
	CLEANUP(calltree_free_p) struct calltree *ct = calltree_new(r, CALLTREE_ROOT_COMM);
	struct blame b;
	CHECK(!blame_make(&a, p, &(struct select_spec){0}, &b, NULL));
	blame_add_to_tree(ct, &b);
	const struct report_tree *t = calltree_finish(ct, "flame", "tree");
	CHECK_U64(t->nodes[0].total, 2400 * MS);
	size_t nr_leaves = 0;
	for (size_t i = 0; i < t->nr_nodes; i++)
		if (t->nodes[i].self) {
			const char *leaf = intern_str(&r->names, t->nodes[i].name);
			CHECK(!strcmp(leaf, "[fsync]") || !strcmp(leaf, "[on CPU]"));
			nr_leaves++;
		}
	CHECK_U64(nr_leaves, 6);
}

/* ---- hot and cold ------------------------------------------------------------------------- */

static uint64_t weight_under(const struct selection *sel, const char *comm, unsigned synth_leaf)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < sel->nr_rows; i++)
		if (sel->rows[i].synth_leaf == synth_leaf &&
		    !strcmp(profile_text(sel->p, sel->p->tasks.p[sel->rows[i].task].comm), comm))
			sum += sel->rows[i].weight;
	return sum;
}

TEST(hotcold_weighs_what_the_breakdown_says)
{
	CLEANUP(fixture_release)
	struct fixture f = make_fixture(true, &(struct select_spec){.flags = SELECT_IDLE});
	struct selection sel;
	CHECK(views_default(f.p) == views_at(VIEW_THREAD_TIME));
	CHECK(!hotcold_run(&f.a, f.p, &(struct select_spec){.flags = SELECT_IDLE}, &sel, NULL));
	CHECK_U64(sel.weight, breakdown_sum_ns(&f.l.total));
	CHECK_U64(weight_under(&sel, "worker-1", 0), 600 * MS); /* 290 samples a second */
	CHECK_U64(weight_under(&sel, "worker-3", 0), 600 * MS); /* 60 */
	CHECK_U64(weight_under(&sel, "worker-1", WAIT_LOCK), 800 * MS);
	CHECK_U64(weight_under(&sel, "pool-1", SELECT_LEAF_IDLE), 2000 * MS);
	/* no sample in its first second, one in its second one */
	CHECK_U64(weight_under(&sel, "server", SELECT_LEAF_UNSAMPLED), 100 * MS);
	CHECK_U64(weight_under(&sel, "server", 0), 100 * MS);

	CHECK(!hotcold_run(&f.a, f.p, &(struct select_spec){0}, &sel, NULL));
	CHECK_U64(sel.weight, breakdown_sum_ns(&f.l.total) - breakdown_idle_ns(&f.l.total));
}

TEST(hotcold_keeps_filters_on_stacks_and_reasons)
{
	CLEANUP(fixture_release) struct fixture f = make_fixture(true, &(struct select_spec){0});
	struct selection sel;
	struct select_spec parse = {.function = "^parse$"};
	CHECK(!hotcold_run(&f.a, f.p, &parse, &sel, NULL));
	/* worker-1: 200 of 290 samples of 600 ms; worker-2: all; and all preemption */
	CHECK(llabs((long long)sel.weight - (long long)((413793104 + 600 * MS) + 120 * MS)) < 10);
	struct select_spec fsync = {.reason = "fsync"};
	CHECK(!hotcold_run(&f.a, f.p, &fsync, &sel, NULL));
	CHECK_U64(sel.weight, 1500 * MS);
	struct select_spec ran = {.reason = "on_cpu"};
	CHECK(!hotcold_run(&f.a, f.p, &ran, &sel, NULL));
	CHECK_U64(sel.weight, f.l.total.ns[WAIT_ON_CPU]);
}

TEST(hotcold_needs_both)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(profile_free_p) struct profile *p = madewaits_service(false);
	struct selection sel;
	CHECK(views_default(p) == views_at(VIEW_WAITS));
	CLEANUP(err_release) struct err err = {0};
	CHECK(hotcold_run(&a, p, &(struct select_spec){0}, &sel, &err) == -ENODATA);
}

TEST(waits_reasons_are_leaf_frames_of_trees)
{
	CLEANUP(fixture_release) struct fixture f = make_fixture(false, &(struct select_spec){0});
	CLEANUP(calltree_free_p) struct calltree *ct = calltree_new(f.r, 0);
	calltree_add(ct, &f.sel);
	const struct report_tree *t = calltree_finish(ct, "flame", "tree");
	CHECK_U64(t->nodes[0].total, f.sel.weight);
	for (size_t i = 0; i < t->nr_nodes; i++) {
		if (!t->nodes[i].self)
			continue;
		const char *leaf = intern_str(&f.r->names, t->nodes[i].name);
		CHECK(leaf[0] == '[' && t->nodes[i].flags & TREE_PSEUDO);
	}
}

/* ---- the fixtures of golden tests ----------------------------------------------------------- */

/* Writes tests/fixtures/waits when asked to: ASSAY_WRITE_FIXTURES=tests/fixtures/waits. */
TEST(waits_fixtures_can_be_written_and_read)
{
	const char *dir = getenv("ASSAY_WRITE_FIXTURES");
	for (int has_samples = 0; has_samples < 2; has_samples++) {
		CLEANUP(profile_free_p) struct profile *p = madewaits_service(has_samples);
		CLEANUP(profile_free_p) struct profile *back = NULL;
		CLEANUP(buf_release) struct buf bytes = {0};
		CLEANUP(err_release) struct err err = {0};
		CHECK(!assayfile_write(&bytes, p, has_samples ? "cpu" : "offcpu", &err));
		CHECK(!assayfile_read(&back, NULL, bytes.p, bytes.n, &err));
		CHECK_U64(back->tags.n, p->tags.n);
		char path[4096];
		snprintf(path, sizeof(path), "%s/%s.assay", dir ? dir : "",
			 has_samples ? "hotcold" : "service");
		FILE *out = dir ? fopen(path, "w") : NULL;
		CHECK(!dir || (out && fwrite(bytes.p, 1, bytes.n, out) == bytes.n));
		if (out)
			fclose(out);
	}
}
