/*
 * Internal to the DWARF reader: one pass over a unit's DIEs that finds, for sorted addresses, the
 * innermost function or inlined call that covers each.
 *
 * No table of intervals is built: whenever a DIE with code comes by, its ranges are looked up
 * among the addresses of the unit and "paint" those inside; children come after their parents, so
 * the last paint is the innermost. A node is kept only for a DIE that painted something, hence
 * memory is bounded by what is hit.
 */
#ifndef ASSAY_SYMBOL_DWARF_SCAN_H
#define ASSAY_SYMBOL_DWARF_SCAN_H

#include "base/base.h"
#include "symbol/dwarf/abbrev.h"
#include "symbol/dwarf/dwarf_file.h"

#define DW_NO_NODE UINT32_MAX

/* Where a name is to be found: a DIE of this file or of its dwz supplement. */
struct dw_ref {
	uint64_t offset;
	bool is_alt;
};

struct dw_node {
	struct dw_ref name_at;
	uint64_t func_start;
	uint32_t parent; /* DW_NO_NODE: a physical function */
	uint32_t call_file;
	uint32_t call_line;
	bool is_inlined;
	bool is_plain;     /* name is no linkage name */
	bool is_used;      /* some address ends here or inside */
	struct sv name;    /* filled after the scan, for used nodes */
	uint32_t path_idx; /* of call_file; the same */
};

struct dw_open_node {
	uint32_t node;
	uint32_t depth;
};

struct dw_scan {
	const struct dw_unit *unit;
	const struct dw_abbrevs *abbrevs;
	const uint64_t *vaddrs; /* ascending */
	size_t nr_vaddrs;
	uint64_t min_vaddr; /* code below is discarded code */
	unsigned flags;     /* dwarf_flags */
	uint32_t *leaves;   /* by address: node, or DW_NO_NODE */
	VEC(struct dw_node) nodes;
	VEC(struct dw_open_node) open; /* scratch */
	uint64_t range_budget;
};

/* False if the unit's DIEs do not parse to the end; what was found before stays. */
bool dw_scan_run(struct dw_scan *s);
void dw_scan_release(struct dw_scan *s);

typedef void (*dw_range_fn)(void *ctx, uint64_t lo, uint64_t hi);
/* The ranges of every function of a unit whose top DIE has none. */
bool dw_scan_functions(const struct dw_unit *u, const struct dw_abbrevs *t, dw_range_fn fn,
		       void *ctx);

#endif
