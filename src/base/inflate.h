/*
 * Deflate streams (RFC 1951), pulled: compressed bytes come from a function piece by piece, plain
 * bytes are handed out in pieces, and those that nobody wants never leave the core's cache.
 *
 * Why not zlib: naming the functions of a C library means to inflate megabytes of its debug
 * information, and this takes a third of the time (64-bit bit buffer, tables of 11 bits that hold
 * base and extra bits, words copied at a time; no window beside the output). Nothing in a stream
 * is believed: codes, distances and lengths are checked, truncation is told.
 */
#ifndef ASSAY_BASE_INFLATE_H
#define ASSAY_BASE_INFLATE_H

#include <sys/types.h>

#include "base/base.h"
#include "base/err.h"

/* Up to @n compressed bytes to @to; returns how many, 0 at the end, or a negative error. */
typedef ssize_t (*inflate_source_fn)(void *ctx, void *to, size_t n, struct err *err);

struct inflater; /* opaque; about 120 KiB */

struct inflater *inflater_new(inflate_source_fn source, void *ctx);
void inflater_free(struct inflater *x);
/*
 * Some of the next plain bytes, at least one, borrowed until the next call; *ret_n 0: the stream
 * has ended. -ENODATA: it is cut off, -EBADMSG: it is damaged; the error stays.
 */
int inflater_next(struct inflater *x, const uint8_t **ret_p, size_t *ret_n, struct err *err);
/* @n bytes that stand as they are in front of or behind the stream (headers, checksums). */
int inflater_raw(struct inflater *x, void *to, size_t n, struct err *err);

#endif
