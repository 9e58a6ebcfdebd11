/*
 * Reads the decompressed bytes of one section sequentially. A compressed section is decompressed
 * only up to the last byte requested, and skipped bytes take no memory; of an uncompressed section
 * only the requested pieces are read.
 *
 * Borrows the image until elf_stream_free. The limits are those of elf.h.
 */
#ifndef ASSAY_OBJECT_ELFSTREAM_H
#define ASSAY_OBJECT_ELFSTREAM_H

#include "base/base.h"
#include "base/err.h"
#include "object/elf.h"

struct elf_stream; /* opaque */

int elf_stream_open(struct elf_stream **ret_s, const struct elf *e, const struct elf_section *sec,
		    struct err *err);
void elf_stream_free(struct elf_stream *s);
DEFINE_FREE_P(elf_stream, struct elf_stream)
/* Returns the decompressed size of the section. */
uint64_t elf_stream_nr_bytes(const struct elf_stream *s);
/* Returns the current position, which is the end of the last read. */
uint64_t elf_stream_at(const struct elf_stream *s);
/* Reads the bytes [offset, offset + n); @offset must not be before elf_stream_at. */
int elf_stream_read(struct elf_stream *s, void *to, size_t n, uint64_t offset, struct err *err);
/* Call after the last byte was read: checks that the stream ends there and its checksum. */
int elf_stream_finish(struct elf_stream *s, struct err *err);

#endif
