/* analyze/: tables whose every number is known, and sums that must hold for any of them. */
#include "base/base.h"
#include "tap.h"

#include <errno.h>
#include <math.h>

#include "analyze/callers.h"
#include "analyze/calltext.h"
#include "analyze/calltree.h"
#include "analyze/named.h"
#include "analyze/overview.h"
#include "analyze/phases.h"
#include "analyze/threads.h"
#include "analyze/top.h"
#include "base/buf.h"
#include "made.h"

/* 100 samples: see the counts. */
static struct profile *make_profile(void)
{
	struct profile *p = profile_new();
	uint32_t t = made_table(p, "cycles", 2);
	static const struct made rows[] = {
		{.stack = "main;ethrex_vm::run;keccak::hash;keccak::f1600", .nr = 40},
		{.stack = "main;ethrex_trie::root;keccak::hash;keccak::f1600", .nr = 20},
		{.stack = "main;ethrex_trie::root;ethrex_trie::root;memcpy libc.so.6", .nr = 10},
		{.stack = "main;keccak::hash", .nr = 5},
		{.stack = "main;inlined<outer bin", .nr = 5},
		{.stack = "main;read libc.so.6;vfs_read [k]", .nr = 15},
		{.stack = "main", .nr = 5},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct made m = rows[i];
		m.ns = (i + 1) * 1000000000;
		m.weight = m.nr * 1000000;
		m.tid = i < 2 ? 11 + (int)i : 1;
		m.comm = i < 2 ? (i ? "worker-2" : "worker-1") : "main";
		made_sample(p, t, &m);
	}
	profile_mark(p, 3000000000, "second half");
	profile_seal(p);
	return p;
}

struct fixture {
	struct profile *p;
	struct arena a;
	struct selection sel;
	struct report *r;
};

static struct fixture make_fixture(const struct select_spec *spec)
{
	struct fixture f = {.p = make_profile(), .r = report_new()};
	CLEANUP(err_release) struct err err = {0};
	if (select_run(&f.a, f.p, spec, &f.sel, &err))
		tap_fail(__FILE__, __LINE__, "%s", err_msg(&err));
	return f;
}

static void fixture_release(struct fixture *f)
{
	report_free(f->r);
	arena_release(&f->a);
	profile_free(f->p);
}

static size_t column_of(const struct report_table *t, const char *key)
{
	for (size_t c = 0; c < t->nr_columns; c++)
		if (!strcmp(t->columns[c].key, key))
			return c;
	tap_fail(__FILE__, __LINE__, "no column '%s' in %s", key, t->key);
	return 0;
}

static const union cell *find_cell(const struct report_table *t, const char *name_column,
				   const char *name, const char *column)
{
	static const union cell none;
	size_t nc = column_of(t, name_column);
	for (size_t i = 0; i < t->nr_rows; i++)
		if (!strcmp(t->cells[i * t->nr_columns + nc].text, name))
			return &t->cells[i * t->nr_columns + column_of(t, column)];
	tap_fail(__FILE__, __LINE__, "no row '%s' in %s", name, t->key);
	return &none;
}

static void check_pct(int line, const struct report_table *t, const char *name_column,
		      const char *name, const char *column, double want)
{
	double v = find_cell(t, name_column, name, column)->d;
	if (!(fabs(v - want) < 1e-9))
		tap_fail(__FILE__, line, "%s of '%s' = %g, expected %g", column, name, v, want);
}
#define CHECK_PCT(t, nc, name, column, want) check_pct(__LINE__, t, nc, name, column, want)

static double sum_of(const struct report_table *t, const char *column)
{
	double sum = 0;
	size_t c = column_of(t, column);
	for (size_t i = 0; i < t->nr_rows; i++)
		sum += t->cells[i * t->nr_columns + c].d;
	return sum;
}

