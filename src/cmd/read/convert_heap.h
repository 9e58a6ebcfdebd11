/*
 * What converting profiles of memory needs beyond the format: stacks without the allocator's own
 * frames at their leaf, and heaptrack's files packed as their names say.
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

/* Borrows the profile, lives in the arena. */
struct heapwrite_options convert_heap_options(struct arena *a, const struct profile *p);
/* Only the names of heaptrack's files say so: .gz, .zst. @f may be NULL. */
enum zkind convert_heap_packing(const struct format *f, const char *path);
/* Takes all of to->buf, packed, to @out. */
int convert_heap_pack(struct format_output *to, enum zkind kind, struct out *out, struct err *err);

#endif
