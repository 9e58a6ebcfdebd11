/*
 * Compares two selections: which rows weigh more or less than before, and whether the difference is
 * larger than its confidence interval. Rows are aligned by name, so the profiles may be captures of
 * different builds or machines.
 *
 * Amounts are compared directly, as shares of their totals, or, if the captures differ in duration,
 * with the amounts of "before" scaled to the duration of "after". A difference is significant if it
 * is larger than the half width of its interval, that is if the interval excludes 0. The intervals
 * of all rows hold together with 95 % (Bonferroni's correction for the number of rows): of two
 * captures of the same behaviour, 19 of 20 have no significant row. Differences of exact amounts
 * are always significant.
 */
#ifndef ASSAY_ANALYZE_STACKS_DIFF_H
#define ASSAY_ANALYZE_STACKS_DIFF_H

#include "analyze/stacks/groups.h"
#include "analyze/report.h"
#include "analyze/select/select.h"
#include "analyze/view.h"
#include "base/arena.h"
#include "base/base.h"

enum diff_how {
	DIFF_AMOUNTS,  /* unscaled */
	DIFF_PER_TIME, /* before scaled to the duration of after */
	DIFF_SHARES,   /* of the totals */
};

#define DIFF_BY_STACK BY_NR /* whole stacks; an additional value of enum group_by */

struct diff_spec {
	const struct selection *before;
	const struct selection *after;
	enum diff_how how;
	unsigned by; /* enum group_by or DIFF_BY_STACK */
};

struct diff_item {
	const char *name; /* a stack: leaf first, " < " between */
	const char *module;
	struct weight self[2]; /* before (scaled, with DIFF_PER_TIME), after */
	struct weight total[2];
	double change;       /* of self: after - before, in the unit or in percentage points */
	double error;        /* half width of its interval */
	double total_change; /* of total: as change */
	double total_error;
};

struct diff {
	struct diff_spec spec;
	struct diff_item *items; /* largest change of self first */
	size_t n;
	struct diff_item all; /* of everything shown */
	double scale;         /* factor applied to before */
	double minutes;       /* between the two captures; 0: not known */
};

/* Compares; the result lives in the arena and borrows the selections. */
void diff_make(struct diff *ret_d, struct arena *a, const struct diff_spec *spec);
/* Returns the default way to compare two selections. */
enum diff_how diff_how_of(const struct selection *before, const struct selection *after);
/* Returns whether a change is larger than the half width of its interval. */
bool diff_is_significant(double change, double error);

/*
 * Adds tables "total" and "functions" ("modules", ..., "stacks") and notes on the comparison. The
 * report has been begun (view_begin).
 */
void diff_report(struct report *r, const struct diff *d, const struct view_limits *limits);

#endif
