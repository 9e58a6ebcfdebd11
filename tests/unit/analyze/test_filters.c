/* Every filter against every page: a filtered page has no number above those of its selection. */
#include "base/base.h"
#include "tap.h"

#include <string.h>

#include "analyze/select/matched.h"
#include "analyze/select/select.h"
#include "analyze/views.h"
#include "base/buf.h"
#include "made.h"
#include "session/load.h"

static const char *const inputs[] = {
	"tests/fixtures/waits/hotcold.assay",   "tests/fixtures/waits/service.assay",
	"tests/fixtures/recording/waits.assay", "tests/fixtures/calls/io.assay",
	"tests/fixtures/calls/faults.assay",    "tests/fixtures/calls/spans.assay",
	"tests/fixtures/heap/app.heaptrack",    "tests/fixtures/perfdata/multi.perfdata",
	"tests/fixtures/text/fp.perfscript",
};

/* Sums of all rows that pass the filters, by unit: of the table that has most. */
struct limits {
	uint64_t of[UNIT_BYTES + 1];
};

static void add_table_limits(struct limits *l, const struct profile *p, uint32_t table,
			     const struct select_spec *spec)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct row_filter *filter;
	struct limits sums = {0};
	const struct table *t = &p->tables.p[table];
	if (select_compile(&a, p, table, spec, &filter, NULL))
		return;
	for (size_t i = 0; i < t->n; i++)
		for (uint32_t c = 0; c < t->nr_columns && select_has(filter, i); c++)
			sums.of[t->columns[c].unit] +=
				(uint64_t)MAX(t->values[i * t->nr_columns + c], 0);
	for (size_t u = 0; u < ARRAY_LEN(sums.of); u++)
		l->of[u] = MAX(l->of[u], sums.of[u]);
}

static struct limits limits_of(const struct profile *p, const struct select_spec *spec)
{
	struct limits l = {0};
	for (uint32_t i = 0; i < p->tables.n; i++)
		add_table_limits(&l, p, i, spec);
	if (select_scope(spec) == SELECT_THREADS) {
		uint64_t wall_ns = 0;
		for (task_id t = 1; t < p->tasks.n; t++)
			if (!spec->thread ||
			    !strcmp(profile_text(p, p->tasks.p[t].comm), spec->thread))
				wall_ns += p->end_ns - p->start_ns;
		l.of[UNIT_NS] = MAX(l.of[UNIT_NS], wall_ns);
		l.of[UNIT_COUNT] = UINT64_MAX; /* runs are not in tables of stacks */
	}
	return l;
}

static bool is_amount(const struct report_column *c)
{
	bool is_plain = c->kind == CELL_NS || c->kind == CELL_BYTES || c->kind == CELL_COUNT;
	return is_plain || cell_form(c->kind) == CELL_ESTIMATE;
}

static void check_tables(const struct report *r, const struct limits *l, const char *what)
{
	vec_foreach(t, &r->tables)
		for (size_t i = 0; i < t->nr_rows * t->nr_columns; i++) {
			const struct report_column *c = &t->columns[i % t->nr_columns];
			uint64_t v =
				cell_form(c->kind) ? t->cells[i].estimate.value : t->cells[i].u;
			bool is_other = !strcmp(c->key, "below_ns") || /* of a histogram */
					strstr(c->key, "_per_s");
			if (!is_amount(c) || v == UINT64_MAX || is_other ||
			    v <= l->of[cell_unit(c->kind)])
				continue;
			tap_fail(__FILE__, __LINE__, "%s: table %s, column %s: %" PRIu64, what,
				 t->key, c->key, v);
		}
}

static void check_page(const struct profile *p, const struct select_spec *spec, const char *what,
		       unsigned *nr)
{
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(err_release) struct err err = {0};
	if (views_page(r, p, spec, NULL, &(struct view_limits){0}, &err))
		return; /* refused, or nothing matches */
	(*nr)++;
	struct limits l = limits_of(p, spec);
	check_tables(r, &l, what);
	CLEANUP(arena_release) struct arena a = {0};
	struct selection sel;
	bool is_part = !views_select(&a, p, spec, &sel, NULL) && view_nr_out(&sel);
	vec_foreach(n, &r->notes) {
		if (select_scope(spec) != SELECT_ALL)
			CHECK(!strstr(*n, "of non-idle thread time"));
		if (is_part)
			CHECK(!strstr(*n, ") of CPU time") && !strstr(*n, "of the time is") &&
			      !strstr(*n, "the target used less"));
	}
	const char *switches = report_get_fact(r, FACT_CONTEXT_SWITCHES);
	CHECK(!switches || select_scope(spec) == SELECT_ALL || spec->time ||
	      strstr(switches, "of the selection"));
}

