/*
 * Processes that live for a moment. Much of their time is in fork, exec, the dynamic linker and exit, so no
 * function of theirs is hot.
 */
#ifndef ASSAY_ANALYZE_STACKS_SHORTLIVED_H
#define ASSAY_ANALYZE_STACKS_SHORTLIVED_H

#include "analyze/select/select.h"
#include "base/base.h"

struct shortlived {
	bool is_known; /* some process started and ended in the capture; nothing is known with filters */
	size_t nr; /* such processes that were sampled */
	double per_s;
	double median_ns; /* how long they lived */
	double pct;       /* of the weight: those that lived for at most 50 ms */
};

void shortlived_find(struct shortlived *ret_s, const struct selection *sel);

#endif
