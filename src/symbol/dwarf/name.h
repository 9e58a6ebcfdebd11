/*
 * Internal to the DWARF reader: the name of a function's DIE, found through its abstract origin
 * and specification, remembered by offset.
 *
 * The linkage name if there is one on the way; else the plain name, qualified by the namespaces,
 * classes and functions around its declaration ("ns::Type::fn"). For that the unit's nesting is
 * listed once, when first asked for. One struct dw_names belongs to one worker.
 */
#ifndef ASSAY_SYMBOL_DWARF_NAME_H
#define ASSAY_SYMBOL_DWARF_NAME_H

#include "base/arena.h"
#include "base/base.h"
#include "base/map.h"
#include "symbol/dwarf/abbrev.h"
#include "symbol/dwarf/dwarf_file.h"

#define DW_SCOPE_MAPS 8

struct dw_scope { /* a DIE that qualifies what is inside */
	uint64_t offset;
	uint64_t end;
	uint32_t parent; /* idx, UINT32_MAX at the top */
};

struct dw_scope_map {
	const struct dw_unit *unit;
	VEC(struct dw_scope) scopes; /* by offset */
};

struct dw_known_name {
	struct sv text;
	bool is_plain;
};

struct dw_names {
	struct dw_abbrev_cache *abbrevs;
	struct arena *text; /* of names that had to be put together or copied */
	struct map memo;
	VEC(struct dw_known_name) names;
	struct dw_scope_map maps[DW_SCOPE_MAPS];
	unsigned next_map;
	uint64_t budget_bytes; /* of units still to be listed; set per unit of work */
};

void dw_names_release(struct dw_names *n);
/* Forgets everything about a file that is about to go. Names given out stay. */
void dw_names_forget(struct dw_names *n, const struct dw_file *f);
/* Empty if the DIE has no name; plain: it has no linkage name. Valid as long as the text arena and
 * the sections of @f. */
struct sv dw_name_at(struct dw_names *n, const struct dw_file *f, uint64_t die_offset,
		     bool *ret_is_plain);

#endif
