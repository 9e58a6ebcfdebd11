/*
 * Internal to the DWARF reader: the name of a function's DIE, found through its abstract origin
 * and specification, and cached by offset.
 *
 * The name is the first linkage name on that chain; without one, it is the plain name, qualified by
 * the namespaces, classes and functions around its declaration ("ns::Type::fn"). To qualify names,
 * the scopes of a unit are listed once, when first needed. A struct dw_names belongs to one worker.
 */
#ifndef ASSAY_SYMBOL_DWARF_NAME_H
#define ASSAY_SYMBOL_DWARF_NAME_H

#include "base/arena.h"
#include "base/base.h"
#include "base/map.h"
#include "symbol/dwarf/abbrev.h"
#include "symbol/dwarf/dwarf_file.h"

#define DW_SCOPE_MAPS 8

struct dw_scope { /* a DIE that qualifies the names inside it */
	uint64_t offset;
	uint64_t end;
	uint32_t parent; /* index in scopes; UINT32_MAX: no enclosing scope */
};

struct dw_scope_map {
	const struct dw_unit *unit;
	VEC(struct dw_scope) scopes; /* sorted by offset */
};

struct dw_known_name {
	struct sv text;
	bool is_plain;
};

struct dw_names {
	struct dw_abbrev_cache *abbrevs;
	struct arena *text; /* names that had to be built or copied */
	struct map memo;    /* file number and DIE offset -> index in names */
	VEC(struct dw_known_name) names;
	struct dw_scope_map maps[DW_SCOPE_MAPS];
	unsigned next_map;
	uint64_t budget_bytes; /* how many bytes of units may still be listed; set for each job */
};

void dw_names_release(struct dw_names *n);
/* Drops cached data about a file that is about to be released. Returned names stay valid. */
void dw_names_drop_file(struct dw_names *n, const struct dw_file *f);
/*
 * Returns the name of a DIE; empty if it has none. *ret_is_plain: it has no linkage name. Valid as
 * long as the text arena and the sections of @f.
 */
struct sv dw_name_at(struct dw_names *n, const struct dw_file *f, uint64_t die_offset,
		     bool *ret_is_plain);

#endif
