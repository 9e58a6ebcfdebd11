/*
 * Internal to the DWARF reader: opens sections in memory instead of an image, for tests and
 * fuzzing. The bytes are borrowed until dwarf_free. @alt: sections of a dwz supplement, or NULL.
 * @min_vaddr: code below it is treated as discarded by the linker.
 */
#ifndef ASSAY_SYMBOL_DWARF_SECTIONS_H
#define ASSAY_SYMBOL_DWARF_SECTIONS_H

#include "base/base.h"
#include "symbol/dwarf/dwarf.h"
#include "symbol/dwarf/dwarf_file.h"

struct dwarf *dwarf_new_sections(const struct sv sections[DW_SEC_NR], const struct sv *alt,
				 uint64_t min_vaddr, unsigned nr_threads);

#endif
