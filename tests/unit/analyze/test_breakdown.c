/* analyze/breakdown: the counts of its rows. */
#include "base/base.h"
#include "tap.h"

#include "analyze/views.h"
#include "analyze/wait/breakdown.h"
#include "analyze/wait/waittables.h"
#include "madewaits.h"
#include "model/facts.h"

#define MS 1000000ull

static const union cell *cell_of(const struct report_table *t, size_t row, const char *key)
{
	size_t at = 0;
	while (at + 1 < t->nr_columns && strcmp(t->columns[at].key, key))
		at++;
	return &t->cells[row * t->nr_columns + at];
}

TEST(breakdown_counts_a_yield_once)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(profile_free_p) struct profile *p = madewaits_new(1);
	struct breakdown l;
	struct madewait w = {.comm = "a", .reason = WAIT_RUN_QUEUE, .nr = 100, .ms = 300};
	w.detail = "yielded";
	madewait(p, &w);
	w.detail = "preempted";
	w.nr = 2;
	w.ms = 10;
	madewait(p, &w);
	profile_seal(p);
	CHECK(!breakdown_make(&a, p, &(struct select_spec){0}, &l, NULL));
	breakdown_report(r, &l);
	CHECK(r->tables.n == 1 && r->tables.p[0].nr_rows >= 2);
	const struct report_table *t = &r->tables.p[0];
	CHECK_STR(cell_of(t, 0, "what")->text, "preempted");
	CHECK_U64(cell_of(t, 0, "count")->u, 2);
	CHECK_U64(cell_of(t, 0, "mean_ns")->u, 5 * MS);
	CHECK_STR(cell_of(t, 1, "what")->text, "yielded the CPU");
	CHECK_U64(cell_of(t, 1, "count")->u, 100);
}

/* bash executes a script, whose name the thread has until env executes bash again. */
TEST(breakdown_a_thread_that_ends_under_an_earlier_name_ends_under_all)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(profile_free_p) struct profile *p = madewaits_new(10);
	struct breakdown l;
	struct madewait w = {.tid = 2, .reason = WAIT_PIPE, .nr = 1, .ms = 100};
	w.comm = "bash";
	madewait(p, &w);
	task_id bash = profile_task(p, 1, 2, profile_cstr(p, "bash"), MADEWAITS_START_NS);
	(void)profile_task(p, 1, 2, profile_cstr(p, "script"), MADEWAITS_START_NS + 100 * MS);
	w.comm = "script";
	madewait(p, &w);
	p->tasks.p[bash].end_ns = MADEWAITS_START_NS + 200 * MS;
	/* The number is used again, by a thread that lives on. */
	(void)profile_task(p, 1, 2, profile_cstr(p, "other"), MADEWAITS_START_NS + 9000 * MS);
	profile_seal(p);
	CHECK(!breakdown_make(&a, p, &(struct select_spec){0}, &l, NULL));
	CHECK_U64(l.nr_rows, 1);
	CHECK_U64(l.rows[0].wall_ns, 1200 * MS);
}

TEST(breakdown_that_lacks_most_of_the_time_makes_no_statement_on_causes)
{
	for (unsigned covered = 0; covered < 2; covered++) {
		CLEANUP(report_free_p) struct report *r = report_new();
		CLEANUP(profile_free_p) struct profile *p = madewaits_new(10);
		CLEANUP(arena_release) struct arena a = {0};
		struct madewait w = {.tid = 2, .reason = WAIT_RUN_QUEUE, .nr = 100};
		w.detail = "preempted";
		w.ms = covered ? 9000 : 900;
		madewait(p, &w);
		profile_seal(p);
		CHECK(!waits_page(r, p, &(struct select_spec){0}, &(struct view_limits){0}, NULL));
		CHECK(r->findings.n >= 1);
		const char *first = r->findings.n ? r->findings.p[0] : "";
		CHECK((strstr(first, "CPU shortage") != NULL) == covered);
		CHECK((strstr(first, "only 9.0 % of the thread time") != NULL) == !covered);
	}
}

