/*
 * The first page of CPU samples: how they were recorded, uncertainty, hottest functions, crates and
 * threads, next commands.
 */
#ifndef ASSAY_ANALYZE_OVERVIEW_H
#define ASSAY_ANALYZE_OVERVIEW_H

#include "analyze/view.h"
#include "base/base.h"
#include "base/buf.h"

/* With fewer samples a note states the likely cause and the confidence interval. */
#define OVERVIEW_FEW_SAMPLES 1000
/* Rows of the tables after the first one. */
#define OVERVIEW_ROWS 10

/* Begins the report of a view: adds facts of the selection, and a note if there are few samples. */
void overview_begin(struct report *r, const struct selection *sel);
/* Adds tables: functions, crates, threads. @input: file name for hints; NULL: no hints. */
void overview_report(struct report *r, const struct selection *sel, const struct select_spec *spec,
		     const char *input, const struct view_limits *limits);

/* Appends a regex that matches exactly this name. False: the name has a backslash or newline. */
bool overview_add_regex(struct buf *to, const char *name);

#endif
