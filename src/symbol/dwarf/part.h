/*
 * Internal to the DWARF reader: of an image's debug information only what some addresses need.
 *
 * .debug_aranges tells the units; of .debug_info, .debug_abbrev and .debug_line their parts alone
 * are read. The sections keep their sizes and offsets: what is not loaded are pages that nobody
 * touched. So a first report does not wait for megabytes of a C library to be inflated: a packed
 * section is inflated up to the last unit in question and what lies between never reaches memory.
 *
 * It is for images whose aranges are believable for these addresses: each must be found there.
 * Compilers that write them write the code of the whole unit. References into units that are not
 * loaded are noticed (is_missed): the caller then loads everything and asks again.
 */
#ifndef ASSAY_SYMBOL_DWARF_PART_H
#define ASSAY_SYMBOL_DWARF_PART_H

#include "base/base.h"
#include "base/vec.h"
#include "object/elf.h"
#include "symbol/dwarf/dwarf_file.h"

struct dw_part {
	VEC(uint8_t *) memory; /* the sections that are loaded in part */
	atomic_bool is_missed;
	size_t nr_covered; /* addresses that the aranges name */
};

struct dw_part_query {
	const uint64_t *vaddrs; /* ascending */
	size_t nr_vaddrs;
	uint64_t min_vaddr; /* code below is discarded code */
	bool has_lines;     /* line tables, too */
};

/* Whether it is worth trying: by the sections alone. */
bool dw_part_is_possible(const struct elf *e);
/*
 * Fills @f, which is empty: its sections and the units of the addresses. False: not possible, @f
 * is as it was; the part is to be released either way. It must stay as long as @f is used.
 */
bool dw_part_load(struct dw_part *p, struct dw_file *f, struct elf *e,
		  const struct dw_part_query *query);
void dw_part_release(struct dw_part *p);

#endif
