/*
 * Adds a call tree for reading as text: heaviest child first, nodes below the limit merged into
 * "<other>". Children and self add up to their parent, except for remainders below the limit.
 */
#ifndef ASSAY_ANALYZE_STACKS_CALLTEXT_H
#define ASSAY_ANALYZE_STACKS_CALLTEXT_H

#include "analyze/report.h"
#include "analyze/select/select.h"
#include "base/base.h"

struct calltext_options {
	unsigned flags;     /* enum calltree_flags */
	double min_pct;     /* of everything shown */
	uint64_t max_depth; /* levels below the root; 0 = all */
};

void calltext_report(struct report *r, const struct selection *sel,
		     const struct calltext_options *options);

#endif
