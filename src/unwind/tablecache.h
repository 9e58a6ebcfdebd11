/*
 * On-disk cache of compiled unwind tables, one file per build-id. A file is only ever replaced by
 * rename. It is used only if it is a regular file owned by this user that nobody else may write,
 * its checksum matches and every index in it is valid.
 *
 * The cache is best effort: what cannot be loaded or stored is built again, without a message.
 */
#ifndef ASSAY_UNWIND_TABLECACHE_H
#define ASSAY_UNWIND_TABLECACHE_H

#include "base/base.h"
#include "object/elf.h"
#include "unwind/table.h"

/* Loads the table of the image's build-id; negative if there is no valid file. */
int table_cache_load(struct unwind_table **ret_t, struct elf *elf, const char *cache_dir);
void table_cache_store(const struct unwind_table *t, struct elf *elf, const char *cache_dir);
/* Unmaps the file of a table that was returned by table_cache_load. */
void table_cache_unmap(struct unwind_table *t);

#endif
