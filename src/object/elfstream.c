/* Sequential reading of a section; see elfstream.h. */
#include "base/base.h"
#include "object/elfstream.h"

#include <elf.h>
#include <errno.h>

#include "base/mem.h"
#include "base/file/rd.h"
#include "base/sv.h"
#include "base/file/zioread.h"

#define SECTION_BYTES_MAX ((uint64_t)4 << 30)
/* Limits the decompressed size; real sections stay under 20 times their compressed size. */
#define INFLATE_RATIO_MAX 200
#define INFLATE_FREE      ((uint64_t)16 << 20)
#define COMPRESS_ZSTD     2 /* ELFCOMPRESS_ZSTD: not in Debian 12's elf.h */

struct elf_stream {
	const struct elf *elf;
	uint64_t file_at;          /* file offset of the next stored bytes */
	uint64_t file_end;         /* file offset of the section's end */
	uint64_t nr_bytes;         /* decompressed size */
	uint64_t at;               /* decompressed position */
	uint64_t plain_at;         /* uncompressed section: its file offset */
	struct zio_reader *reader; /* NULL: the section is not compressed */
};

static ssize_t stored(void *ctx, void *to, size_t n, struct err *err)
{
	struct elf_stream *s = ctx;
	size_t nr = (size_t)MIN((uint64_t)n, s->file_end - s->file_at);
	TRY(elf_read(s->elf, to, nr, s->file_at, err));
	s->file_at += nr;
	return (ssize_t)nr;
}

/* How a section's bytes are stored: a header and a compressed stream, or uncompressed. */
struct packing {
	enum zkind kind;
	size_t nr_header;
	uint64_t nr_plain;
};

/* SHF_COMPRESSED: an Elf64_Chdr, then the stream (gABI, section compression). */
static int read_chdr(struct packing *p, struct rd r, struct err *err)
{
	uint32_t type = rd_u32(&r);
	rd_skip(&r, 4);
	p->nr_plain = rd_u64(&r);
	p->nr_header = 24;
	if (r.is_bad || rd_left(&r) < 8)
		return err_set(err, -EBADMSG, "compression header is truncated");
	if (type != ELFCOMPRESS_ZLIB && type != COMPRESS_ZSTD)
		return err_set(err, -ENOTSUP, "unknown section compression %u", type);
	p->kind = type == ELFCOMPRESS_ZLIB ? ZKIND_ZLIB : ZKIND_ZSTD;
	return 0;
}

/* .zdebug_*: "ZLIB", the size in big-endian, then the stream (old GNU extension). */
static int read_zdebug(struct packing *p, struct rd r, struct err *err)
{
	const uint8_t *magic = rd_bytes(&r, 4);
	uint64_t nr_plain = rd_u64(&r);
	if (r.is_bad || memcmp(magic, "ZLIB", 4))
		return err_set(err, -EBADMSG, "no ZLIB header");
	p->kind = ZKIND_ZLIB;
	p->nr_header = 12;
	p->nr_plain = __builtin_bswap64(nr_plain);
	return 0;
}

static int read_packing(struct packing *p, const struct elf *e, const struct elf_section *sec,
			struct err *err)
{
	*p = (struct packing){.kind = ZKIND_NONE, .nr_plain = sec->nr_bytes};
	bool is_zdebug = sv_has_prefix(sec->name, SV(".zdebug_"));
	if (sec->nr_bytes > SECTION_BYTES_MAX || sec->offset > elf_nr_bytes(e) ||
	    sec->nr_bytes > elf_nr_bytes(e) - sec->offset)
		return err_set(err, -ENODATA,
			       "its %" PRIu64 " bytes extend past the end of the file",
			       sec->nr_bytes);
	if (!(sec->flags & SHF_COMPRESSED) && !is_zdebug)
		return 0;
	uint8_t head[24];
	size_t nr_head = (size_t)MIN(sec->nr_bytes, (uint64_t)sizeof(head));
	int rc = elf_read(e, head, nr_head, sec->offset, err);
	struct rd r = rd_from(head, nr_head);
	if (!rc)
		rc = sec->flags & SHF_COMPRESSED ? read_chdr(p, r, err) : read_zdebug(p, r, err);
	if (rc)
		return rc;
	uint64_t nr_stored = sec->nr_bytes - p->nr_header;
	if (p->nr_plain > SECTION_BYTES_MAX ||
	    p->nr_plain > nr_stored * INFLATE_RATIO_MAX + INFLATE_FREE)
		return err_set(err, -EFBIG, "%" PRIu64 " bytes claim to hold %" PRIu64, nr_stored,
			       p->nr_plain);
	return 0;
}

int elf_stream_open(struct elf_stream **ret_s, const struct elf *e, const struct elf_section *sec,
		    struct err *err)
{
	struct packing packing;
	TRY(read_packing(&packing, e, sec, err));
	struct elf_stream *s CLEANUP(elf_stream_free_p) = xcalloc(1, sizeof(*s));
	s->elf = e;
	s->plain_at = sec->offset;
	s->file_at = sec->offset + packing.nr_header;
	s->file_end = sec->offset + sec->nr_bytes;
	s->nr_bytes = packing.nr_plain;
	if (packing.kind != ZKIND_NONE)
		TRY(zio_reader_new(&s->reader, packing.kind, stored, s, err));
	*ret_s = TAKE(s);
	return 0;
}

void elf_stream_free(struct elf_stream *s)
{
	if (!s)
		return;
	zio_reader_free(s->reader);
	free(s);
}

uint64_t elf_stream_nr_bytes(const struct elf_stream *s)
{
	return s->nr_bytes;
}

uint64_t elf_stream_at(const struct elf_stream *s)
{
	return s->at;
}

int elf_stream_read(struct elf_stream *s, void *to, size_t n, uint64_t offset, struct err *err)
{
	ASSERT(offset >= s->at);
	if (offset > s->nr_bytes || n > s->nr_bytes - offset)
		return err_set(err, -ENODATA,
			       "%zu bytes at %" PRIu64 " extend past the section's end", n, offset);
	int rc = 0;
	if (!s->reader) {
		rc = elf_read(s->elf, to, n, s->plain_at + offset, err);
	} else {
		rc = zio_reader_take(s->reader, NULL, offset - s->at, err);
		if (!rc)
			rc = zio_reader_take(s->reader, to, n, err);
	}
	if (!rc)
		s->at = offset + n;
	return rc;
}

int elf_stream_finish(struct elf_stream *s, struct err *err)
{
	return s->reader ? zio_reader_finish(s->reader, err) : 0;
}
