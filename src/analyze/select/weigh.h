/*
 * Computes self and total weight of every node of the prefix tree of stacks, and the child links of
 * the tree. Linear in the number of nodes. Used by every view that shows totals.
 */
#ifndef ASSAY_ANALYZE_SELECT_WEIGH_H
#define ASSAY_ANALYZE_SELECT_WEIGH_H

#include "analyze/stacks/groups.h"
#include "analyze/select/select.h"
#include "base/arena.h"
#include "base/base.h"

struct weight {
	uint64_t weight;
	uint64_t nr_samples;
	double variance; /* of the weight; 0 if the selection has none */
};

static inline void weight_add(struct weight *to, const struct weight *w)
{
	to->weight += w->weight;
	to->nr_samples += w->nr_samples;
	to->variance += w->variance;
}

/* Row @i of the selection. */
static inline void weight_add_row(struct weight *to, const struct selection *sel, size_t i)
{
	to->weight += sel->rows[i].weight;
	to->nr_samples += sel->rows[i].nr_samples;
	if (sel->variance)
		to->variance += sel->variance[i];
}

struct weighed {
	const struct selection *sel;
	struct weight *self;   /* by stack node */
	struct weight *total;  /* the node and everything below it */
	stack_id *first_child; /* children in order of id; 0: none */
	stack_id *next;
};

struct weighed weigh(struct arena *a, const struct selection *sel);

#define WEIGH_ALL_PHASES UINT32_MAX
/*
 * Returns self weights by group of the rows of a phase, in the arena: costs no pass over all stacks. Group 0
 * is not used.
 */
struct weight *weigh_self(struct arena *a, const struct selection *sel, uint32_t phase,
			  const struct groups *g);

struct group_weight {
	struct weight self;
	struct weight total; /* a group is counted once per sample, however often it recurs */
};

/* Returns self and total by group, in the arena. */
struct group_weight *weigh_groups(struct arena *a, const struct weighed *w, const struct groups *g);

#endif
