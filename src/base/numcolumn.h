/*
 * A column of numbers for a file: LEB128, or a single one if all are equal.
 *
 *	struct numcolumn c = {0};
 *	numcolumn_add(&c, v) ...
 *	numcolumn_end(&to, &c);     appends length and bytes; c is empty and can be used again
 *	numcolumn_release(&c);
 *
 * Most columns of a million rows are of equal numbers, so these are only counted.
 */
#ifndef ASSAY_BASE_NUMCOLUMN_H
#define ASSAY_BASE_NUMCOLUMN_H

#include "base/base.h"
#include "base/buf.h"

struct numcolumn {
	struct buf b; /* if there are different numbers */
	uint64_t first;
	size_t n;
	bool is_varied;
};

void numcolumn_release(struct numcolumn *c);
/* The slow part of numcolumn_add. */
void numcolumn_add_varied(struct numcolumn *c, uint64_t v);
void numcolumn_end(struct buf *to, struct numcolumn *c);

static inline void numcolumn_add(struct numcolumn *c, uint64_t v)
{
	c->first = c->n ? c->first : v;
	if (UNLIKELY(v != c->first || c->is_varied))
		numcolumn_add_varied(c, v);
	c->n++;
}

static inline void numcolumn_add_signed(struct numcolumn *c, int64_t v)
{
	numcolumn_add(c, (uint64_t)v << 1 ^ (uint64_t)(v >> 63));
}

#endif
