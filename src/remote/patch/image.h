/*
 * The image of the recorder (inject/), embedded: an ELF file whose addresses are its offsets. To
 * load it: a memfd with these bytes, bytes [0, text_bytes) mapped private to read and execute,
 * [data_start, +data_bytes) private to read and write at the same distance. Nothing is to be
 * relocated, there is no .bss. Numbers here are offsets.
 */
#ifndef ASSAY_REMOTE_PATCH_IMAGE_H
#define ASSAY_REMOTE_PATCH_IMAGE_H

#include "base/base.h"
#include "heap_wire.h"

struct heap_image {
	uint64_t text_bytes; /* from 0; end of what is used, not of the page */
	uint64_t data_start; /* page aligned */
	uint64_t data_bytes; /* whole pages */
	uint64_t data;       /* struct heap_data */
	uint64_t entry[HEAP_SHAPE_NR];
	uint64_t frames; /* .eh_frame, ended by a zero */
	/* For jemalloc's experimental.hooks and experimental.hooks.prof_backtrace. */
	uint64_t hook_alloc;
	uint64_t hook_dalloc;
	uint64_t hook_expand;
	uint64_t prof_backtrace;
};

/* The whole file; *ret_n == 0: there is none for this machine. */
const uint8_t *heap_image_bytes(size_t *ret_n);
const struct heap_image *heap_image(void);

#endif
