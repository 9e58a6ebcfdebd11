/* analyze/calltree: sums, order, comparison. */
#include "base/base.h"
#include "tap.h"

#include "analyze/calltree.h"

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
	CHECK(t->nodes[1].delta == 10 && t->nodes[1].delta_self == 0);
	CHECK(t->nodes[3].delta == -30 && t->nodes[3].delta_self == -30);
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
		sum += t->nodes[i].delta_self;
	CHECK(sum == t->nodes[0].delta);
	CHECK(t->nodes[0].delta == 0);
	CHECK(t->nodes[1].delta == 0);
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
