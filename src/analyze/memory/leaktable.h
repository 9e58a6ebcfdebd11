/*
 * Leaks by site: how much, how old, how fast it grows, and a verdict.
 *
 * Growth is the mean of allocated - freed per second in the second half of the capture, where
 * whatever has a steady size has reached it; its interval is Student's, from how much the seconds
 * differ. Five seconds are needed to say anything. A cache that still fills up gains, too: where
 * the gain itself falls for certain, and is half gone at the end, that is said instead.
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
	double per_min_error; /* half of the 95 % interval */
	bool is_slowing;      /* gains less and less, for certain: something fills up */
};

/* Of the net bytes of @n seconds, in order. */
struct leak_growth leak_growth_of(const double *net_bytes, size_t n);
/* "grows", "slows down", "steady", "shrinks", "unclear", "too short to tell": of a site that holds
 * so many bytes. */
const char *leak_verdict(const struct leak_growth *g, int64_t leaked_bytes, uint64_t duration_ns);

/*
 * Table "leaks": sites that grow first, the fastest before the others, then by leaked bytes. Of
 * many the 200 largest are judged. A note names the one that grows fastest. Sorts f->sites.
 */
int leaktable_add(struct report *r, struct heapfigures *f, const struct select_spec *spec,
		  const struct view_limits *limits, struct err *err);

#endif
