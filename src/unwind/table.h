/*
 * The unwind table of one binary: .eh_frame (or .debug_frame, or Go's table of functions) compiled into
 * packed rows (wire/unwind_row.h). It is built once, is immutable, is shared by all processes that map the
 * file, and is cached on disk (tablecache.h).
 *
 * A copy of the call frame sections is kept with the rows. Where a frame needs more registers than
 * pc, sp and fp, the program of its FDE is run (unwind/cfi.h) to get the rules of all registers.
 *
 * Addresses here are link-time addresses; space.h adds a mapping's bias.
 */
#ifndef ASSAY_UNWIND_TABLE_H
#define ASSAY_UNWIND_TABLE_H

#include "base/base.h"
#include "base/err.h"
#include "object/ehframe.h"
#include "object/elf.h"
#include "unwind_row.h"

/*
 * Locates the FDE for [pc, pc of the next entry). where: bit 31 is the section (enum
 * unwind_section), bits 0..30 are the FDE's offset in it.
 */
struct unwind_fde {
	uint32_t pc; /* relative to base */
	uint32_t where;
};
#define UNWIND_FDE_SECTION_SHIFT 31

enum unwind_section { UNWIND_EH_FRAME = 0, UNWIND_DEBUG_FRAME = 1, UNWIND_NR_SECTIONS };

struct unwind_table {
	uint64_t base; /* link-time address to which the rows' pc is relative; page aligned */
	uint64_t end;  /* first address past the last row's range */
	struct unwind_row *rows;
	/* First row that starts in each 4 KiB page, nr_pages + 1 entries. The row before it also
	 * covers the start of the page. */
	uint32_t *pages;
	struct unwind_special *specials;
	struct unwind_fde *fdes;
	uint32_t nr_rows;
	uint32_t nr_pages;
	uint32_t nr_specials;
	uint32_t nr_fdes;
	struct ehframe_section cfi[UNWIND_NR_SECTIONS]; /* n == 0: absent */
	uint64_t nr_bad;                                /* FDEs that could not be compiled */
	size_t nr_bytes;                                /* memory used, for statistics */
	void *mapping; /* cache file that all pointers point into; NULL: all arrays are allocated */
};

/*
 * Compiles the unwind table of a binary. Without unwind information the table has nr_rows == 0 and
 * the result is 0. A binary of another architecture gives -ENOTSUP.
 * @cache_dir: rows are loaded from and stored to a file there (tablecache.h); NULL: no cache.
 */
int unwind_table_build(struct unwind_table **ret_t, struct elf *elf, const char *cache_dir,
		       struct err *err);
void unwind_table_free(struct unwind_table *t);
DEFINE_FREE_P(unwind_table, struct unwind_table)

/* Returns the row that covers a link-time address, or NULL. */
const struct unwind_row *unwind_table_find(const struct unwind_table *t, uint64_t vaddr);

/* Finds the FDE that covers a link-time address; false if none does. ret_fde->cie is @ret_cie. */
bool unwind_table_fde(const struct unwind_table *t, uint64_t vaddr, struct ehframe_fde *ret_fde,
		      struct ehframe_cie *ret_cie);

#endif
