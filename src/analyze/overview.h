/*
 * The first page of CPU samples: how they were recorded, uncertainty, hottest functions, crates and
 * threads, next commands.
 */
#ifndef ASSAY_ANALYZE_OVERVIEW_H
#define ASSAY_ANALYZE_OVERVIEW_H

#include "analyze/view.h"
#include "base/base.h"
#include "base/buf.h"

/* With fewer samples a note has the reason and the confidence interval. */
#define OVERVIEW_FEW_SAMPLES 1000

/* Begins a report of any view: facts of the selection, note on few samples. */
void overview_begin(struct report *r, const struct selection *sel);
/* Adds tables: functions, crates, threads. @input: file name for hints; NULL: no hints. */
void overview_report(struct report *r, const struct selection *sel, const char *input,
		     const struct view_limits *limits);

/* Appends a regex that matches exactly this name; false if it cannot be written as one. */
bool overview_add_name(struct buf *to, const char *name);

#endif
