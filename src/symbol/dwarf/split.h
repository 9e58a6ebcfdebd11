/*
 * Internal to the DWARF reader: split units. The executable holds a skeleton unit (ranges, lines,
 * bases, an id). Functions and inlined calls are in a .dwo file, or in a contribution of a .dwp
 * package that is found by the id in its .debug_cu_index (GNU version 2, DWARF 5 section 7.3.5.3).
 */
#ifndef ASSAY_SYMBOL_DWARF_SPLIT_H
#define ASSAY_SYMBOL_DWARF_SPLIT_H

#include "base/base.h"
#include "object/debugfile.h"
#include "symbol/dwarf/dwarf_file.h"

struct dw_package { /* a .dwp file; read-only once loaded, shared by the workers */
	struct elf *elf;
	struct dw_file file; /* the sections with the contributions of all units */
	struct sv index;     /* .debug_cu_index */
};

struct dw_split {
	struct dw_file file;
	struct elf *elf; /* the .dwo file; NULL for a contribution of a package */
	const struct dw_unit *unit;
};

/* Opens PATH.dwp; if there is none, package->elf stays NULL. */
void dw_package_open(struct dw_package *p, const char *path, const struct debug_search *search);
void dw_package_release(struct dw_package *p);
/*
 * Opens the split unit of a skeleton unit, from the package or else from its .dwo file. @number:
 * the value for dw_file.number. False if it is not found or its id differs (another build).
 */
bool dw_split_open(struct dw_split *s, const struct dw_unit *skeleton, const struct dw_package *p,
		   const char *path, const struct debug_search *search, uint32_t number);
void dw_split_release(struct dw_split *s);

/*
 * Opens the supplementary file named in .debug_sup (DWARF 5 section 7.3.6); the caller frees it.
 * NULL: none is named, or it is not found or has another checksum.
 */
struct elf *dw_sup_open(struct elf *e, const char *path, const struct debug_search *search);

#endif
