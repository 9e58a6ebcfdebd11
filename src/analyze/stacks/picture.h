/*
 * Makes the tree and the texts of a flame graph from selections of one or several profiles.
 *
 *	struct picture pic = {.tree_flags = CALLTREE_ROOT_COMM};
 *	picture_add(&pic, profile, "redis.assay");
 *	rc = picture_make(r, &pic, &tree, &err);
 *	picture_release(&pic);
 */
#ifndef ASSAY_ANALYZE_STACKS_PICTURE_H
#define ASSAY_ANALYZE_STACKS_PICTURE_H

#include "analyze/report.h"
#include "analyze/select/select.h"
#include "base/base.h"
#include "base/err.h"
#include "base/vec.h"

struct diff;

struct picture_input {
	const struct profile *p; /* borrowed */
	const char *name;        /* file name, for titles and messages; borrowed */
	bool is_before;          /* the baseline of a differential flame graph */
};

struct picture {
	struct select_spec spec;
	unsigned tree_flags; /* enum calltree_flags */
	bool is_blame;       /* draw wait time attributed to its cause (analyze/wait/blame.h) */
	uint64_t total;      /* weight of the root, if more than the stacks have; 0: theirs */
	/* By function: what they mark is coloured. NULL: compared when drawn. */
	const struct diff *diffs;
	size_t nr_diffs;
	VEC(struct picture_input) inputs;
};

void picture_release(struct picture *pic);
void picture_add(struct picture *pic, const struct profile *p, const char *name);
void picture_add_before(struct picture *pic, const struct profile *p, const char *name);

/*
 * Adds the tree to the report. Recordings of both CPU samples and waits are drawn with on-CPU and
 * off-CPU time together (hotcold.h), unless an event is named or an input has only one of them. A single input with the two tables
 * of a folded difference is drawn as a differential flame graph. -ENODATA: nothing to draw, with
 * the reason if known. -EINVAL: events of different kinds, which are never summed. Other
 * errors: those of select_run.
 */
int picture_make(struct report *r, const struct picture *pic, const struct report_tree **ret_t,
		 struct err *err);

#endif
