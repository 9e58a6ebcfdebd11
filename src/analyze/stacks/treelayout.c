/* Order, totals and deltas of call trees; see treelayout.h. */
#include "base/base.h"
#include "analyze/stacks/treelayout.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/vec.h"

struct input {
	const struct treelayout_node *nodes;
	size_t n;
	const struct intern *names;
};

struct ranked {
	struct sv text;
	str_id name;
};

static int by_text(const void *a, const void *b)
{
	const struct ranked *x = a;
	const struct ranked *y = b;
	return memcmp(x->text.p, y->text.p, MIN(x->text.n, y->text.n))
		       ?: COMPARE(x->text.n, y->text.n);
}

/* By str_id: rank of the name among the names of the tree, bytewise. */
static uint32_t *rank_names(const struct input *in)
{
	size_t nr_names = intern_count(in->names);
	uint32_t *rank = xcalloc(nr_names, sizeof(*rank));
	struct ranked *used = xreallocarray(NULL, nr_names, sizeof(*used));
	uint32_t nr = 0;
	for (size_t i = 0; i < in->n; i++) {
		str_id name = in->nodes[i].name;
		if (rank[name])
			continue;
		rank[name] = 1;
		used[nr++] = (struct ranked){intern_get(in->names, name), name};
	}
	qsort(used, nr, sizeof(*used), by_text);
	for (uint32_t i = 0; i < nr; i++)
		rank[used[i].name] = i;
	free(used);
	return rank;
}

struct links {
	uint32_t first;
	uint32_t next;
};

struct sibling {
	uint32_t rank;
	uint32_t id;
};

static int by_rank(const void *a, const void *b)
{
	const struct sibling *x = a;
	const struct sibling *y = b;
	return COMPARE(x->rank, y->rank) ?: COMPARE(x->id, y->id);
}

/* Sorts each list of siblings by name; most lists have one element. */
static void sort_siblings(const struct input *in, struct links *links)
{
	CLEANUP(free_p) uint32_t *rank = rank_names(in);
	VEC(struct sibling) list = {0};
	for (size_t i = 0; i < in->n; i++) {
		uint32_t c = links[i].first;
		if (!c || !links[c].next)
			continue;
		vec_clear(&list);
		for (; c; c = links[c].next)
			vec_push(&list, (struct sibling){rank[in->nodes[c].name], c});
		qsort(list.p, list.n, sizeof(*list.p), by_rank);
		links[i].first = list.p[0].id;
		for (size_t k = 0; k < list.n; k++)
			links[list.p[k].id].next = k + 1 < list.n ? list.p[k + 1].id : 0;
	}
	vec_release(&list);
}

/* Children of each node in input order or sorted by name; owned by the caller. */
static struct links *link_children(const struct input *in, bool is_time_ordered)
{
	struct links *links = xcalloc_huge(in->n, sizeof(*links)); /* by node id */
	for (size_t i = in->n; i-- > 1;) {
		struct links *parent = &links[in->nodes[i].parent];
		links[i].next = parent->first;
		parent->first = (uint32_t)i;
	}
	if (!is_time_ordered)
		sort_siblings(in, links);
	return links;
}

/* Walks the nodes in preorder and copies each; the links between them are set by add_up. */
static void place_nodes(const struct input *in, struct report_tree *t, uint32_t *ret_place)
{
	CLEANUP(free_p) struct links *links = link_children(in, t->is_time_ordered);
	VEC(uint32_t) path = {0}; /* by depth: index in preorder */
	uint32_t at = 0;
	uint32_t depth = 0;
	for (uint32_t i = 0;; i++) {
		const struct treelayout_node *b = &in->nodes[at];
		t->nodes[i] = (struct tree_node){.name = b->name,
						 .module = b->module,
						 .parent = depth ? path.p[depth - 1] : 0,
						 .depth = depth,
						 .flags = b->flags,
						 .self = b->self,
						 .total = b->self};
		if (t->before)
			t->before[i] = (struct tree_before){.total = b->before, .self = b->before};
		if (ret_place)
			ret_place[at] = i;
		path.n = depth;
		vec_push(&path, i);
		uint32_t to = links[at].first;
		depth += to != 0;
		while (!to && at) {
			to = links[at].next;
			at = to ? at : in->nodes[at].parent;
			depth -= to == 0;
		}
		if (!to) {
			ASSERT(i + 1 == in->n);
			break;
		}
		at = to;
	}
	vec_release(&path);
}

/* Sets totals and links: in reverse preorder, children come before their parents, last ones first. */
static void add_up(struct report_tree *t)
{
	for (size_t i = t->nr_nodes; i-- > 1;) {
		struct tree_node *n = &t->nodes[i];
		struct tree_node *parent = &t->nodes[n->parent];
		parent->total = u64_add(parent->total, n->total);
		n->next = parent->first_child;
		parent->first_child = (uint32_t)i;
		if (t->before)
			t->before[n->parent].total =
				u64_add(t->before[n->parent].total, t->before[i].total);
	}
}

static uint64_t scaled(uint64_t v, uint64_t to, uint64_t from)
{
	if (!from)
		return v;
	unsigned __int128 x = (unsigned __int128)v * to / from;
	return x > UINT64_MAX ? UINT64_MAX : (uint64_t)x;
}

static int64_t difference(uint64_t now, uint64_t before)
{
	if (now >= before)
		return (int64_t)MIN(now - before, (uint64_t)INT64_MAX);
	return -(int64_t)MIN(before - now, (uint64_t)INT64_MAX);
}

/*
 * Scales the "before" weights: the scaled weight of a node is the difference of two scaled sums
 * along preorder, so that the parts of a node add up to the node exactly.
 */
static void set_deltas(struct report_tree *t)
{
	uint64_t now = t->nodes[0].total;
	uint64_t before = t->before[0].total;
	uint64_t sum = 0;
	for (size_t i = 0; i < t->nr_nodes; i++) {
		const struct tree_node *n = &t->nodes[i];
		struct tree_before *b = &t->before[i];
		uint64_t self = b->self;
		uint64_t total = b->total;
		if (t->is_normalised && now) {
			uint64_t start = scaled(sum, now, before);
			self = scaled(sum + self, now, before) - start;
			total = scaled(sum + total, now, before) - start;
		}
		sum = u64_add(sum, b->self);
		b->delta = difference(n->total, total);
		b->delta_self = difference(n->self, self);
	}
}

void treelayout_fill(struct report_tree *t, const struct treelayout_node *nodes,
		     const struct intern *names, uint32_t *ret_place)
{
	const struct input in = {nodes, t->nr_nodes, names};
	place_nodes(&in, t, ret_place);
	add_up(t);
	if (t->before)
		set_deltas(t);
}
