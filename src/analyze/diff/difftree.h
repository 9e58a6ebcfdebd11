/*
 * Marks the nodes of a differential tree whose functions are marked in the comparison, self or total
 * (TREE_CHANGED), so that pictures colour what tables mark.
 */
#ifndef ASSAY_ANALYZE_DIFF_DIFFTREE_H
#define ASSAY_ANALYZE_DIFF_DIFFTREE_H

#include "analyze/diff/diff.h"
#include "analyze/report.h"
#include "base/base.h"

/* @t: a tree of @r made with CALLTREE_PLAIN_NAMES. Returns the number of functions marked. */
size_t difftree_mark(struct report *r, struct report_tree *t, const struct diff *d);

#endif
