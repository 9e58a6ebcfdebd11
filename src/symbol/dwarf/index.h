/*
 * Internal to the DWARF reader: which units may cover an address.
 *
 * The top DIEs say it; they have to be read for the chain of units anyway and cost about a
 * microsecond each, so .debug_aranges, which compilers and linkers leave incomplete, is believed
 * only for units whose top DIE is silent. What both leave out is found from its functions.
 */
#ifndef ASSAY_SYMBOL_DWARF_INDEX_H
#define ASSAY_SYMBOL_DWARF_INDEX_H

#include "base/base.h"
#include "symbol/dwarf/abbrev.h"
#include "symbol/dwarf/dwarf_file.h"

#define DW_CANDIDATES_MAX 4 /* units looked at for one address; overlaps are rare */

struct dw_piece {
	uint64_t lo, hi;
	uint32_t unit;
};

struct dw_index {
	VEC(struct dw_piece) pieces; /* by lo */
};

/* Code below @min_vaddr is discarded code. */
void dw_index_build(struct dw_index *x, const struct dw_file *f, struct dw_abbrev_cache *abbrevs,
		    uint64_t min_vaddr);
void dw_index_release(struct dw_index *x);

/* One (unit, address) pair to look at. */
struct dw_hit {
	uint32_t unit;
	uint32_t query;
};

typedef VEC(struct dw_hit) dw_hits;

/* Appends the pairs of all addresses, by ascending query, at most DW_CANDIDATES_MAX each. */
void dw_index_find(const struct dw_index *x, const uint64_t *vaddrs, size_t nr, dw_hits *hits);

#endif
