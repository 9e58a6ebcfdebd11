/*
 * Reports self and total weight by function, module, crate, file or line. Self adds up to 100 %.
 * Total counts a sample once however often the row occurs on its stack, so it never exceeds 100 %.
 * Inlined functions count as functions.
 */
#ifndef ASSAY_ANALYZE_STACKS_TOP_H
#define ASSAY_ANALYZE_STACKS_TOP_H

#include "analyze/view.h"
#include "base/base.h"

void top_report(struct report *r, const struct selection *sel, enum group_by by,
		const struct view_limits *limits);
/* The functions of an event that is not the one of the page: the key and title name it. */
void top_report_other(struct report *r, const struct selection *sel,
		      const struct view_limits *limits);
/*
 * Writes the @max groups with the largest self weight in a phase to @ret_items, largest first; without totals.
 * Returns their number; it is smaller than @max if the phase has fewer.
 */
size_t top_of_phase(struct arena *a, const struct selection *sel, uint32_t phase,
		    const struct groups *groups, struct view_item *ret_items, size_t max);

#endif
