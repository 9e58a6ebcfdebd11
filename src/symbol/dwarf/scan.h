/*
 * Internal to the DWARF reader: one pass over a unit's DIEs that finds, for sorted addresses, the
 * innermost function or inlined call that covers each.
 *
 * No interval table is built. The ranges of each DIE with code are searched among the unit's
 * addresses, and the addresses inside are assigned to its node. Children come after their parents,
 * so the last assignment is the innermost. Nodes are kept only for DIEs that cover an address, so
 * memory is bounded by the number of addresses.
 */
#ifndef ASSAY_SYMBOL_DWARF_SCAN_H
#define ASSAY_SYMBOL_DWARF_SCAN_H

#include "base/base.h"
#include "symbol/dwarf/abbrev.h"
#include "symbol/dwarf/dwarf_file.h"

#define DW_NO_NODE UINT32_MAX

/* The DIE that holds a name, in this file or in its dwz supplement. */
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
	bool is_plain;     /* name is not a linkage name */
	bool is_used;      /* innermost node of an address, or encloses such a node */
	struct sv name;    /* set after the scan, for used nodes */
	uint32_t path_idx; /* of call_file; set after the scan, for used nodes */
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
	uint64_t min_vaddr; /* code below it was discarded by the linker */
	unsigned flags;     /* dwarf_flags */
	uint32_t *leaves;   /* innermost node of each address, or DW_NO_NODE */
	VEC(struct dw_node) nodes;
	VEC(struct dw_open_node) open; /* the nodes that enclose the DIE being scanned */
	uint64_t range_budget; /* address ranges that may still be read; set by dw_scan_run */
};

/* Scans the unit. False if its DIEs do not parse to the end; results found before remain. */
bool dw_scan_run(struct dw_scan *s);
void dw_scan_release(struct dw_scan *s);

/* Receives the link-time addresses [lo, hi). */
typedef void (*dw_range_fn)(void *ctx, uint64_t lo, uint64_t hi);
/*
 * Calls @fn for each range of each function of the unit, for units whose unit DIE has no ranges.
 * False if the DIEs do not parse to the end; ranges found before were reported.
 */
bool dw_scan_functions(const struct dw_unit *u, const struct dw_abbrevs *t, dw_range_fn fn,
		       void *ctx);

#endif
