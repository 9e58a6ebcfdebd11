/*
 * Internal to the DWARF reader: split units. The executable keeps a skeleton (ranges, lines,
 * bases, an id); functions and inlines are in a .dwo file, or in a contribution of a .dwp package
 * that is found by the id in its .debug_cu_index (GNU version 2, DWARF 5 section 7.3.5.3).
 */
#ifndef ASSAY_SYMBOL_DWARF_SPLIT_H
#define ASSAY_SYMBOL_DWARF_SPLIT_H

#include "base/base.h"
#include "object/debugfile.h"
#include "symbol/dwarf/dwarf_file.h"

struct dw_package { /* a .dwp; constant once loaded, shared by the workers */
	struct elf *elf;
	struct dw_file file; /* whole sections, not indexed */
	struct sv index;
};

struct dw_split {
	struct dw_file file;
	struct elf *elf; /* of a .dwo; NULL for a contribution */
	const struct dw_unit *unit;
};

/* Looks for PATH.dwp; without one package->elf stays NULL. */
void dw_package_open(struct dw_package *p, const char *path, const struct debug_search *search);
void dw_package_release(struct dw_package *p);
/*
 * Opens the split unit of a skeleton, from the package or else from its .dwo. @number: the file
 * number to give it. False if it is not to be found or is not the same build's.
 */
bool dw_split_open(struct dw_split *s, const struct dw_unit *skeleton, const struct dw_package *p,
		   const char *path, const struct debug_search *search, uint32_t number);
void dw_split_release(struct dw_split *s);

/* The supplementary file that .debug_sup names (DWARF 5 section 7.3.6), or NULL. */
struct elf *dw_sup_open(struct elf *e, const char *path, const struct debug_search *search);

#endif
