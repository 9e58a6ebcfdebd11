/*
 * Writes a tree of a report as folded stacks: one line per node with self weight. For trees that
 * are not tables of a profile; format/folded.h writes those.
 */
#ifndef ASSAY_RENDER_FOLDEDTREE_H
#define ASSAY_RENDER_FOLDEDTREE_H

#include "analyze/report.h"
#include "base/base.h"
#include "base/buf.h"

void foldedtree_write(struct buf *to, const struct report *r, const struct report_tree *t);

#endif
