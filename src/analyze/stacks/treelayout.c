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

/* Returns node ids in preorder; owned by the caller. */
static uint32_t *preorder(const struct input *in, bool is_time_ordered)
{
	size_t n = in->n;
	struct links *links = xcalloc(n, sizeof(*links)); /* by node id */
	uint32_t *order = xreallocarray(NULL, n, sizeof(*order));
	for (size_t i = n; i-- > 1;) {
		struct links *parent = &links[in->nodes[i].parent];
		links[i].next = parent->first;
		parent->first = (uint32_t)i;
	}
	if (!is_time_ordered)
		sort_siblings(in, links);
	size_t k = 0;
	uint32_t at = 0;
	for (;;) {
		order[k++] = at;
		uint32_t to = links[at].first;
		while (!to && at) {
			to = links[at].next;
			at = to ? at : in->nodes[at].parent;
		}
		if (!to)
			break;
		at = to;
	}
	ASSERT(k == n);
	free(links);
	return order;
}

static void place_nodes(const struct input *in, struct report_tree *t, uint32_t *place)
{
	size_t n = in->n;
	uint32_t *order = preorder(in, t->is_time_ordered);
	uint32_t *last = xcalloc(n, sizeof(*last)); /* by preorder index: last child so far */
	for (uint32_t i = 0; i < n; i++) {
		const struct treelayout_node *b = &in->nodes[order[i]];
		place[order[i]] = i;
		struct tree_node *to = &t->nodes[i];
		*to = (struct tree_node){.name = b->name,
					 .module = b->module,
					 .flags = b->flags,
					 .self = b->self,
					 .total = b->self};
		if (t->before)
			t->before[i] = (struct tree_before){b->before, b->before};
		if (!i)
			continue;
		uint32_t parent = place[b->parent];
		to->parent = parent;
		to->depth = t->nodes[parent].depth + 1;
		if (last[parent])
			t->nodes[last[parent]].next = i;
		else
			t->nodes[parent].first_child = i;
		last[parent] = i;
	}
	free(last);
	free(order);
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
		struct tree_node *n = &t->nodes[i];
		uint64_t self = t->before[i].self;
		uint64_t total = t->before[i].total;
		if (t->is_normalised && now) {
			uint64_t start = scaled(sum, now, before);
			self = scaled(sum + self, now, before) - start;
			total = scaled(sum + total, now, before) - start;
		}
		sum = u64_add(sum, t->before[i].self);
		n->delta = difference(n->total, total);
		n->delta_self = difference(n->self, self);
	}
}

void treelayout_fill(struct report_tree *t, const struct treelayout_node *nodes,
		     const struct intern *names, uint32_t *ret_place)
{
	const struct input in = {nodes, t->nr_nodes, names};
	CLEANUP(free_p)
	uint32_t *place = ret_place ? NULL : xreallocarray(NULL, in.n, sizeof(*place));
	place_nodes(&in, t, ret_place ? ret_place : place);
	for (size_t i = in.n; i-- > 1;) {
		uint32_t parent = t->nodes[i].parent;
		t->nodes[parent].total = u64_add(t->nodes[parent].total, t->nodes[i].total);
		if (t->before)
			t->before[parent].total =
				u64_add(t->before[parent].total, t->before[i].total);
	}
	if (t->before)
		set_deltas(t);
}
