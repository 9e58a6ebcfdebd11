/*
 * Totals over the prefix tree.
 *
 * Children have larger ids than their parents, so one pass from the last node to the first sums
 * subtrees. A group's total is the sum of the subtrees at whose top it appears first on the way
 * from the root: a walk with a counter per group finds those, and recursion counts once.
 */
#include "base/base.h"
#include "analyze/select/weigh.h"

struct weighed weigh(struct arena *a, const struct selection *sel)
{
	const struct profile *p = sel->p;
	size_t n = p->stacks.n;
	struct weighed w = {
		.sel = sel,
		.self = arena_calloc(a, n, sizeof(*w.self)),
		.total = arena_alloc(a, n * sizeof(*w.total)),
		.first_child = arena_calloc(a, n, sizeof(*w.first_child)),
		.next = arena_alloc(a, n * sizeof(*w.next)),
	};
	for (size_t i = 0; i < sel->nr_rows; i++)
		weight_add_row(&w.self[sel->rows[i].stack], sel, i);
	memcpy(w.total, w.self, n * sizeof(*w.self));
	for (stack_id id = (stack_id)n - 1; id > 0; id--) {
		stack_id parent = p->stacks.p[id].parent;
		ASSERT(parent < id);
		weight_add(&w.total[parent], &w.total[id]);
		w.next[id] = w.first_child[parent];
		w.first_child[parent] = id;
	}
	return w;
}

static uint32_t group_at(const struct selection *sel, const struct groups *g, loc_id loc,
			 uint32_t i)
{
	const struct location *l = &sel->p->locations.p[loc];
	return l->nr_frames ? g->by_frame[l->first_frame + i] : g->by_loc[loc];
}

/* The group of the innermost frame; 0: the stack is not selected. */
static uint32_t leaf_group(const struct selection *sel, const struct groups *g, stack_id node)
{
	loc_id loc = sel->p->stacks.p[node].loc;
	uint32_t n = select_nr_frames(sel, node);
	uint32_t leaf = sel->leaf_frames ? sel->leaf_frames[loc] : 0;
	if (!node)
		return g->by_loc[0];
	return n ? group_at(sel, g, loc, MIN(leaf, n - 1)) : 0;
}

struct weight *weigh_self(struct arena *a, const struct selection *sel, uint32_t phase,
			  const struct groups *g)
{
	struct weight *self = arena_calloc(a, g->n, sizeof(*self));
	for (size_t i = 0; i < sel->nr_rows; i++)
		if (phase == WEIGH_ALL_PHASES || sel->rows[i].phase == phase)
			weight_add_row(&self[leaf_group(sel, g, sel->rows[i].stack)], sel, i);
	return self;
}

struct visit {
	const struct weighed *w;
	const struct groups *g;
	struct group_weight *to;
	uint32_t *nr_on_path; /* by group */
};

static bool has_weight(const struct weight *w)
{
	return w->nr_samples || w->weight;
}

static void enter(struct visit *v, stack_id node)
{
	const struct weighed *w = v->w;
	loc_id loc = w->sel->p->stacks.p[node].loc;
	uint32_t n = select_nr_frames(w->sel, node);
	for (uint32_t i = n; i-- > 0;) {
		uint32_t g = group_at(w->sel, v->g, loc, i);
		if (v->nr_on_path[g]++ == 0) {
			weight_add(&v->to[g].total, &w->total[node]);
		}
	}
	if (n && has_weight(&w->self[node]))
		weight_add(&v->to[leaf_group(w->sel, v->g, node)].self, &w->self[node]);
}

static void leave(struct visit *v, stack_id node)
{
	loc_id loc = v->w->sel->p->stacks.p[node].loc;
	for (uint32_t i = select_nr_frames(v->w->sel, node); i-- > 0;)
		v->nr_on_path[group_at(v->w->sel, v->g, loc, i)]--;
}

struct group_weight *weigh_groups(struct arena *a, const struct weighed *w, const struct groups *g)
{
	struct group_weight *to = arena_calloc(a, g->n, sizeof(*to));
	struct visit v = {w, g, to, arena_calloc(a, g->n, sizeof(*v.nr_on_path))};
	const struct stack_node *nodes = w->sel->p->stacks.p;
	if (has_weight(&w->self[0])) { /* weight of samples without a stack */
		to[g->by_loc[0]].self = w->self[0];
		to[g->by_loc[0]].total = w->self[0];
	}
	stack_id node = 0;
	for (;;) {
		stack_id next = w->first_child[node];
		while (next && !has_weight(&w->total[next]))
			next = w->next[next];
		while (!next &&
		       node) { /* no children: continue with the next sibling of the path */
			leave(&v, node);
			next = w->next[node];
			node = nodes[node].parent;
			while (next && !has_weight(&w->total[next]))
				next = w->next[next];
		}
		if (!next)
			return to;
		node = next;
		enter(&v, node);
	}
}
