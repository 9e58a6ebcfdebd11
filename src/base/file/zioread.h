/*
 * Streaming decompression of zlib, gzip, xz and zstd. A callback supplies the compressed bytes in
 * pieces; the caller reads or skips any number of decompressed bytes. Skipped bytes go through one
 * small buffer that stays in the CPU cache. Checksums are checked at the end of a stream. Streams of
 * gzip, xz and zstd that follow each other are read as one; other bytes after gzip streams are ignored.
 *
 * Memory: the history that the compressor asks for, up to 128 MiB (zstd -22, xz -9 needs 64); more is
 * an error with a hint.
 */
#ifndef ASSAY_BASE_FILE_ZIOREAD_H
#define ASSAY_BASE_FILE_ZIOREAD_H

#include <sys/types.h>

#include "base/base.h"
#include "base/err.h"
#include "base/file/zio.h"

/* Copies up to @n compressed bytes to @to. Returns the number, 0 at the end, or negative errno. */
typedef ssize_t (*zio_source_fn)(void *ctx, void *to, size_t n, struct err *err);

struct zio_reader; /* opaque */

/* @kind: any but ZKIND_NONE. */
int zio_reader_new(struct zio_reader **ret_r, enum zkind kind, zio_source_fn source, void *ctx,
		   struct err *err);
void zio_reader_free(struct zio_reader *r);
DEFINE_FREE_P(zio_reader, struct zio_reader)
/*
 * Reads exactly @n decompressed bytes; @to NULL: skips them. -ENODATA: the stream ends before;
 * -EBADMSG: it is corrupt. After an error the reader can only be freed.
 */
int zio_reader_take(struct zio_reader *r, void *to, uint64_t n, struct err *err);
/*
 * Reads up to @n decompressed bytes, at least 1 unless the stream ends. Returns the number, 0 at the
 * end, or a negative code as zio_reader_take does.
 */
ssize_t zio_reader_some(struct zio_reader *r, void *to, size_t n, struct err *err);
/* Checks that the stream ends here. -EBADMSG: more data follows, or the data is corrupt. */
int zio_reader_finish(struct zio_reader *r, struct err *err);

#endif
