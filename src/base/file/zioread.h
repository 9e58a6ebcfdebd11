/*
 * Streaming decompression of zlib and zstd. A callback supplies the compressed bytes in pieces; the
 * caller reads or skips any number of decompressed bytes. Skipped bytes go through one small buffer
 * that stays in the CPU cache. The checksum of a zlib stream is checked at its end.
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

/* @kind: ZKIND_ZLIB or ZKIND_ZSTD. */
int zio_reader_new(struct zio_reader **ret_r, enum zkind kind, zio_source_fn source, void *ctx,
		   struct err *err);
void zio_reader_free(struct zio_reader *r);
/*
 * Reads exactly @n decompressed bytes; @to NULL: skips them. -ENODATA: the stream ends before;
 * -EBADMSG: it is corrupt. After an error the reader can only be freed.
 */
int zio_reader_take(struct zio_reader *r, void *to, uint64_t n, struct err *err);
/* Checks that the stream ends here. -EBADMSG: more data follows, or the data is corrupt. */
int zio_reader_finish(struct zio_reader *r, struct err *err);

#endif
