/*
 * Two selections compared: what weighs more than before, what less, and whether that is more than
 * chance. Rows are aligned by name, so the profiles may be of different runs, builds or machines.
 *
 * Amounts are compared as they are, or as shares of their totals, or, where two captures lasted
 * differently long, with the amounts of before scaled to the duration of after. A difference is
 * certain when it is larger than its own 95 % interval, half of which is sqrt(a^2 + b^2) of the
 * halves of the two amounts (they were sampled apart); exact amounts differ for certain.
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
	DIFF_AMOUNTS,  /* as they are */
	DIFF_PER_TIME, /* before scaled to the duration of after */
	DIFF_SHARES,   /* of the totals */
};

#define DIFF_BY_STACK BY_NR /* whole stacks, beside enum group_by */

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
	double change; /* of self: after - before, in the unit, or points of per cent */
	double error;  /* half of its 95 % interval */
	double total_change;
	double total_error;
};

struct diff {
	struct diff_spec spec;
	struct diff_item *items; /* largest change of self first */
	size_t n;
	struct diff_item all; /* of everything in view */
	double scale;         /* of before */
	double minutes;       /* between the moments of the two; 0 = not known */
};

/* Lives in the arena, borrows the selections. */
void diff_make(struct diff *ret_d, struct arena *a, const struct diff_spec *spec);
/* How to compare, where the user does not say. */
enum diff_how diff_how_of(const struct selection *before, const struct selection *after);
bool diff_is_certain(double change, double error);

/*
 * Tables "total" and "functions" ("modules", ..., "stacks"); notes on how was compared. The report
 * has begun.
 */
void diff_report(struct report *r, const struct diff *d, const struct view_limits *limits);

#endif