TEST(functions_have_self_and_total_and_recursion_counts_once)
{
	CLEANUP(fixture_release) struct fixture f = make_fixture(&(struct select_spec){0});
	top_report(f.r, &f.sel, BY_FUNCTION, &(struct view_limits){0});
	const struct report_table *t = &f.r->tables.p[0];
	CHECK_PCT(t, "function", "keccak::f1600", "self_pct", 60);
	CHECK_PCT(t, "function", "keccak::hash", "self_pct", 5);
	CHECK_PCT(t, "function", "keccak::hash", "total_pct", 65);
	CHECK_PCT(t, "function", "ethrex_trie::root", "total_pct", 30);
	CHECK_PCT(t, "function", "main", "total_pct", 100);
	CHECK_PCT(t, "function", "inlined", "self_pct", 5);
	CHECK_PCT(t, "function", "outer", "self_pct", 0);
	CHECK_PCT(t, "function", "outer", "total_pct", 5);
	CHECK(fabs(sum_of(t, "self_pct") - 100) < 1e-9);
	CHECK_STR(find_cell(t, "function", "vfs_read", "module")->text, "[kernel]");
	/* 60 of 100: Wilson's 95 % interval is 50.2..69.06 */
	CHECK(fabs(find_cell(t, "function", "keccak::f1600", "self_error_pct")->d - 9.43) < 0.05);
}

TEST(cut_tables_add_up_with_other)
{
	CLEANUP(fixture_release) struct fixture f = make_fixture(&(struct select_spec){0});
	for (enum group_by by = 0; by < BY_NR; by++) {
		top_report(f.r, &f.sel, by, &(struct view_limits){.max_rows = 2});
		top_report(f.r, &f.sel, by,
			   &(struct view_limits){.min_pct = 12, .sort = VIEW_BY_TOTAL});
	}
	threads_report(f.r, &f.sel, &(struct view_limits){.max_rows = 1});
	CHECK_U64(f.r->tables.n, 2 * BY_NR + 1);
	vec_foreach(t, &f.r->tables) {
		double sum = sum_of(t, strcmp(t->key, "threads") ? "self_pct" : "pct");
		if (fabs(sum - 100) > 1e-9)
			tap_fail(__FILE__, __LINE__, "%s adds up to %g", t->title, sum);
	}
	const struct report_table *t = &f.r->tables.p[0];
	CHECK_U64(t->nr_rows, 3);
	CHECK(t->nr_rows_total > 3);
	CHECK_PCT(t, "function", "<other>", "self_pct", 25);
	CHECK(isnan(find_cell(t, "function", "<other>", "total_pct")->d));
}

TEST(crates_fall_back_to_modules)
{
	CLEANUP(fixture_release) struct fixture f = make_fixture(&(struct select_spec){0});
	top_report(f.r, &f.sel, BY_CRATE, &(struct view_limits){0});
	const struct report_table *t = &f.r->tables.p[0];
	CHECK_PCT(t, "crate", "keccak", "self_pct", 65);
	CHECK_PCT(t, "crate", "ethrex_trie", "total_pct", 30);
	CHECK_PCT(t, "crate", "libc.so.6", "self_pct", 10);
	CHECK_PCT(t, "crate", "libc.so.6", "total_pct", 25);
	CHECK_PCT(t, "crate", "[kernel]", "self_pct", 15);
}

TEST(callers_are_the_next_frame_or_the_nearest_that_matches)
{
	CLEANUP(fixture_release) struct fixture f = make_fixture(&(struct select_spec){0});
	struct view_limits all = {0};
	CHECK(!callers_report(f.r, &f.sel, "f1600|keccak::hash", NULL, BY_FUNCTION, &all, NULL));
	const struct report_table *t = &f.r->tables.p[0];
	CHECK(fabs(find_cell(t, "caller", "ethrex_vm::run", "self_pct")->d - 4000.0 / 65) < 1e-9);
	CHECK_PCT(t, "caller", "ethrex_vm::run", "all_pct", 40);
	CHECK_PCT(t, "caller", "ethrex_trie::root", "all_pct", 20);
	CHECK_PCT(t, "caller", "main", "all_pct", 5);
	CHECK(fabs(sum_of(t, "self_pct") - 100) < 1e-9);
	CHECK(!callers_report(f.r, &f.sel, "f1600|keccak::hash", "^ethrex_", BY_CRATE, &all, NULL));
	t = &f.r->tables.p[1];
	CHECK_PCT(t, "caller", "ethrex_vm", "all_pct", 40);
	CHECK_PCT(t, "caller", "<none>", "all_pct", 5);
	CHECK(!callers_report(f.r, &f.sel, "^main$", NULL, BY_FUNCTION, &all, NULL));
	CHECK_PCT(&f.r->tables.p[2], "caller", "<root>", "self_pct", 100);
}

