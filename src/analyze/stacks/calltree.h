/*
 * Call trees: what flame graphs and tree views draw. Weighted stacks of one or several profiles
 * are merged by name from the root down (or from the leaf), inlined functions as frames of their
 * own; nothing is pruned.
 *
 *	struct calltree *ct = calltree_new(r, CALLTREE_ROOT_COMM);
 *	calltree_add(ct, &sel_of_one_profile);
 *	calltree_add(ct, &sel_of_another);
 *	struct report_tree *t = calltree_finish(ct, "flame", "call tree");
 *	calltree_free(ct);
 *
 * The root's total is the sum of the weights that were added, always. Node order depends on the
 * input alone: siblings by the bytes of their names, or by time.
 */
#ifndef ASSAY_ANALYZE_STACKS_CALLTREE_H
#define ASSAY_ANALYZE_STACKS_CALLTREE_H

#include "analyze/report.h"
#include "analyze/select/select.h"
#include "base/base.h"

enum calltree_flags {
	CALLTREE_REVERSE = 1 << 0, /* leaf functions at the root, callers above them */
	CALLTREE_TIME_ORDER =
		1 << 1,              /* flame chart: equal neighbours in time are merged, no more */
	CALLTREE_ROOT_COMM = 1 << 2, /* first frame: the thread's name */
	CALLTREE_ROOT_PROCESS = 1 << 3,   /* first frame: "name-PID" */
	CALLTREE_ROOT_THREAD = 1 << 4,    /* first frame: "name-PID/TID" */
	CALLTREE_MARK_KERNEL = 1 << 5,    /* "_[k]" behind kernel functions' names */
	CALLTREE_MARK_JIT = 1 << 6,       /* "_[j]" behind JIT functions' names */
	CALLTREE_MARK_INLINED = 1 << 7,   /* "_[i]" behind inlined functions' names */
	CALLTREE_FOLD_RECURSION = 1 << 8, /* direct recursion becomes one frame */
	CALLTREE_NORMALISE = 1 << 9,      /* comparisons: scale "before" to the total of now */
};

struct calltree;

/* Borrows the report, in whose arena the tree will live. */
struct calltree *calltree_new(struct report *r, unsigned flags);
void calltree_free(struct calltree *ct);
void calltree_free_p(struct calltree **ct);

/* Merges the selection's rows in. The selection and its profile are not kept. */
void calltree_add(struct calltree *ct, const struct selection *sel);
/* The same for the profile that is compared with; makes the tree a differential one. */
void calltree_add_before(struct calltree *ct, const struct selection *sel);
/* Stacks put together of parts, each a frame of its own (text) or a stack of the profile. */
struct calltree_part {
	const char *text; /* NULL: stack */
	stack_id stack;
};
struct calltree_row {
	task_id task;                      /* names the root frame, if the tree has one */
	const struct calltree_part *parts; /* from the root outwards */
	size_t nr_parts;
	uint64_t weight;
};
/* Of the selection the profile, unit, number of samples and root of view are taken, no rows. */
void calltree_add_parts(struct calltree *ct, const struct selection *sel,
			const struct calltree_row *rows, size_t nr);
/* One stack by names, from the root outwards, for sources that have no profile. */
void calltree_add_names(struct calltree *ct, const struct sv *names, size_t nr, uint64_t weight,
			uint64_t weight_before);

/* Builds the tree and adds it to the report; the builder is empty afterwards. */
struct report_tree *calltree_finish(struct calltree *ct, const char *key, const char *title);

#endif
