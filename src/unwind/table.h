/*
 * The unwind rules of one binary, compiled from .eh_frame (or .debug_frame) into packed rows
 * (wire/unwind_row.h): built once, immutable, shared by all processes that map the file, cached
 * on disk by build-id. Two tiers over the same rows:
 *	leaf tier       every row: for a sampled pc and for the frame under a signal frame
 *	call-site tier  only what return addresses need (issue of the in-kernel unwinder)
 *
 * Addresses here are link-time addresses; space.h adds a mapping's bias.
 */
#ifndef ASSAY_UNWIND_TABLE_H
#define ASSAY_UNWIND_TABLE_H

#include "base/base.h"
#include "base/err.h"
#include "object/elf.h"
#include "unwind_row.h"

struct unwind_special; /* table.c: full register rules and expressions */

struct unwind_table {
	uint64_t base;          /* link-time address that pc 0 of the rows stands for */
	uint64_t end;           /* first address past the last row's range */
	struct unwind_row *rows;
	uint32_t nr_rows;
	uint32_t *pages;        /* index of the first row of each 4 KiB page, nr_pages + 1 entries */
	uint32_t nr_pages;
	struct unwind_special *specials;
	uint32_t nr_specials;
	uint8_t *exprs; /* bytes of DWARF expressions that specials point into */
	uint32_t nr_exprs;
	uint64_t nr_bad; /* FDEs that could not be compiled */
	size_t nr_bytes; /* memory held, for the ledger */
};

/*
 * Compiles. A binary without unwind information gives a table with nr_rows == 0 and returns 0.
 * @cache_dir: NULL for no cache; else rows are loaded from and stored to a file by build-id.
 */
int unwind_table_build(struct unwind_table **ret_t, struct elf *elf, const char *cache_dir,
                       struct err *err);
void unwind_table_free(struct unwind_table *t);

/* The row that covers a link-time address, or NULL. */
const struct unwind_row *unwind_table_find(const struct unwind_table *t, uint64_t vaddr);

#endif
