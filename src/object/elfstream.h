/*
 * The plain bytes of one section, read forwards: of a compressed one no more is inflated than up
 * to the last byte that was asked for, and what is passed over takes no memory; of any other one
 * only the pieces that were asked for are read.
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
/* Of the section, decompressed. */
uint64_t elf_stream_nr_bytes(const struct elf_stream *s);
/* Where the next read may start: the end of the last one. */
uint64_t elf_stream_at(const struct elf_stream *s);
/* Bytes [offset, offset + n), where offset is not before elf_stream_at. */
int elf_stream_read(struct elf_stream *s, void *to, size_t n, uint64_t offset, struct err *err);
/* After the last byte was read: an error if there is more, or the stream's checksum does not hold.
 */
int elf_stream_finish(struct elf_stream *s, struct err *err);

#endif
