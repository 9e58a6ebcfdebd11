/*
 * What counts as leaked.
 *
 * Of a program that was launched and has ended: whatever was not freed. Of one that runs on: what
 * lives at the end and is older than half of the capture, or than the age that the user gives;
 * ages are known to the second, and a block counts when all of its second is old enough.
 */
#ifndef ASSAY_ANALYZE_MEMORY_LEAKS_H
#define ASSAY_ANALYZE_MEMORY_LEAKS_H

#include "analyze/select/select.h"
#include "base/base.h"
#include "base/err.h"

enum leak_rule {
	LEAKS_OLDER,  /* than min_age_ns */
	LEAKS_ALL,    /* the program has ended */
	LEAKS_UNKNOWN /* no ages are known: a dump of a moment */
};

struct leak_limit {
	enum leak_rule rule;
	uint64_t min_age_ns;
	uint64_t end_ns; /* of the capture */
};

/* @older_than: a duration as text, or NULL. -EINVAL: it is none. */
int leaks_limit(const struct profile *p, const char *older_than, struct leak_limit *ret_l,
		struct err *err);
/* Of a live row, by the second in which it was allocated. */
bool leaks_has(const struct leak_limit *l, uint64_t time_ns);
/* Age at the end of a row's oldest blocks; CELL_NS_NONE (report.h) where it is not known. */
uint64_t leaks_age_ns(const struct leak_limit *l, uint64_t time_ns);

#endif
