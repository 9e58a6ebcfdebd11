/*
 * What is asked of a profile, and its answer: the first page where nothing else is asked, else
 * the rows in view by groupings, callers, rules of the user's own, trees.
 */
#ifndef ASSAY_ANALYZE_QUERY_H
#define ASSAY_ANALYZE_QUERY_H

#include "analyze/stacks/named.h"
#include "analyze/report.h"
#include "analyze/select/select.h"
#include "analyze/view.h"
#include "base/base.h"
#include "base/err.h"

#define QUERY_BY_NONE (-1)

enum query_flags {
	QUERY_TREE = 1 << 0,
	QUERY_REVERSE = 1 << 1,    /* the tree from the leaves */
	QUERY_BLAME = 1 << 2,      /* waits by their cause */
	QUERY_ALLOCATORS = 1 << 3, /* of memory: with the frames of allocators */
};

struct query {
	const struct select_spec *spec;
	int by; /* of groupings.h, or QUERY_BY_NONE */
	unsigned flags;
	const char *callers; /* regex, or NULL */
	const char *callees;
	const char *nearest;
	const struct named_rule *named; /* NULL: none */
	size_t nr_named;
	enum named_nearest named_nearest;
	double tree_min_pct;
	uint64_t tree_depth; /* 0 = all */
	struct view_limits limits;
	const char *input; /* what hints call the file; NULL: there are no hints */
};

/* Is the query one of waits alone, whose tables have columns of their own? */
bool query_is_of_waits(const struct query *q);
/* Errors as select_run, and those of the groupings. */
int query_run(struct report *r, const struct profile *p, const struct query *q, struct err *err);

#endif
