/*
 * Decides which live blocks count as leaked.
 *
 * If assay launched the program and every process with live blocks has exited, or if the recording
 * has FACT_HEAP_ENDED (also if attached), all blocks that were not freed are leaked, unless a signal
 * killed one of the processes, which could not free them any more. Else those
 * blocks are leaked that are live at the end and older than half of the capture, or older than the
 * age that the user gives. Allocation times are known to a step of time (heap_age_step_of). A
 * block's age is therefore measured from the end of the step in which it was allocated. What is live where an
 * incomplete recording ends may be freed later, and has no ages: nothing is known to be leaked, as in
 * a capture so short that no block can be proven old enough.
 */
#ifndef ASSAY_ANALYZE_MEMORY_LEAKS_H
#define ASSAY_ANALYZE_MEMORY_LEAKS_H

#include "analyze/select/select.h"
#include "base/base.h"
#include "base/err.h"

enum leak_rule {
	LEAKS_OLDER,  /* blocks older than min_age_ns */
	LEAKS_ALL,    /* all live blocks: the program has exited */
	LEAKS_UNKNOWN /* ages are not known */
};

struct leak_limit {
	enum leak_rule rule;
	const char *why_unknown; /* NULL: known; constant */
	uint64_t min_age_ns;
	uint64_t step_ns; /* resolution of allocation times */
	uint64_t end_ns;  /* of the capture */
};

/* Parses the age from which on blocks count as leaked. */
int leaks_check(const char *older_than, uint64_t *ret_ns, struct err *err);
/* @older_than: a duration as text, or NULL. -EINVAL: it is not a duration. */
int leaks_limit(const struct profile *p, const char *older_than, struct leak_limit *ret_l,
		struct err *err);
/* True if a live row counts as leaked, by the time of the row. */
bool leaks_has(const struct leak_limit *l, uint64_t time_ns);
/* Age of a row's oldest blocks at the end of the capture; CELL_NS_NONE (report.h): not known. */
uint64_t leaks_age_ns(const struct leak_limit *l, uint64_t time_ns);

#endif
