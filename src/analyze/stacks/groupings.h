/*
 * Registry of groupings: what rows can be grouped by (`--by`). To add one: a function and a row in
 * groupings.c. Options and help list the registry.
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
	enum view_id view; /* the view whose rows it needs; VIEW_NR: any */
	/* Adds its tables; @spec is what the selection was made from. Errors as select_run. */
	int (*add)(struct report *r, const struct selection *sel, const struct select_spec *spec,
		   const struct view_limits *limits, struct err *err);
};

/* The i-th grouping; those of enum group_by come first, in its order. NULL: no more. */
const struct grouping *groupings_at(size_t i);
/*
 * Adds the tables of the i-th grouping. A view may replace the function of a grouping. -EINVAL: the
 * selection does not have the rows that the grouping needs; the hint lists the alternatives.
 */
int groupings_add(struct report *r, size_t i, const struct selection *sel,
		  const struct select_spec *spec, const struct view_limits *limits,
		  struct err *err);

#endif
