/*
 * Compression and decompression of whole buffers: gzip, zlib, xz, zstd.
 * The caller passes a limit for the decompressed size, since sizes in files cannot be trusted.
 */
#ifndef ASSAY_BASE_FILE_ZIO_H
#define ASSAY_BASE_FILE_ZIO_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"

enum zkind { ZKIND_NONE, ZKIND_GZIP, ZKIND_XZ, ZKIND_ZSTD, ZKIND_ZLIB };

/*
 * Returns the kind by magic bytes, or ZKIND_NONE. Never ZKIND_ZLIB (as in ELF sections): a zlib stream
 * has no magic bytes.
 */
enum zkind zio_sniff(const void *p, size_t n);
/*
 * Appends the decompressed bytes; @kind is not ZKIND_NONE. A truncated stream appends what could be
 * read: -ENODATA.
 */
int zio_decompress(struct buf *to, enum zkind kind, const void *p, size_t n, size_t limit,
		   struct err *err);
int zio_compress_zstd(struct buf *to, const void *p, size_t n, int level, struct err *err);
/* CRC-32 as used by zlib, gzip and .gnu_debuglink. */
uint32_t zio_crc32(const void *p, size_t n);
/* @level: 1 (fast) to 9 (small). */
int zio_compress_gzip(struct buf *to, const void *p, size_t n, int level, struct err *err);
/*
 * gzip for data inside of a page or picture: as zlib's level 6, above 512 KiB by ISA-L, 5 to 20 times as
 * fast, to up to a sixth more bytes. Its bytes may differ between builds and processors.
 */
int zio_compress_embedded(struct buf *to, const void *p, size_t n, struct err *err);

#endif
