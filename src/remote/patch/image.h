/*
 * The recorder's image (inject/), embedded in assay: an ELF file in which each address equals its
 * file offset. To load it, write it to a memfd and map bytes [0, text_bytes) private r-x, and
 * [data_start, +data_bytes) private rw- at the same distance. There are no relocations and no .bss.
 * All numbers here are offsets.
 */
#ifndef ASSAY_REMOTE_PATCH_IMAGE_H
#define ASSAY_REMOTE_PATCH_IMAGE_H

#include "base/base.h"
#include "heap_wire.h"

struct heap_image {
	uint64_t text_bytes; /* from offset 0; not rounded to pages */
	uint64_t data_start; /* page aligned */
	uint64_t data_bytes; /* whole pages */
	uint64_t data;       /* struct heap_data */
	uint64_t entry[HEAP_SHAPE_NR];
	uint64_t frames; /* .eh_frame with its terminator */
	/* For jemalloc's experimental.hooks and experimental.hooks.prof_backtrace. */
	uint64_t hook_alloc;
	uint64_t hook_dalloc;
	uint64_t hook_expand;
	uint64_t prof_backtrace;
};

/* The whole file; *ret_n == 0: not available for this architecture. */
const uint8_t *heap_image_bytes(size_t *ret_n);
const struct heap_image *heap_image(void);

#endif
