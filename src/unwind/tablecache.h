/*
 * On-disk cache of compiled unwind tables, one file per binary (base/file/cachefile.h). A file is
 * used only if it was made from this version of this binary's file (device, inode, size, mtime,
 * ctime, owner), its checksum matches and every index in it is valid.
 *
 * The cache is best effort: what cannot be loaded or stored is built again, without a message.
 */
#ifndef ASSAY_UNWIND_TABLECACHE_H
#define ASSAY_UNWIND_TABLECACHE_H

#include "base/base.h"
#include "object/elf.h"
#include "unwind/table.h"

/* Loads the table of the image; negative if there is no valid file. */
int table_cache_load(struct unwind_table **ret_t, const struct elf *elf, const char *cache_dir);
/* Does nothing if the binary's file is no longer what it was before the table was built. */
void table_cache_store(const struct unwind_table *t, const struct elf *elf,
		       const struct file_identity *built_from, const char *cache_dir);
/* Unmaps the file of a table that was returned by table_cache_load. */
void table_cache_unmap(struct unwind_table *t);

#endif