TEST(callees_include_the_function_itself)
{
	CLEANUP(fixture_release) struct fixture f = make_fixture(&(struct select_spec){0});
	struct view_limits all = {0};
	CHECK(!callees_report(f.r, &f.sel, "keccak::hash", NULL, BY_FUNCTION, &all, NULL));
	const struct report_table *t = &f.r->tables.p[0];
	CHECK_PCT(t, "callee", "keccak::f1600", "all_pct", 60);
	CHECK_PCT(t, "callee", "<self>", "all_pct", 5);
	CHECK(!callees_report(f.r, &f.sel, "ethrex_trie::root", NULL, BY_FUNCTION, &all, NULL));
	t = &f.r->tables.p[1];
	CHECK_PCT(t, "callee", "memcpy", "all_pct", 10);
	CHECK_PCT(t, "callee", "keccak::hash", "all_pct", 20);
	CLEANUP(err_release) struct err err = {0};
	CHECK(callees_report(f.r, &f.sel, "nosuch", NULL, BY_FUNCTION, &all, &err) == -ENOENT);
}

TEST(threads_are_rows_and_numbered_ones_a_group)
{
	CLEANUP(fixture_release) struct fixture f = make_fixture(&(struct select_spec){0});
	threads_report(f.r, &f.sel, &(struct view_limits){0});
	thread_groups_report(f.r, &f.sel, &(struct view_limits){0});
	CHECK_PCT(&f.r->tables.p[0], "thread", "worker-1", "pct", 40);
	CHECK_U64(find_cell(&f.r->tables.p[0], "thread", "worker-2", "tid")->u, 12);
	CHECK_PCT(&f.r->tables.p[1], "thread", "worker-#", "pct", 60);
	CHECK_U64(find_cell(&f.r->tables.p[1], "thread", "worker-#", "threads")->u, 2);
	CHECK_PCT(&f.r->tables.p[1], "thread", "main", "pct", 40);
}

TEST(phases_add_up_and_marks_are_phases)
{
	static const struct phase_rule rules[] = {{"vm", "^ethrex_vm"}, {"trie", "^ethrex_trie"}};
	CLEANUP(fixture_release)
	struct fixture f = make_fixture(&(struct select_spec){.rules = rules, .nr_rules = 2});
	phases_report(f.r, &f.sel, 1);
	const struct report_table *t = &f.r->tables.p[0];
	CHECK_PCT(t, "phase", "vm", "pct", 40);
	CHECK_PCT(t, "phase", "trie", "pct", 30);
	CHECK_PCT(t, "phase", "<other>", "pct", 30);
	t = &f.r->tables.p[1];
	CHECK_U64(t->nr_rows, 3);
	CHECK_STR(find_cell(t, "phase", "trie", "function")->text, "keccak::f1600");
	CHECK(fabs(find_cell(t, "phase", "trie", "self_pct")->d - 200.0 / 3) < 1e-9);

	size_t n;
	CHECK_U64((phases_from_marks(&f.a, f.p, &n), n), 1);
	struct select_spec spec = {.rules = phases_from_marks(&f.a, f.p, &n), .nr_rules = 1};
	struct selection sel;
	CHECK(!select_run(&f.a, f.p, &spec, &sel, NULL));
	phases_report(f.r, &sel, 0);
	CHECK_PCT(&f.r->tables.p[2], "phase", "second half", "pct", 40);
}

TEST(named_rows_add_up_and_the_nearest_frame_decides)
{
	CLEANUP(fixture_release) struct fixture f = make_fixture(&(struct select_spec){0});
	struct named_rule *rules;
	size_t n;
	CHECK(!named_parse(&f.a,
			   SV("# rows\nhashing\tkeccak\tSHA-3 work\n\nvm\tethrex_vm\n"
			      "trie ^ethrex_trie the trie\n"),
			   &rules, &n, NULL));
	CHECK_U64(n, 3);
	CHECK_STR(rules[0].remark, "SHA-3 work");
	CHECK_STR(rules[1].remark, "");
	CHECK_STR(rules[2].remark, "the trie");
	CHECK(!named_report(f.r, &f.sel, rules, n, NAMED_NEAREST_LEAF, NULL));
	CHECK(!named_report(f.r, &f.sel, rules, n, NAMED_NEAREST_ROOT, NULL));
	const struct report_table *leaf = &f.r->tables.p[0];
	const struct report_table *root = &f.r->tables.p[1];
	CHECK_PCT(leaf, "name", "hashing", "pct", 65);
	CHECK_PCT(leaf, "name", "vm", "pct", 0);
	CHECK_PCT(leaf, "name", "vm", "total_pct", 40);
	CHECK_PCT(leaf, "name", "trie", "pct", 10);
	CHECK_PCT(leaf, "name", "<other>", "pct", 25);
	CHECK_PCT(root, "name", "hashing", "pct", 5);
	CHECK_PCT(root, "name", "vm", "pct", 40);
	CHECK_PCT(root, "name", "trie", "pct", 30);
	CHECK(fabs(sum_of(leaf, "pct") - 100) < 1e-9);
	CHECK(fabs(sum_of(root, "pct") - 100) < 1e-9);
	CLEANUP(err_release) struct err err = {0};
	CHECK(named_parse(&f.a, SV("x y\nalone\n"), &rules, &n, &err) == -EINVAL);
	CHECK(strstr(err_msg(&err), "line 2"));
	struct named_rule bad = {"x", "a(", ""};
	CHECK(named_report(f.r, &f.sel, &bad, 1, NAMED_NEAREST_LEAF, &err) == -EINVAL);
}

