/*
 * Internal to the DWARF reader: loads only those parts of an image's debug information that a set
 * of addresses needs. So the first report does not wait until megabytes of a C library's debug
 * information are decompressed.
 *
 * .debug_aranges gives the units; of .debug_info, .debug_abbrev and .debug_line only the parts of
 * these units are read. The sections keep their sizes and offsets; the parts that are not loaded
 * are reserved address space without pages. A compressed section is decompressed as a stream up to
 * the last unit needed, and units in between are not stored.
 *
 * This is used only if .debug_aranges covers every one of the addresses: compilers that write it
 * list all code of a unit. A reference into a unit that is not loaded sets is_unit_missing; the
 * caller then loads everything and repeats the query.
 */
#ifndef ASSAY_SYMBOL_DWARF_PART_H
#define ASSAY_SYMBOL_DWARF_PART_H

#include "base/base.h"
#include "base/vec.h"
#include "object/elf.h"
#include "symbol/dwarf/dwarf_file.h"

struct dw_part {
	VEC(uint8_t *) memory; /* the partly loaded sections */
	atomic_bool is_unit_missing;
	size_t nr_covered; /* addresses that .debug_aranges covers */
};

struct dw_part_query {
	const uint64_t *vaddrs; /* ascending */
	size_t nr_vaddrs;
	uint64_t min_vaddr; /* code below it was discarded by the linker */
	bool has_lines;     /* load line tables as well */
};

/* Returns whether the image has the sections for a partial load, by its section headers alone. */
bool dw_part_is_possible(const struct elf *e);
/*
 * Loads sections and the units of the addresses into @f, which is empty. False: not possible, @f is
 * unchanged. @p must be released in both cases, and must outlive @f.
 */
bool dw_part_load(struct dw_part *p, struct dw_file *f, struct elf *e,
		  const struct dw_part_query *query);
void dw_part_release(struct dw_part *p);

#endif
