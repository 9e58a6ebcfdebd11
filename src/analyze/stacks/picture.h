/*
 * What a flame graph shows: the selections of one or several profiles as one tree, with the words
 * around it.
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

struct picture_input {
	const struct profile *p; /* borrowed */
	const char *name;        /* of its file, for titles and messages; borrowed */
	bool is_before;          /* what the others are compared with */
};

struct picture {
	struct select_spec spec;
	unsigned tree_flags; /* enum calltree_flags */
	bool is_blame;       /* of who was waited for, see analyze/wait/blame.h */
	VEC(struct picture_input) inputs;
};

void picture_release(struct picture *pic);
void picture_add(struct picture *pic, const struct profile *p, const char *name);
void picture_add_before(struct picture *pic, const struct profile *p, const char *name);

/*
 * A recording of both CPU samples and waits is drawn hot and cold together, unless an event is
 * named. -ENODATA: nothing is in view, with the reason where it is known. -EINVAL: events of
 * different kinds, which are never added up, or what select_run says. A single input that holds
 * the two tables of a folded difference is drawn as a comparison. The tree is one of the report's.
 */
int picture_make(struct report *r, const struct picture *pic, const struct report_tree **ret_t,
		 struct err *err);

#endif
