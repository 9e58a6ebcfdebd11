/*
 * What rows can be grouped by: the registry behind `--by`. To add one: its function, and a row in
 * groupings.c; options and help list what is there.
 */
#ifndef ASSAY_ANALYZE_STACKS_GROUPINGS_H
#define ASSAY_ANALYZE_STACKS_GROUPINGS_H

#include "analyze/stacks/groups.h"
#include "analyze/report.h"
#include "analyze/select/select.h"
#include "analyze/view.h"
#include "analyze/views.h"
#include "base/base.h"
#include "base/err.h"

struct grouping {
	const char *key;   /* "thread-group" */
	const char *help;  /* or NULL */
	enum view_id view; /* whose rows it needs; VIEW_NR: any rows */
	/* Adds its tables; @spec is the user's, of which the selection was made. Errors as select_run.
	 */
	int (*add)(struct report *r, const struct selection *sel, const struct select_spec *spec,
		   const struct view_limits *limits, struct err *err);
};

/* The i-th key: first those of enum group_by, in its order. NULL: there are no more. */
const struct grouping *groupings_at(size_t i);
/*
 * Adds the i-th. A view may have its own way for a key that all rows have. -EINVAL: the rows are
 * not those that it needs, with a hint.
 */
int groupings_add(struct report *r, size_t i, const struct selection *sel,
		  const struct select_spec *spec, const struct view_limits *limits,
		  struct err *err);

#endif
