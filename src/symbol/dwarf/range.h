/*
 * Internal to the DWARF reader: iterates over the address ranges of a DIE, from low_pc/high_pc,
 * .debug_ranges (DWARF 3, 4) or .debug_rnglists (DWARF 5).
 *
 *	struct dw_ranges it;
 *	dw_ranges_init(&it, unit, low, high, ranges);
 *	while (dw_ranges_next(&it, &lo, &hi)) ...
 */
#ifndef ASSAY_SYMBOL_DWARF_RANGE_H
#define ASSAY_SYMBOL_DWARF_RANGE_H

#include "base/base.h"
#include "symbol/dwarf/dwarf_file.h"

struct dw_ranges {
	const struct dw_unit *unit;
	struct rd r;
	uint64_t base;
	uint64_t lo, hi; /* the single range of low_pc and high_pc */
	bool is_single;
	bool is_list;
	uint64_t nr_read; /* entries read so far, for the caller's limits */
};

void dw_ranges_init(struct dw_ranges *it, const struct dw_unit *u, const struct dw_value *low,
		    const struct dw_value *high, const struct dw_value *ranges);
/* Iterates over the ranges of the unit itself. */
void dw_ranges_init_unit(struct dw_ranges *it, const struct dw_unit *u);
/* Returns the next non-empty range; false at the end or where the data is damaged. */
bool dw_ranges_next(struct dw_ranges *it, uint64_t *ret_lo, uint64_t *ret_hi);

/* An entry of .debug_aranges, which maps code to units. It need not cover all units. */
struct dw_arange {
	uint64_t unit_offset; /* of the unit's header in .debug_info */
	uint64_t lo, hi;      /* hi <= lo: empty or damaged */
};

struct dw_aranges {
	struct rd r;
	struct rd set;
	uint64_t unit_offset;
};

void dw_aranges_init(struct dw_aranges *it, const struct dw_file *f);
/* Returns the next entry; false at the end or where the section is damaged. */
bool dw_aranges_next(struct dw_aranges *it, struct dw_arange *ret_range);

#endif
