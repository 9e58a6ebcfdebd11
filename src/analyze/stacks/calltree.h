/*
 * Builds call trees for flame graphs and tree views. Merges weighted stacks of one or several
 * profiles by function name from the root (or from the leaf). Inlined functions are frames of their
 * own. Nothing is pruned.
 *
 *	struct calltree *ct = calltree_new(r, CALLTREE_ROOT_COMM);
 *	calltree_add(ct, &sel_of_one_profile);
 *	calltree_add(ct, &sel_of_another);
 *	struct report_tree *t = calltree_finish(ct, "flame", "call tree");
 *	calltree_free(ct);
 *
 * The root's total is the sum of all weights added. Node order depends only on the input: siblings
 * are sorted by name (bytewise), or by time with CALLTREE_TIME_ORDER.
 */
#ifndef ASSAY_ANALYZE_STACKS_CALLTREE_H
#define ASSAY_ANALYZE_STACKS_CALLTREE_H

#include "analyze/report.h"
#include "analyze/select/select.h"
#include "base/base.h"

enum calltree_flags {
	CALLTREE_REVERSE = 1 << 0,        /* leaf functions at the root, their callers below */
	CALLTREE_TIME_ORDER = 1 << 1,     /* flame chart: only neighbours in time are merged */
	CALLTREE_ROOT_COMM = 1 << 2,      /* first frame: the thread's name */
	CALLTREE_ROOT_PROCESS = 1 << 3,   /* first frame: "name-PID" */
	CALLTREE_ROOT_THREAD = 1 << 4,    /* first frame: "name-PID/TID" */
	CALLTREE_MARK_KERNEL = 1 << 5,    /* appends "_[k]" to names of kernel functions */
	CALLTREE_MARK_JIT = 1 << 6,       /* appends "_[j]" to names of JIT functions */
	CALLTREE_MARK_INLINED = 1 << 7,   /* appends "_[i]" to names of inlined functions */
	CALLTREE_FOLD_RECURSION = 1 << 8, /* direct recursion becomes one frame */
	CALLTREE_ROOT_GROUP =
		1 << 10,             /* first frame: the thread's name; digits shown as # if several
					  names of the selection differ in them only */
	CALLTREE_NORMALISE = 1 << 9, /* differential tree: baseline scaled to the same total */
	CALLTREE_PLAIN_NAMES = 1 << 11, /* names as they are aligned between builds */
};

struct calltree;

/* Borrows the report, in whose arena the tree will live. */
struct calltree *calltree_new(struct report *r, unsigned flags);
void calltree_free(struct calltree *ct);
void calltree_free_p(struct calltree **ct);

/* Adds the rows of a selection. Keeps no reference to it or its profile. */
void calltree_add(struct calltree *ct, const struct selection *sel);
/*
 * As calltree_add, and stores the node of each row; calltree_place translates it after calltree_finish.
 */
void calltree_add_placed(struct calltree *ct, const struct selection *sel, uint32_t *ret_nodes);
/* Adds the rows of the baseline; makes the tree a differential one. */
void calltree_add_before(struct calltree *ct, const struct selection *sel);
/* Part of a composed stack: a synthetic frame (text) or a stack of the profile. */
struct calltree_part {
	const char *text; /* NULL: stack */
	stack_id stack;
	bool is_whole; /* --within does not cut this stack */
};
struct calltree_row {
	task_id task;                      /* for the root frame, with CALLTREE_ROOT_* */
	const struct calltree_part *parts; /* outermost first */
	size_t nr_parts;
	uint64_t weight;
};
/*
 * Adds composed stacks. Takes profile, unit, number of samples and roots from @sel, not its rows.
 */
void calltree_add_parts(struct calltree *ct, const struct selection *sel,
			const struct calltree_row *rows, size_t nr);
/* Adds one stack given by names, outermost first, for sources without a profile. */
void calltree_add_names(struct calltree *ct, const struct sv *names, size_t nr, uint64_t weight,
			uint64_t weight_before);

/* Adds the tree to the report, which owns it, and returns it. @ct is empty afterwards. */
struct report_tree *calltree_finish(struct calltree *ct, const char *key, const char *title);

/* Index in the tree's nodes of a node that calltree_add_placed stored. Valid until calltree_free. */
uint32_t calltree_place(const struct calltree *ct, uint32_t node);

#endif
