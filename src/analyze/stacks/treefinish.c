/* Finishes a call tree: order, sums, differences; see calltree.h. */
#include "base/base.h"
#include "analyze/stacks/calltree.h"

#include <stdlib.h>

#include "analyze/stacks/treebuild.h"
#include "base/mem.h"

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
static uint32_t *rank_names(const struct calltree *ct, uint32_t *ret_nr)
{
	size_t nr_names = intern_count(&ct->r->names);
	uint32_t *rank = xcalloc(nr_names, sizeof(*rank));
	struct ranked *used = xreallocarray(NULL, nr_names, sizeof(*used));
	uint32_t nr = 0;
	vec_foreach(n, &ct->nodes) {
		if (rank[n->name])
			continue;
		rank[n->name] = 1;
		used[nr++] = (struct ranked){intern_get(&ct->r->names, n->name), n->name};
	}
	qsort(used, nr, sizeof(*used), by_text);
	for (uint32_t i = 0; i < nr; i++)
		rank[used[i].name] = i;
	free(used);
	*ret_nr = nr;
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
static void sort_siblings(const struct calltree *ct, struct links *links)
{
	uint32_t nr_ranks;
	CLEANUP(free_p) uint32_t *rank = rank_names(ct, &nr_ranks);
	VEC(struct sibling) list = {0};
	for (size_t i = 0; i < ct->nodes.n; i++) {
		uint32_t c = links[i].first;
		if (!c || !links[c].next)
			continue;
		vec_clear(&list);
		for (; c; c = links[c].next)
			vec_push(&list, (struct sibling){rank[ct->nodes.p[c].name], c});
		qsort(list.p, list.n, sizeof(*list.p), by_rank);
		links[i].first = list.p[0].id;
		for (size_t k = 0; k < list.n; k++)
			links[list.p[k].id].next = k + 1 < list.n ? list.p[k + 1].id : 0;
	}
	vec_release(&list);
}

/* Returns node ids in preorder; owned by the caller. */
static uint32_t *preorder(const struct calltree *ct)
{
	size_t n = ct->nodes.n;
	struct links *links = xcalloc(n, sizeof(*links)); /* by node id */
	uint32_t *order = xreallocarray(NULL, n, sizeof(*order));
	for (size_t i = n; i-- > 1;) {
		struct links *parent = &links[ct->nodes.p[i].parent];
		links[i].next = parent->first;
		parent->first = (uint32_t)i;
	}
	if (!(ct->flags & CALLTREE_TIME_ORDER))
		sort_siblings(ct, links);
	size_t k = 0;
	uint32_t at = 0;
	for (;;) {
		order[k++] = at;
		uint32_t to = links[at].first;
		while (!to && at) {
			to = links[at].next;
			at = to ? at : ct->nodes.p[at].parent;
		}
		if (!to)
			break;
		at = to;
	}
	ASSERT(k == n);
	free(links);
	return order;
}

static void place_nodes(const struct calltree *ct, struct report_tree *t)
{
	size_t n = ct->nodes.n;
	uint32_t *order = preorder(ct);
	uint32_t *place = xreallocarray(NULL, n, sizeof(*place));
	uint32_t *last = xcalloc(n, sizeof(*last)); /* by preorder index: last child so far */
	for (uint32_t i = 0; i < n; i++) {
		const struct bnode *b = &ct->nodes.p[order[i]];
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
	free(place);
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
		sum = treebuild_add(sum, t->before[i].self);
		n->delta = difference(n->total, total);
		n->delta_self = difference(n->self, self);
	}
}

struct report_tree *calltree_finish(struct calltree *ct, const char *key, const char *title)
{
	struct report *r = ct->r;
	struct report_tree *t = vec_add(&r->trees);
	size_t n = ct->nodes.n;
	t->key = arena_strdup(&r->arena, key);
	t->title = arena_strdup(&r->arena, title);
	t->unit = r->unit;
	t->count_name = r->unit == UNIT_NS      ? "ns"
			: r->unit == UNIT_BYTES ? "bytes"
			: r->count_name         ? r->count_name
						: "samples";
	t->nr_nodes = n;
	t->nodes = arena_alloc(&r->arena, n * sizeof(*t->nodes));
	t->before = ct->has_before ? arena_alloc(&r->arena, n * sizeof(*t->before)) : NULL;
	t->is_differential = ct->has_before;
	t->is_normalised = ct->has_before && ct->flags & CALLTREE_NORMALISE;
	t->is_reversed = ct->flags & CALLTREE_REVERSE;
	t->is_time_ordered = ct->flags & CALLTREE_TIME_ORDER;
	place_nodes(ct, t);
	for (size_t i = n; i-- > 1;) {
		uint32_t parent = t->nodes[i].parent;
		t->nodes[parent].total = treebuild_add(t->nodes[parent].total, t->nodes[i].total);
		if (t->before)
			t->before[parent].total =
				treebuild_add(t->before[parent].total, t->before[i].total);
	}
	if (t->before)
		set_deltas(t);
	r->total = t->nodes[0].total;
	if (ct->has_input)
		r->nr_samples = ct->nr_samples;
	vec_clear(&ct->nodes);
	map_clear(&ct->children);
	vec_push(&ct->nodes, (struct bnode){.name = intern_add_str(&r->names, "all")});
	ct->nr_indexed = 0;
	ct->has_before = ct->has_input = false;
	ct->nr_samples = 0;
	return t;
}
