/*
 * Helpers of `assay convert` for memory profiles: options that trim the allocator's own frames from
 * the leaf end of stacks, and compression of heaptrack files by their suffix.
 */
#ifndef ASSAY_CMD_READ_CONVERT_HEAP_H
#define ASSAY_CMD_READ_CONVERT_HEAP_H

#include "base/arena.h"
#include "base/base.h"
#include "base/err.h"
#include "base/file/file.h"
#include "base/file/zio.h"
#include "format/format.h"
#include "model/profile.h"

/* Returns options for heap formats. They borrow the profile and are allocated in the arena. */
struct heapwrite_options convert_heap_options(struct arena *a, const struct profile *p);
/*
 * Returns the compression of a heaptrack file by the suffix of @path, .gz or .zst; else ZKIND_NONE.
 * @f may be NULL.
 */
enum zkind convert_heap_compression(const struct format *f, const char *path);
/* Compresses to->buf, writes it to @out and clears it. */
int convert_heap_compress(struct format_output *to, enum zkind kind, struct out *out,
			  struct err *err);

#endif
