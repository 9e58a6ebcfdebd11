/*
 * Decides which live blocks count as leaked.
 *
 * If the program was launched by assay and has exited, all blocks that were not freed. Else blocks
 * live at the end that are older than half of the capture, or than the age given by the user. Ages
 * have a resolution of one second; a block counts if all of its second is old enough.
 */
#ifndef ASSAY_ANALYZE_MEMORY_LEAKS_H
#define ASSAY_ANALYZE_MEMORY_LEAKS_H

#include "analyze/select/select.h"
#include "base/base.h"
#include "base/err.h"

enum leak_rule {
	LEAKS_OLDER,  /* than min_age_ns */
	LEAKS_ALL,    /* the program has exited */
	LEAKS_UNKNOWN /* ages are not known: a dump */
};

struct leak_limit {
	enum leak_rule rule;
	uint64_t min_age_ns;
	uint64_t end_ns; /* of the capture */
};

/* @older_than: a duration as text, or NULL. -EINVAL: it is not a duration. */
int leaks_limit(const struct profile *p, const char *older_than, struct leak_limit *ret_l,
		struct err *err);
/* True if a live row counts as leaked, by the second of its allocation. */
bool leaks_has(const struct leak_limit *l, uint64_t time_ns);
/* Age of a row's oldest blocks at the end; CELL_NS_NONE (report.h): not known. */
uint64_t leaks_age_ns(const struct leak_limit *l, uint64_t time_ns);

#endif