/* The most frequent thread, and a function in the middle of the stacks. */
static void pick(const struct profile *p, const char **ret_thread, const char **ret_function)
{
	const struct table *t = &p->tables.p[0];
	vec_foreach(x, &p->tables)
		if (x->n && (!t->n || x->id == TABLE_OFF_CPU || x->id == TABLE_SAMPLES))
			t = x;
	*ret_thread = NULL;
	*ret_function = NULL;
	for (size_t i = 0; i < t->n && !*ret_function; i++) {
		stack_id at = t->stack[i];
		for (int up = 0; up < 2 && at && p->stacks.p[at].parent; up++)
			at = p->stacks.p[at].parent;
		const struct location *l = &p->locations.p[p->stacks.p[at].loc];
		*ret_thread = profile_text(p, p->tasks.p[t->task[i]].comm);
		if (at && l->nr_frames)
			*ret_function = profile_frame_name(p, &p->frames.p[l->first_frame]);
	}
}

TEST(filtered_pages_have_no_number_above_their_selection)
{
	unsigned nr = 0;
	for (size_t i = 0; i < ARRAY_LEN(inputs); i++) {
		CLEANUP(profile_free_p) struct profile *p = NULL;
		CLEANUP(err_release) struct err err = {0};
		CLEANUP(buf_release) struct buf what = {0};
		const char *thread;
		const char *function;
		if (load_profile(&p, inputs[i], &(struct load_options){0}, &err)) {
			tap_fail(__FILE__, __LINE__, "%s", err_msg(&err));
			continue;
		}
		pick(p, &thread, &function);
		const struct select_spec specs[] = {
			{.thread = thread},
			{.time = "0%..50%"},
			{.within = function},
			{.function = function},
			{.exclude = function},
			{.module = "libc"},
			{.mode = SELECT_USER},
			{.mode = SELECT_KERNEL},
			{.reason = "lock,fsync,sleep"},
			{.reason = "idle"},
			{.min_duration = "5ms"},
			{.max_duration = "1ms"},
			{.object = "log"},
			{.waker = "."},
		};
		for (size_t k = 0; k < ARRAY_LEN(specs); k++) {
			buf_clear(&what);
			buf_addf(&what, "%s, filter %zu", inputs[i], k);
			check_page(p, &specs[k], buf_str(&what), &nr);
		}
	}
	CHECK(nr > 60);
}

/* ---- the functions that a pattern matches ------------------------------------------------------ */

/* Returns the note on a pattern, or "". @r owns it. */
static const char *note_of(struct report *r, const char *pattern, const char *function)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	CLEANUP(arena_release) struct arena a = {0};
	uint32_t t = made_table(p, "cycles", 2);
	made_sample(p, t, &(struct made){.stack = "main;spin_lock;spin_wait", .nr = 30});
	made_sample(p, t, &(struct made){.stack = "main;spin_lock;spin_lock", .nr = 10});
	made_sample(p, t, &(struct made){.stack = "main;spin_wait<work", .nr = 20});
	made_sample(p, t, &(struct made){.stack = "main;read [k]", .nr = 38});
	made_sample(p, t, &(struct made){.stack = "main;spinlet", .nr = 1});
	made_sample(p, t, &(struct made){.stack = "main;spinner", .nr = 1});
	profile_seal(p);
	struct selection sel;
	CHECK(!select_run(&a, p, &(struct select_spec){.function = function}, &sel, NULL));
	matched_note(r, &sel, "--callers", pattern);
	return r->notes.n ? r->notes.p[r->notes.n - 1] : "";
}

TEST(a_pattern_that_matches_several_functions_names_them)
{
	CLEANUP(report_free_p) struct report *r = report_new();
	CHECK_STR(
		note_of(r, "spin", NULL),
		"--callers 'spin' matches 4 functions: spin_wait (50.0 %), spin_lock (40.0 %), "
		"spinlet (1.00 %) and 1 more; one of them is on the stacks of 62.0 % of what is shown");
	CHECK_STR(
		note_of(r, "spin_l|spin_w", "spin_lock"),
		"--callers 'spin_l|spin_w' matches 2 functions: spin_lock (100 %), spin_wait (75.0 %)");
	CHECK_STR(note_of(r, "^rea", NULL), "--callers '^rea' matches 1 function: read (38.0 %)");
}

TEST(no_note_where_it_would_say_nothing)
{
	CLEANUP(report_free_p) struct report *r = report_new();
	CHECK_STR(note_of(r, NULL, NULL), "");
	CHECK_STR(note_of(r, "spin_lock", NULL), ""); /* its own name, and of no other */
	CHECK_STR(note_of(r, "nowhere", NULL), "");
	CHECK_STR(note_of(r, "spinner", "spin_lock"), ""); /* not on the stacks that are shown */
}
