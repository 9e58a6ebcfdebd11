/*
 * Internal to the DWARF reader: finds the units that may cover an address.
 *
 * The address ranges of a unit are taken from its unit DIE, which has to be read anyway to follow
 * the chain of units (about a microsecond each). .debug_aranges, which compilers and linkers leave
 * incomplete, is used only for units whose unit DIE gives no ranges. Units that neither covers are
 * scanned for the ranges of their functions.
 */
#ifndef ASSAY_SYMBOL_DWARF_INDEX_H
#define ASSAY_SYMBOL_DWARF_INDEX_H

#include "base/base.h"
#include "symbol/dwarf/abbrev.h"
#include "symbol/dwarf/dwarf_file.h"

#define DW_CANDIDATES_MAX 4 /* units tried for one address; overlaps are rare */

/* An address range that a unit covers. */
struct dw_piece {
	uint64_t lo, hi;
	uint32_t unit; /* index */
};

struct dw_index {
	VEC(struct dw_piece) pieces; /* sorted by lo */
};

/* Builds the index. Ranges below @min_vaddr belong to discarded code and are skipped. */
void dw_index_build(struct dw_index *x, const struct dw_file *f, struct dw_abbrev_cache *abbrevs,
		    uint64_t min_vaddr);
void dw_index_release(struct dw_index *x);

/* One (unit, address) pair to look up. */
struct dw_hit {
	uint32_t unit;
	uint32_t query; /* index of the address */
};

typedef VEC(struct dw_hit) dw_hits;

/* Appends the pairs of all addresses, in query order, at most DW_CANDIDATES_MAX for each. */
void dw_index_find(const struct dw_index *x, const uint64_t *vaddrs, size_t nr, dw_hits *hits);

#endif
