/*
 * Reports the callers of the functions that match a regex, and their callees. Every sample with a
 * match on its stack is counted once, so each table adds up to 100 % of those samples.
 *
 * The caller is the frame outside of the outermost match (a recursive function is not its own
 * caller), or the nearest one that matches @nearest. The callee is the frame inside of the
 * innermost match; "<self>" is the matching function itself.
 */
#ifndef ASSAY_ANALYZE_STACKS_CALLERS_H
#define ASSAY_ANALYZE_STACKS_CALLERS_H

#include "analyze/view.h"
#include "base/base.h"
#include "base/err.h"

struct callers_spec {
	const char *pattern;
	const char *nearest; /* may be NULL */
	enum group_by by;
	bool is_callees;
};

/* Adds table "callers" or "callees". -EINVAL, -ENOENT as match_functions. */
int callers_report(struct report *r, const struct selection *sel, const struct callers_spec *spec,
		   const struct view_limits *limits, struct err *err);

#endif
