/*
 * The unwind rules of one binary, compiled from .eh_frame (or .debug_frame) into packed rows
 * (wire/unwind_row.h): built once, immutable, shared by all processes that map the file, cached
 * on disk by build-id. Two tiers over the same rows:
 *	leaf tier       every row: for a sampled pc and for the frame under a signal frame
 *	call-site tier  only what return addresses need (issue of the in-kernel unwinder)
 *
 * A copy of the call frame sections stays with the rows: where a frame needs more than pc, sp
 * and fp, the program of its FDE is run again (unwind/cfi.h) for the rules of all registers.
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

/* Where the program for [pc, the next one's pc) is: bit 31 the section, the rest its offset. */
struct unwind_fde {
	uint32_t pc; /* relative to base */
	uint32_t where;
};
#define UNWIND_FDE_SECTION_SHIFT 31

enum unwind_section { UNWIND_EH_FRAME = 0, UNWIND_DEBUG_FRAME = 1, UNWIND_NR_SECTIONS };

struct unwind_table {
	uint64_t base; /* link-time address that pc 0 of the rows stands for; page aligned */
	uint64_t end;  /* first address past the last row's range */
	struct unwind_row *rows;
	uint32_t *pages; /* first row of each 4 KiB page (the one before counts on), nr_pages + 1 */
	struct unwind_special *specials;
	struct unwind_fde *fdes;
	uint32_t nr_rows;
	uint32_t nr_pages;
	uint32_t nr_specials;
	uint32_t nr_fdes;
	struct ehframe_section cfi[UNWIND_NR_SECTIONS]; /* n == 0: absent */
	uint64_t nr_bad;                                /* FDEs that could not be compiled */
	size_t nr_bytes;                                /* memory held, for the ledger */
	void *mapping; /* of the cache file, which everything points into; NULL: all owned */
};

/*
 * Compiles. A binary without unwind information gives a table with nr_rows == 0 and returns 0.
 * Another machine's binary gives -ENOTSUP.
 * @cache_dir: NULL for no cache; else rows are loaded from and stored to a file by build-id.
 */
int unwind_table_build(struct unwind_table **ret_t, struct elf *elf, const char *cache_dir,
		       struct err *err);
void unwind_table_free(struct unwind_table *t);
DEFINE_FREE_P(unwind_table, struct unwind_table)

/* The row that covers a link-time address, or NULL. */
const struct unwind_row *unwind_table_find(const struct unwind_table *t, uint64_t vaddr);

/* The FDE that covers a link-time address; false if none does. @ret_cie is filled and pointed to.
 */
bool unwind_table_fde(const struct unwind_table *t, uint64_t vaddr, struct ehframe_fde *ret_fde,
		      struct ehframe_cie *ret_cie);

#endif
