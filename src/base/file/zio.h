/*
 * Decompression of whole buffers and of streams by their magic: gzip/zlib, xz, zstd.
 * Sizes come from files and are therefore limited by the caller.
 */
#ifndef ASSAY_BASE_FILE_ZIO_H
#define ASSAY_BASE_FILE_ZIO_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"

enum zkind { ZKIND_NONE, ZKIND_GZIP, ZKIND_XZ, ZKIND_ZSTD, ZKIND_ZLIB };

/* By magic; ZKIND_ZLIB (a bare stream, as in ELF sections) is never guessed. */
enum zkind zio_sniff(const void *p, size_t n);
/* Appends the decompressed bytes. A truncated stream gives what there was and -ENODATA. */
int zio_decompress(struct buf *to, enum zkind kind, const void *p, size_t n, size_t limit,
		   struct err *err);
int zio_compress_zstd(struct buf *to, const void *p, size_t n, int level, struct err *err);
/* CRC-32 as zlib, gzip and .gnu_debuglink have it. */
uint32_t zio_crc32(const void *p, size_t n);
/* @level: 1 (fast) to 9 (small). */
int zio_compress_gzip(struct buf *to, const void *p, size_t n, int level, struct err *err);

#endif
