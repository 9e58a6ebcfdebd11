/*
 * A tree as folded stacks, a line for each node with weight of its own: for what is no table of a
 * profile. Tables have their writer in format/folded.h.
 */
#ifndef ASSAY_RENDER_FOLDEDTREE_H
#define ASSAY_RENDER_FOLDEDTREE_H

#include "analyze/report.h"
#include "base/base.h"
#include "base/buf.h"

void foldedtree_write(struct buf *to, const struct report *r, const struct report_tree *t);

#endif