/* The hint names the command only where its samples are missing. */
TEST(breakdown_names_the_command_for_cpu_time_unless_it_was_recorded)
{
	for (unsigned has_samples = 0; has_samples < 2; has_samples++) {
		CLEANUP(report_free_p) struct report *r = report_new();
		CLEANUP(profile_free_p) struct profile *p = madewaits_new(10);
		CLEANUP(arena_release) struct arena a = {0};
		struct madewait w = {.comm = "a", .tid = 2, .reason = WAIT_ON_CPU, .nr = 100};
		w.ms = 9000;
		madewait(p, &w);
		w.reason = WAIT_FILE_READ;
		w.ms = 1000;
		madewait(p, &w);
		if (has_samples)
			madewaits_samples(p, 0, "a", 2, "main;f", 100);
		profile_seal(p);
		CHECK(!waits_page(r, p, &(struct select_spec){0}, &(struct view_limits){0}, NULL));
		bool is_said = false;
		bool is_hinted = false;
		vec_foreach(one, &r->findings) {
			is_said |= strstr(*one, "on CPU: 90 %") != NULL;
			is_hinted |= strstr(*one, "assay cpu shows where") != NULL;
		}
		CHECK(is_said);
		CHECK(is_hinted == !has_samples);
	}
}

TEST(breakdown_says_what_samples_and_on_cpu_time_cover_if_they_differ)
{
	static const struct {
		unsigned nr;
		bool is_said;
	} cases[] = {{900, false}, {928, false}, {1200, true}, {600, true}};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(report_free_p) struct report *r = report_new();
		CLEANUP(profile_free_p) struct profile *p = madewaits_new(1);
		madewait(p, &(struct madewait){.comm = "a",
					       .tid = 2,
					       .reason = WAIT_ON_CPU,
					       .nr = 100,
					       .ms = 900});
		madewait(p,
			 &(struct madewait){
				 .comm = "a", .tid = 2, .reason = WAIT_PIPE, .nr = 1, .ms = 100});
		madewaits_samples(p, 0, "a", 2, "main;f", cases[i].nr);
		vec_foreach(t, &p->tables)
			t->freq_hz = t->id == TABLE_SAMPLES ? 1000 : 0;
		profile_seal(p);
		CHECK(!views_page(r, p, &(struct select_spec){0}, NULL, &(struct view_limits){0},
				  NULL));
		bool is_said = false;
		vec_foreach(one, &r->notes)
			is_said |= strstr(*one, "samples at 1,000 Hz stand for") != NULL &&
				   strstr(*one, "threads were on CPU for 900 ms") != NULL;
		CHECK(is_said == cases[i].is_said);
	}
}

/* Samples of a thread that runs for moments may miss most of its time. */
TEST(breakdown_and_the_note_on_few_samples_name_the_same_cpus_in_use)
{
	for (int64_t ms = 500; ms <= 1300; ms += 800) {
		CLEANUP(report_free_p) struct report *r = report_new();
		CLEANUP(profile_free_p) struct profile *p = madewaits_new(10);
		struct madewait w = {.comm = "a", .tid = 2, .reason = WAIT_ON_CPU, .nr = 100};
		w.ms = ms;
		madewait(p, &w);
		w.reason = WAIT_FILE_READ;
		w.ms = 10000 - ms;
		madewait(p, &w);
		madewaits_samples(p, 0, "a", 2, "main;f", 10);
		profile_seal(p);
		CHECK(!views_page(r, p, &(struct select_spec){0}, NULL, &(struct view_limits){0},
				  NULL));
		const char *cpus = report_get_fact(r, FACT_CPUS_IN_USE);
		CHECK(cpus && !strcmp(cpus, ms < 1000 ? "0.05 on average" : "0.13 on average"));
		bool is_little = false;
		vec_foreach(one, &r->notes)
			is_little |= strstr(*one, "used less than 0.1 CPUs") != NULL;
		CHECK(is_little == (ms < 1000));
	}
}

TEST(breakdown_does_not_count_its_total_as_a_row)
{
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(profile_free_p) struct profile *p = madewaits_service(false);
	profile_seal(p);
	CHECK(!waits_page(r, p, &(struct select_spec){0}, &(struct view_limits){0}, NULL));
	const struct report_table *t = &r->tables.p[0];
	CHECK(!strcmp(t->key, "breakdown") && t->has_total);
	CHECK_U64(t->nr_rows_total, t->nr_rows - 1);
}