TEST(pruned_trees_add_up_to_the_limit)
{
	CLEANUP(fixture_release) struct fixture f = make_fixture(&(struct select_spec){0});
	calltext_report(f.r, &f.sel, &(struct calltext_options){.min_pct = 12});
	calltext_report(f.r, &f.sel,
			&(struct calltext_options){.flags = CALLTREE_REVERSE, .max_depth = 1});
	vec_foreach(t, &f.r->trees) {
		CHECK_U64(t->nodes[0].total, f.sel.weight);
		for (uint32_t i = 0; i < t->nr_nodes; i++) {
			const struct tree_node *n = &t->nodes[i];
			uint64_t sum = n->self;
			for (uint32_t c = n->first_child; c; c = t->nodes[c].next) {
				CHECK_U64(t->nodes[c].parent, i);
				sum += t->nodes[c].total;
			}
			bool is_other = !strcmp(intern_str(&f.r->names, n->name), "<other>");
			CHECK(sum <= n->total);
			CHECK(is_other || (n->total - sum) * 100 < 12 * t->nodes[0].total);
		}
	}
	const struct report_tree *t = &f.r->trees.p[0];
	const struct tree_node *first = &t->nodes[t->nodes[1].first_child];
	CHECK_STR(intern_str(&f.r->names, first->name), "ethrex_vm::run");
}

TEST(a_view_within_a_function_is_its_100_percent)
{
	CLEANUP(fixture_release)
	struct fixture f = make_fixture(&(struct select_spec){.within = "^ethrex_trie::root$"});
	top_report(f.r, &f.sel, BY_FUNCTION, &(struct view_limits){0});
	const struct report_table *t = &f.r->tables.p[0];
	CHECK_PCT(t, "function", "ethrex_trie::root", "total_pct", 100);
	CHECK(fabs(find_cell(t, "function", "memcpy", "self_pct")->d - 1000.0 / 30) < 1e-9);
	CHECK(fabs(sum_of(t, "self_pct") - 100) < 1e-9);
	for (size_t i = 0; i < t->nr_rows; i++)
		CHECK(strcmp(t->cells[i * t->nr_columns + column_of(t, "function")].text, "main"));
}

TEST(few_samples_are_explained)
{
	CLEANUP(fixture_release) struct fixture f = make_fixture(&(struct select_spec){0});
	overview_begin(f.r, &f.sel);
	CHECK(f.r->notes.n >= 1);
	CHECK(strstr(f.r->notes.p[0], "only 100 samples"));
	CHECK(strstr(f.r->notes.p[0], "mostly idle")); /* 0.1 s of CPU in 6 s */
	overview_report(f.r, &f.sel, "x.data", &(struct view_limits){.max_rows = 3});
	CHECK_U64(f.r->tables.n, 3);
	CHECK_STR(f.r->hints.p[2], "assay report x.data --callers '^keccak::f1600$'");
}

TEST(an_empty_profile_has_an_overview)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	profile_seal(p);
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(report_free_p) struct report *r = report_new();
	struct selection s;
	CHECK(!select_run(&a, p, &(struct select_spec){0}, &s, NULL));
	overview_begin(r, &s);
	overview_report(r, &s, "x", &(struct view_limits){.max_rows = 3});
	calltext_report(r, &s, &(struct calltext_options){0});
	CHECK_U64(r->tables.p[0].nr_rows, 0);
	CHECK(strstr(r->notes.p[0], "no samples"));
}
