/*
 * Decompression that is pulled: the compressed bytes come from a function piece by piece, and the
 * caller takes or passes over as many plain bytes as it likes. Zlib and zstd streams.
 */
#ifndef ASSAY_BASE_ZIOREAD_H
#define ASSAY_BASE_ZIOREAD_H

#include "base/base.h"
#include "base/err.h"
#include "base/inflate.h"
#include "base/zio.h"

typedef inflate_source_fn zio_source_fn;

struct zio_reader; /* opaque */

/* @kind: ZKIND_ZLIB or ZKIND_ZSTD. */
int zio_reader_new(struct zio_reader **ret_r, enum zkind kind, zio_source_fn source, void *ctx,
		   struct err *err);
void zio_reader_free(struct zio_reader *r);
/* Before the first byte is taken: a zlib stream's checksum is looked at by zio_reader_finish. */
void zio_reader_sum(struct zio_reader *r);
/* Exactly @n plain bytes; @to NULL: they are passed over. -ENODATA: the stream ends before. */
int zio_reader_take(struct zio_reader *r, void *to, uint64_t n, struct err *err);
/* The stream must end here. */
int zio_reader_finish(struct zio_reader *r, struct err *err);

#endif
