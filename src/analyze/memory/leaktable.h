/*
 * Table of leaks by allocation site: leaked bytes, age, growth rate and a verdict.
 *
 * Growth is the mean of allocated - freed per time in the second half of the capture: memory that
 * does not leak usually has its final size by then. The confidence interval is Student's t, from
 * the variation between half seconds (seconds in files of other tools); at least LEAK_SLICES_MIN
 * seconds are needed. A cache that is
 * being filled grows, too: if the growth rate falls significantly, and is halved at the end, the
 * verdict is "slows down". Where the exact counts of allocations and frees, and RSS, have no growth like
 * the site's, blocks of the capture replace older ones: "unclear".
 */
#ifndef ASSAY_ANALYZE_MEMORY_LEAKTABLE_H
#define ASSAY_ANALYZE_MEMORY_LEAKTABLE_H

#include "analyze/memory/heapfigures.h"
#include "analyze/report.h"
#include "analyze/view.h"
#include "base/base.h"

#define LEAK_SLICES_MIN 5

struct leak_growth {
	bool is_known;
	double per_min;       /* bytes */
	double per_min_error; /* half width of the 95 % interval */
	bool is_slowing;      /* the growth rate falls significantly, as while a cache fills */
};

/* Estimates growth from the net bytes (allocated - freed) of @n consecutive slices of a second. */
struct leak_growth leak_growth_of(const double *net_bytes, size_t n);
/* Verdict on a site with @leaked_bytes: "grows", "slows down", "steady", "shrinks", "unclear", "too
 * short to tell". */
const char *leak_verdict(const struct leak_growth *g, int64_t leaked_bytes, uint64_t duration_ns);

/*
 * Adds table "leaks": growing sites first, fastest first, then by leaked bytes. Only the 200
 * largest sites get a verdict. Sets f->growing. Sorts f->sites.
 */
int leaktable_add(struct report *r, struct heapfigures *f, const struct select_spec *spec,
		  const struct view_limits *limits, struct err *err);

#endif
