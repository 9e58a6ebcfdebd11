/*
 * On-disk cache of symbolization results: one file per binary, <cache_dir>/<device>-<inode>.names
 * (base/file/cachefile.h), which holds the addresses that were looked up so far. With it the next report does not decompress and
 * index debug files again for the same addresses.
 *
 * A cached result is used only if everything that it was derived from is unchanged: the binary, its
 * debug file and its dwz supplement (device, inode, size, mtime, ctime, owner), the flags, and the
 * assay executable. The cache file is used only if its checksum matches and every index in it is
 * valid. A file holds at most
 * NAME_CACHE_ADDRESSES addresses; the files of the directory are kept under NAME_CACHE_DIR_BYTES in
 * total by removing the oldest.
 *
 * The cache is best effort: what cannot be loaded or stored is computed again, without a message.
 */
#ifndef ASSAY_SYMBOL_NAMECACHE_H
#define ASSAY_SYMBOL_NAMECACHE_H

#include "base/base.h"
#include "object/elf.h"
#include "symbol/symbolizer.h"

#define NAME_CACHE_ADDRESSES 65536
#define NAME_CACHE_DIR_BYTES ((uint64_t)64 << 20)

struct name_cache_sources {
	const struct elf *binary;
	const struct elf *debug; /* NULL: none exists or none was needed */
	const struct elf *alt;   /* dwz supplement; NULL as for debug */
	unsigned flags;          /* symbolizer_flags */
};

struct name_cache; /* opaque */

/*
 * Opens the cache of a binary and loads what is stored for these sources. Returns NULL if the
 * binary cannot be cached (an image in memory, a FUSE file system). @cache_dir is copied; @from is used
 * only during the call.
 */
struct name_cache *name_cache_open(const char *cache_dir, const struct name_cache_sources *from);
void name_cache_free(struct name_cache *c);
/* Looks up an address; false if it is not cached. Frames are borrowed until name_cache_add. */
bool name_cache_find(const struct name_cache *c, uint64_t vaddr, const struct symbol_frame **ret_f,
		     size_t *ret_nr, enum symbol_source *ret_source);
/* Copies the frames; false if the cache is full. Does nothing for an address already cached. */
bool name_cache_add(struct name_cache *c, uint64_t vaddr, const struct symbol_frame *frames,
		    size_t nr, enum symbol_source source);
size_t name_cache_left(const struct name_cache *c); /* addresses that may still be added */
/* Writes the file if addresses were added. */
void name_cache_store(struct name_cache *c);

#endif
