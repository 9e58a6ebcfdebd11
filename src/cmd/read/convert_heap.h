/*
 * Helpers of `assay convert` for memory profiles: options that trim the allocator's own frames from
 * the leaf end of stacks, and what a format does not hold.
 */
#ifndef ASSAY_CMD_READ_CONVERT_HEAP_H
#define ASSAY_CMD_READ_CONVERT_HEAP_H

#include "base/arena.h"
#include "base/base.h"
#include "format/format.h"
#include "model/profile.h"

/* Returns options for heap formats. They borrow the profile and are allocated in the arena. */
struct heapwrite_options convert_heap_options(struct arena *a, const struct profile *p);

/* Names the tables of memory that a file of @format does not hold, if it is one of heaps. */
void convert_heap_note_losses(const struct profile *p, const char *format);

#endif
