/*
 * The first page: what was captured, how sure it is, where the time goes, what to type next.
 */
#ifndef ASSAY_ANALYZE_OVERVIEW_H
#define ASSAY_ANALYZE_OVERVIEW_H

#include "analyze/view.h"
#include "base/base.h"
#include "base/buf.h"

/* Below this a report explains why there is so little, and how little it can tell. */
#define OVERVIEW_FEW_SAMPLES 1000

/* Facts that follow from the selection, and the note on few samples; for every view. */
void overview_begin(struct report *r, const struct selection *sel);
/* Tables: functions, crates, threads. @input names the file in hints; NULL: none are given. */
void overview_report(struct report *r, const struct selection *sel, const char *input,
		     const struct view_limits *limits);

/* A regex for exactly this name; false if there is none. */
bool overview_add_name(struct buf *to, const char *name);

#endif
