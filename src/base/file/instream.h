/*
 * An input that is read once, from start to end: a file or a pipe. Input in gzip, xz or zstd is
 * decompressed while it is read, so that it is never in memory as a whole.
 *
 * The stream counts what was read from the file (stored) and what came out of it (plain). A reader
 * limits its memory by the stored size: a file of 100 kB can decompress to 4 GB, but what an honest
 * one holds is in proportion to its own size. More than 256 MiB + 4096 times the stored size is an
 * error here; what may stay in memory is limited by format_check_room (format/format.h).
 *
 * A compressed stream that ends too early gives what could be read; instream_is_cut says so
 * afterwards. Not thread safe.
 */
#ifndef ASSAY_BASE_FILE_INSTREAM_H
#define ASSAY_BASE_FILE_INSTREAM_H

#include <sys/types.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"

struct instream; /* opaque */

/* Reads the descriptor, which the stream then owns (not 0, standard input), from its position. */
int instream_open(struct instream **ret_s, int fd, struct err *err);
void instream_free(struct instream *s);
DEFINE_FREE_P(instream, struct instream)
/* Reads up to n plain bytes. Returns the number, 0 at the end, or a negative code. */
ssize_t instream_read(struct instream *s, void *to, size_t n, struct err *err);
uint64_t instream_stored(const struct instream *s);
bool instream_is_packed(const struct instream *s);
/* Whether compressed data ended before the end that their format has; known at the end. */
bool instream_is_cut(const struct instream *s);
/* The descriptor, borrowed. */
int instream_fd(const struct instream *s);

#endif
