/* analyze/calltree: sums, order, comparison. */
#include "base/base.h"
#include "tap.h"

#include "analyze/stacks/calltree.h"
#include "made.h"

static void add(struct calltree *ct, const char *line, uint64_t weight, uint64_t before)
{
	struct sv names[64];
	size_t n = 0;
	struct sv s = sv_from_str(line);
	while (s.n)
		names[n++] = sv_split(&s, ';');
	calltree_add_names(ct, names, n, weight, before);
}

/* "name:total/self" of every node in preorder, indented by "." */
static const char *shape(const struct report *r, const struct report_tree *t)
{
	static char text[4096];
	size_t n = 0;
	for (size_t i = 0; i < t->nr_nodes; i++) {
		const struct tree_node *nd = &t->nodes[i];
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%.*s%s:%" PRIu64 "/%" PRIu64,
				      i ? " " : "", (int)nd->depth, "........",
				      intern_str(&r->names, nd->name), nd->total, nd->self);
	}
	return text;
}

TEST(tree_sums_up_and_sorts_siblings_by_name)
{
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(calltree_free_p) struct calltree *ct = calltree_new(r, 0);
	add(ct, "z;b", 3, 0);
	add(ct, "a", 1, 0);
	add(ct, "z;a;x", 5, 0);
	add(ct, "z", 2, 0);
	add(ct, "z;b", 4, 0);
	struct report_tree *t = calltree_finish(ct, "flame", "tree");
	CHECK_STR(shape(r, t), "all:15/0 .a:1/1 .z:14/2 ..a:5/0 ...x:5/5 ..b:7/7");
	CHECK_U64(t->nodes[0].total, 15);
	CHECK_U64(t->nodes[2].first_child, 3);
	CHECK_U64(t->nodes[3].next, 5);
	CHECK_U64(t->nodes[5].next, 0);
}

TEST(root_frames_of_numbered_threads_are_one)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	CLEANUP(arena_release) struct arena a = {0};
	uint32_t t = made_table(p, "cpu-clock", 2);
	static const char *const names[] = {"opt.1",   "opt.22",  "opt.3",
					    "python3", "python3", "io-7"};
	for (int i = 0; i < 6; i++)
		made_sample(p, t, &(struct made){.stack = "main", .comm = names[i], .tid = 10 + i});
	profile_seal(p);
	struct selection sel;
	CHECK(!select_run(&a, p, &(struct select_spec){0}, &sel, NULL));
	static const struct {
		unsigned flags;
		const char *shape;
	} cases[] = {{CALLTREE_ROOT_GROUP, "all:6/0 .io-7:1/0 ..main:1/1 .opt.#:3/0 ..main:3/3 "
					   ".python3:2/0 ..main:2/2"},
		     {CALLTREE_ROOT_COMM, "all:6/0 .io-7:1/0 ..main:1/1 .opt.1:1/0 ..main:1/1 "
					  ".opt.22:1/0 ..main:1/1 .opt.3:1/0 ..main:1/1 "
					  ".python3:2/0 ..main:2/2"}};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(report_free_p) struct report *r = report_new();
		CLEANUP(calltree_free_p) struct calltree *ct = calltree_new(r, cases[i].flags);
		calltree_add(ct, &sel);
		CHECK_STR(shape(r, calltree_finish(ct, "flame", "tree")), cases[i].shape);
	}
}

TEST(reverse_tree_starts_at_the_leaf)
{
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(calltree_free_p) struct calltree *ct = calltree_new(r, CALLTREE_REVERSE);
	add(ct, "main;f;malloc", 3, 0);
	add(ct, "main;g;malloc", 1, 0);
	struct report_tree *t = calltree_finish(ct, "flame", "tree");
	CHECK_STR(shape(r, t), "all:4/0 .malloc:4/0 ..f:3/0 ...main:3/3 ..g:1/0 ...main:1/1");
}

TEST(direct_recursion_folds_on_request)
{
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(calltree_free_p) struct calltree *ct = calltree_new(r, CALLTREE_FOLD_RECURSION);
	add(ct, "f;f;f;g;f", 2, 0);
	add(ct, "f;g", 1, 0);
	struct report_tree *t = calltree_finish(ct, "flame", "tree");
	CHECK_STR(shape(r, t), "all:3/0 .f:3/0 ..g:3/1 ...f:2/2");
}

TEST(comparison_keeps_what_vanished_and_sees_parents_change)
{
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(calltree_free_p) struct calltree *ct = calltree_new(r, 0);
	add(ct, "p;a", 50, 10);
	add(ct, "p;gone", 0, 30);
	struct report_tree *t = calltree_finish(ct, "flame", "tree");
	CHECK(t->is_differential);
	CHECK_STR(shape(r, t), "all:50/0 .p:50/0 ..a:50/50 ..gone:0/0");
	CHECK_U64(t->before[0].total, 40);
	CHECK(t->before[1].delta == 10 && t->before[1].delta_self == 0);
	CHECK(t->before[3].delta == -30 && t->before[3].delta_self == -30);
}

TEST(normalised_deltas_of_equal_shares_are_zero_and_add_up)
{
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(calltree_free_p) struct calltree *ct = calltree_new(r, CALLTREE_NORMALISE);
	add(ct, "a;b", 3, 3000);
	add(ct, "a;c", 4, 4000);
	add(ct, "d", 7, 6999);
	add(ct, "e", 0, 1);
	struct report_tree *t = calltree_finish(ct, "flame", "tree");
	int64_t sum = 0;
	for (size_t i = 0; i < t->nr_nodes; i++)
		sum += t->before[i].delta_self;
	CHECK(sum == t->before[0].delta);
	CHECK(t->before[0].delta == 0);
	CHECK(t->before[1].delta == 0);
}

