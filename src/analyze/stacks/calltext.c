/* Makes a pruned and sorted call tree; see calltext.h. */
#include "base/base.h"
#include "analyze/stacks/calltext.h"

#include "analyze/stacks/calltree.h"
#include "analyze/view.h"
#include "base/vec.h"

struct pending_node {
	uint32_t node;   /* index in the whole tree; UINT32_MAX: <other> */
	uint32_t parent; /* index in the pruned tree */
	uint64_t total;  /* of <other> */
};

struct pruner {
	const struct report_tree *whole;
	const struct calltext_options *options;
	str_id other_name;
	VEC(struct tree_node) nodes;
	VEC(uint32_t) last_child; /* by pruned node; 0: none yet */
	VEC(struct pending_node) pending;
	VEC(struct pending_node) children; /* of the current node */
};

static void pruner_release(struct pruner *p)
{
	vec_release(&p->nodes);
	vec_release(&p->last_child);
	vec_release(&p->pending);
	vec_release(&p->children);
}

static int by_total(const void *x, const void *y)
{
	const struct pending_node *a = x;
	const struct pending_node *b = y;
	return COMPARE(b->total, a->total) ?: COMPARE(a->node, b->node);
}

static uint32_t emit(struct pruner *p, const struct pending_node *t)
{
	uint32_t id = (uint32_t)p->nodes.n;
	struct tree_node n = {.name = p->other_name, .flags = TREE_PSEUDO, .total = t->total};
	if (t->node != UINT32_MAX)
		n = p->whole->nodes[t->node];
	n.parent = t->parent;
	n.first_child = n.next = 0;
	n.depth = id ? p->nodes.p[t->parent].depth + 1 : 0;
	vec_push(&p->nodes, n);
	vec_push(&p->last_child, 0);
	if (!id)
		return id;
	uint32_t *last = &p->last_child.p[t->parent];
	if (*last)
		p->nodes.p[*last].next = id;
	else
		p->nodes.p[t->parent].first_child = id;
	*last = id;
	return id;
}

/* Pushes the children so that the heaviest is popped first and <other> last. */
static void queue_children(struct pruner *p, uint32_t node, uint32_t id)
{
	const struct tree_node *nodes = p->whole->nodes;
	struct pending_node other = {UINT32_MAX, id, 0};
	bool is_deep = p->options->max_depth && p->nodes.p[id].depth >= p->options->max_depth;
	vec_clear(&p->children);
	for (uint32_t c = nodes[node].first_child; c; c = nodes[c].next) {
		if (!is_deep && view_pct(nodes[c].total, nodes[0].total) >= p->options->min_pct)
			vec_push(&p->children, (struct pending_node){c, id, nodes[c].total});
		else
			other.total += nodes[c].total;
	}
	if (p->children.n)
		qsort(p->children.p, p->children.n, sizeof(*p->children.p), by_total);
	if (other.total &&
	    (is_deep || view_pct(other.total, nodes[0].total) >= p->options->min_pct))
		vec_push(&p->pending, other);
	for (size_t i = p->children.n; i-- > 0;)
		vec_push(&p->pending, p->children.p[i]);
}

/*
 * Of an inverted tree the functions that ran are the first level, whose totals are their self weights;
 * those below called them.
 */
static void set_self_of_leafs(struct pruner *p)
{
	vec_foreach(n, &p->nodes)
		n->self = n->depth == 1 ? n->total : 0;
}

void calltext_report(struct report *r, const struct selection *sel,
		     const struct calltext_options *options)
{
	CLEANUP(calltree_free_p) struct calltree *ct = calltree_new(r, options->flags);
	calltree_add(ct, sel);
	bool is_reversed = options->flags & CALLTREE_REVERSE;
	struct report_tree *t =
		calltree_finish(ct, is_reversed ? "callers_tree" : "tree",
				is_reversed ? "functions with their callers" : "call tree");
	CLEANUP(pruner_release) struct pruner p = {.whole = t, .options = options};
	p.other_name = intern_add_str(&r->names, "<other>");
	vec_push(&p.pending, (struct pending_node){0, 0, 0});
	while (p.pending.n) {
		struct pending_node next = p.pending.p[--p.pending.n];
		uint32_t id = emit(&p, &next);
		if (next.node != UINT32_MAX)
			queue_children(&p, next.node, id);
	}
	if (is_reversed)
		set_self_of_leafs(&p);
	t->nodes = arena_dup(&r->arena, p.nodes.p, p.nodes.n * sizeof(*p.nodes.p));
	t->nr_nodes = p.nodes.n;
	t->has_counts = !view_has_shares(sel);
}
