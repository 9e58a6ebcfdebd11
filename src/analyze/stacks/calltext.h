/*
 * Adds a call tree that is printed as text: children sorted by weight, the heaviest first. Nodes
 * below min_pct or max_depth are merged into "<other>". The weights of the children and the self
 * weight add up to the weight of the parent, unless "<other>" itself is below min_pct and omitted.
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
