/*
 * Lays out a call tree of a report: takes nodes that only have a link to their parent, puts them
 * into preorder with siblings sorted by name (or in input order), and computes totals and,
 * for differential trees, deltas. Used by calltree.c, which adds the nodes.
 */
#ifndef ASSAY_ANALYZE_STACKS_TREELAYOUT_H
#define ASSAY_ANALYZE_STACKS_TREELAYOUT_H

#include "analyze/report.h"
#include "base/base.h"
#include "base/intern.h"

struct treelayout_node {
	uint32_t parent; /* index; smaller than that of the node */
	str_id name;
	str_id module;
	uint32_t flags; /* enum tree_flags */
	uint64_t self;
	uint64_t before; /* self weight in the baseline of a differential tree */
};

/*
 * Fills t->nodes and t->before, which have room for t->nr_nodes nodes (t->before may be NULL). Node
 * 0 is the root. Uses is_time_ordered and is_normalised of @t. Stores in ret_place[i] where node i was
 * put; NULL: not wanted.
 */
void treelayout_fill(struct report_tree *t, const struct treelayout_node *nodes,
		     const struct intern *names, uint32_t *ret_place);

#endif
