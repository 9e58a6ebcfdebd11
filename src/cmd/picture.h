/*
 * Profiles to flame graphs: what `assay flame` and the capture commands share.
 *
 *	struct picture pic = {.tree_flags = CALLTREE_ROOT_COMM, .svg.min_width_px = -1};
 *	picture_add(&pic, profile, "redis.assay");
 *	rc = picture_svg(&buf, &pic, &err);
 *	picture_release(&pic);
 */
#ifndef ASSAY_CMD_PICTURE_H
#define ASSAY_CMD_PICTURE_H

#include "analyze/select.h"
#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"
#include "model/profile.h"
#include "render/svg.h"

struct picture_input {
	const struct profile *p; /* borrowed */
	const char *name;        /* of its file, for titles and messages; borrowed */
	bool is_before;          /* what the others are compared with */
};

struct picture {
	struct select_spec spec;
	unsigned tree_flags; /* enum calltree_flags */
	struct svg_options svg;
	bool is_blame;    /* of who was waited for, see analyze/blame.h */
	bool has_palette; /* the user chose it: pictures of memory keep theirs else */
	VEC(struct picture_input) inputs;
};

void picture_release(struct picture *pic);
void picture_add(struct picture *pic, const struct profile *p, const char *name);
void picture_add_before(struct picture *pic, const struct profile *p, const char *name);

/*
 * A recording of both CPU samples and waits is drawn hot and cold together, unless an event is
 * named; memory in colours of its own. -ENODATA: nothing is in view, with the reason where it is
 * known. -EINVAL: events of different kinds, which are never added up, or what select_run says.
 * A single input that holds the two tables of a folded difference ("before" and "after") is drawn
 * as a comparison.
 */
int picture_svg(struct buf *to, const struct picture *pic, struct err *err);
/* The same tree as folded stacks, weights as in the picture. */
int picture_folded(struct buf *to, const struct picture *pic, struct err *err);

#endif