TEST(sums_beyond_64_bits_stay_at_the_largest_number)
{
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(calltree_free_p) struct calltree *ct = calltree_new(r, 0);
	add(ct, "a", UINT64_MAX - 1, 0);
	add(ct, "b", 5, 0);
	struct report_tree *t = calltree_finish(ct, "flame", "tree");
	CHECK_U64(t->nodes[0].total, UINT64_MAX);
}

TEST(empty_tree_is_a_root)
{
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(calltree_free_p) struct calltree *ct = calltree_new(r, 0);
	struct report_tree *t = calltree_finish(ct, "flame", "tree");
	CHECK_U64(t->nr_nodes, 1);
	CHECK_U64(t->nodes[0].total, 0);
}

/* ---- from profiles ------------------------------------------------------------------------ */

static struct profile *made_profile(void)
{
	struct profile *p = profile_new();
	struct table shape = {.event = profile_cstr(p, "cycles"),
			      .time_kind = TABLE_TIME_INSTANT,
			      .nr_columns = 1,
			      .columns = {{.name = profile_cstr(p, "samples")}}};
	(void)profile_table(p, &shape);
	return p;
}

/* @path: names from the root, separated by ';'. */
static void sample(struct profile *p, uint64_t time_ns, const char *comm, int tid, const char *path,
		   int64_t weight)
{
	struct sv s = sv_from_str(path);
	stack_id at = 0;
	while (s.n) {
		loc_id loc = made_named(p, sv_split(&s, ';'), sv_from("", 0), 0);
		at = profile_stack(p, at, loc);
	}
	task_id task = profile_task(p, 100, tid, profile_cstr(p, comm), time_ns);
	profile_sample(p, 0, time_ns, at, task, 0, &weight);
}

/* The tree of the profiles' only events; the second one, if any, is merged in. */
static const char *tree_of(struct profile *p, struct profile *q, unsigned flags)
{
	static char text[4096];
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(calltree_free_p) struct calltree *ct = calltree_new(r, flags);
	struct select_spec spec = {0};
	struct profile *both[] = {p, q};
	for (size_t i = 0; i < ARRAY_LEN(both) && both[i]; i++) {
		struct selection sel;
		if (!both[i]->is_sealed)
			profile_seal(both[i]);
		CHECK(!select_run(&a, both[i], &spec, &sel, NULL));
		calltree_add(ct, &sel);
	}
	struct report_tree *t = calltree_finish(ct, "flame", "tree");
	snprintf(text, sizeof(text), "%s", shape(r, t));
	return text;
}

TEST(profiles_merge_by_name_with_or_without_distinct_names)
{
	CLEANUP(profile_free_p) struct profile *p = made_profile();
	CLEANUP(profile_free_p) struct profile *q = made_profile();
	sample(p, 1, "x", 100, "main;a", 3);
	sample(p, 2, "x", 100, "main;a;b", 2);
	sample(q, 1, "x", 100, "main;a", 10);
	sample(q, 2, "x", 100, "main;c", 1);
	/* A second location with a name that is taken: the slow path. */
	loc_id nothrow = made_named(q, SV("a"), SV("libx.so"), 0);
	stack_id at = profile_stack(q, 0, made_named(q, SV("main"), sv_from("", 0), 0));
	profile_sample(q, 0, 3, profile_stack(q, at, nothrow), 1, 0, &(int64_t){5});
	CHECK_STR(tree_of(p, NULL, 0), "all:5/0 .main:5/0 ..a:5/3 ...b:2/2");
	CHECK_STR(tree_of(q, NULL, 0), "all:16/0 .main:16/0 ..a:15/15 ..c:1/1");
	CHECK_STR(tree_of(p, q, 0), "all:21/0 .main:21/0 ..a:20/18 ...b:2/2 ..c:1/1");
}

TEST(root_frames_name_threads_and_processes)
{
	CLEANUP(profile_free_p) struct profile *p = made_profile();
	sample(p, 1, "srv", 100, "main", 1);
	sample(p, 2, "worker", 101, "run", 2);
	sample(p, 3, "srv", 100, "main;f", 4);
	CHECK_STR(tree_of(p, NULL, CALLTREE_ROOT_COMM),
		  "all:7/0 .srv:5/0 ..main:5/1 ...f:4/4 .worker:2/0 ..run:2/2");
	CHECK_STR(tree_of(p, NULL, CALLTREE_ROOT_PROCESS),
		  "all:7/0 .srv-100:7/0 ..main:5/1 ...f:4/4 ..run:2/2");
	CHECK_STR(tree_of(p, NULL, CALLTREE_ROOT_THREAD),
		  "all:7/0 .srv-100/100:5/0 ..main:5/1 ...f:4/4 .worker-100/101:2/0 ..run:2/2");
	CHECK_STR(tree_of(p, NULL, CALLTREE_ROOT_COMM | CALLTREE_REVERSE),
		  "all:7/0 .f:4/0 ..main:4/0 ...srv:4/4 .main:1/0 ..srv:1/1 .run:2/0 "
		  "..worker:2/2");
}

TEST(flame_chart_follows_time_and_merges_neighbours_alone)
{
	CLEANUP(profile_free_p) struct profile *p = made_profile();
	sample(p, 40, "x", 100, "main;b", 1);
	sample(p, 10, "x", 100, "main;b", 1);
	sample(p, 20, "x", 100, "main;b;c", 1);
	sample(p, 30, "x", 100, "main;a", 1);
	CHECK_STR(tree_of(p, NULL, CALLTREE_TIME_ORDER),
		  "all:4/0 .main:4/0 ..b:2/1 ...c:1/1 ..a:1/1 ..b:1/1");
}
