/*
 * The recorder's image (inject/), embedded in assay: an ELF file in which each address equals its
 * file offset. To load it at address A, write it to a memfd, map the bytes [0, text_bytes) private
 * r-x at A, and the bytes [data_start, data_start + data_bytes) private rw- at A + data_start. There
 * are no relocations and no .bss. All addresses here are offsets from A.
 */
#ifndef ASSAY_REMOTE_PATCH_IMAGE_H
#define ASSAY_REMOTE_PATCH_IMAGE_H

#include "base/base.h"
#include "heap_wire.h"

struct heap_image {
	uint64_t text_bytes;           /* from offset 0; not rounded to pages */
	uint64_t data_start;           /* page aligned */
	uint64_t data_bytes;           /* whole pages */
	uint64_t data;                 /* struct heap_data */
	uint64_t entry[HEAP_SHAPE_NR]; /* where the stub of a function of this shape jumps to */
	uint64_t frames;               /* .eh_frame with its terminator */
	/* For jemalloc's experimental.hooks and experimental.hooks.prof_backtrace. */
	uint64_t hook_alloc;
	uint64_t hook_dalloc;
	uint64_t hook_expand;
	uint64_t prof_backtrace;
};

/* Returns the whole file; *ret_n == 0: there is none for this architecture. */
const uint8_t *heap_image_bytes(size_t *ret_n);
const struct heap_image *heap_image(void);

#endif
