/*
 * Compiled tables on disk, one file a build-id. A file is only ever replaced by rename, and is
 * believed only if it is a regular file of this user that nobody else may write, its checksum
 * holds and every index in it was checked.
 *
 * The cache is best effort: what cannot be loaded or stored is built again, without a word.
 */
#ifndef ASSAY_UNWIND_TABLECACHE_H
#define ASSAY_UNWIND_TABLECACHE_H

#include "base/base.h"
#include "object/elf.h"
#include "unwind/table.h"

/* 0, or negative if there is no (good) file for the image's build-id. */
int table_cache_load(struct unwind_table **ret_t, struct elf *elf, const char *cache_dir);
void table_cache_store(const struct unwind_table *t, struct elf *elf, const char *cache_dir);
/* Of a table that table_cache_load gave. */
void table_cache_unmap(struct unwind_table *t);

#endif
