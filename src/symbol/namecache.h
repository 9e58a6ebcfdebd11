/*
 * Answers of a symbolizer on disk: one small file a binary, <cache_dir>/<build-id>.names, of the
 * addresses that were asked for so far. Debug files need not be inflated and indexed again to
 * name the same addresses in the next report.
 *
 * An answer is believed only if all that it came from is as it was: the binary, its debug file
 * and its supplement (device, inode, size, times of change), the flags, and the program that asks.
 * The file is believed only if it is a regular file of this user that nobody else may write, its
 * checksum holds and every index in it was checked. A file has at most NAME_CACHE_ADDRESSES
 * addresses; all files of the folder together are kept under NAME_CACHE_DIR_BYTES, oldest first.
 *
 * The cache is best effort: what cannot be loaded or stored is found out again, without a word.
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
	const struct elf *debug; /* NULL: there is none, or none was needed */
	const struct elf *alt;   /* dwz supplement; the same */
	unsigned flags;          /* symbolizer_flags */
};

struct name_cache; /* opaque */

/*
 * With what was stored for these sources. NULL: the binary cannot be cached (no build-id, an image
 * in memory). @cache_dir is copied, the sources are looked at in the call only.
 */
struct name_cache *name_cache_open(const char *cache_dir, const struct name_cache_sources *from);
void name_cache_free(struct name_cache *c);
/* False: not known. The frames are borrowed until the next name_cache_add. */
bool name_cache_find(const struct name_cache *c, uint64_t vaddr, const struct symbol_frame **ret_f,
		     size_t *ret_nr, enum symbol_source *ret_source);
/* Copies the frames; false if the cache is full. An address that is there is left as it is. */
bool name_cache_add(struct name_cache *c, uint64_t vaddr, const struct symbol_frame *frames,
		    size_t nr, enum symbol_source source);
size_t name_cache_left(const struct name_cache *c); /* addresses that may still be added */
/* Writes the file if there is something new in it. */
void name_cache_store(struct name_cache *c);

#endif
