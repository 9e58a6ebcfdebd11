/*
 * Runs one query of `assay report` on a profile. Without other options the result is the first page
 * of the view; else the selected rows by grouping, callers or callees, user-defined rows, or as
 * trees.
 */
#ifndef ASSAY_ANALYZE_QUERY_H
#define ASSAY_ANALYZE_QUERY_H

#include "analyze/stacks/named.h"
#include "analyze/report.h"
#include "analyze/select/select.h"
#include "analyze/view.h"
#include "base/base.h"
#include "base/err.h"
#include "model/code.h"

#define QUERY_BY_NONE (-1)

enum query_flags {
	QUERY_TREE = 1 << 0,
	QUERY_REVERSE = 1 << 1,    /* tree with leaf functions at the root */
	QUERY_BLAME = 1 << 2,      /* wait time attributed to its cause */
	QUERY_ALLOCATORS = 1 << 3, /* memory: keep leaf frames of allocators and containers */
};

struct query {
	const struct select_spec *spec;
	int by; /* a grouping of groupings.h, or QUERY_BY_NONE */
	unsigned flags;
	const char *callers;  /* regex, or NULL */
	const char *callees;  /* regex, or NULL */
	const char *annotate; /* regex of functions whose instructions are printed, or NULL */
	const struct code_access *code; /* for annotate, and source texts; NULL: none */
	const char *nearest; /* with callers or callees: regex of the frames to sum by, or NULL */
	const struct named_rule *named; /* user-defined rows (--table); NULL: none */
	size_t nr_named;
	enum named_nearest named_nearest;
	double tree_min_pct;
	uint64_t tree_depth; /* 0 = all */
	struct view_limits limits;
	const char *input; /* file name for hints; NULL: no hints */
};

/* True if the query needs tables of waits, which have columns of their own. */
bool query_is_of_waits(const struct query *q);
/* Errors as select_run, and those of the groupings. */
int query_run(struct report *r, const struct profile *p, const struct query *q, struct err *err);

#endif
