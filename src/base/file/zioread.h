/*
 * Decompression that is pulled: the compressed bytes come from a function piece by piece, and the
 * caller takes or passes over as many plain bytes as it likes; what is passed over stays in a
 * core's cache. Zlib and zstd streams. The checksum of a zlib stream is looked at where it ends.
 */
#ifndef ASSAY_BASE_FILE_ZIOREAD_H
#define ASSAY_BASE_FILE_ZIOREAD_H

#include <sys/types.h>

#include "base/base.h"
#include "base/err.h"
#include "base/file/zio.h"

/* Up to @n compressed bytes to @to; returns how many, 0 at the end, or a negative error. */
typedef ssize_t (*zio_source_fn)(void *ctx, void *to, size_t n, struct err *err);

struct zio_reader; /* opaque */

/* @kind: ZKIND_ZLIB or ZKIND_ZSTD. */
int zio_reader_new(struct zio_reader **ret_r, enum zkind kind, zio_source_fn source, void *ctx,
		   struct err *err);
void zio_reader_free(struct zio_reader *r);
/*
 * Exactly @n plain bytes; @to NULL: they are passed over. -ENODATA: the stream ends before,
 * -EBADMSG: it is damaged. After an error the reader can only be freed.
 */
int zio_reader_take(struct zio_reader *r, void *to, uint64_t n, struct err *err);
/* The stream must end here. */
int zio_reader_finish(struct zio_reader *r, struct err *err);

#endif
