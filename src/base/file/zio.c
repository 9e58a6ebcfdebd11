/* Decompression; see zio.h. */
#include "base/base.h"
#include "base/file/zio.h"

#include <errno.h>
#ifndef ASSAY_NO_ISAL
#include <isa-l/igzip_lib.h>
#endif
#include <zlib.h>
#include <zstd.h>

#include "base/file/zioread.h"
#include "base/mem.h"

#define STEP ((size_t)128 << 10)

enum zkind zio_sniff(const void *p, size_t n)
{
	const uint8_t *b = p;
	if (n >= 3 && b[0] == 0x1f && b[1] == 0x8b && b[2] == 8)
		return ZKIND_GZIP;
	if (n >= 6 && !memcmp(b,
			      "\xfd"
			      "7zXZ\0",
			      6))
		return ZKIND_XZ;
	if (n >= 4 && !memcmp(b, "\x28\xb5\x2f\xfd", 4))
		return ZKIND_ZSTD;
	return ZKIND_NONE;
}

struct memory {
	const uint8_t *p;
	size_t n;
};

static ssize_t read_memory(void *ctx, void *to, size_t n, struct err *err)
{
	(void)err;
	struct memory *m = ctx;
	size_t nr = MIN(n, m->n);
	memcpy(to, m->p, nr);
	m->p += nr;
	m->n -= nr;
	return (ssize_t)nr;
}

int zio_decompress(struct buf *to, enum zkind kind, const void *p, size_t n, size_t limit,
		   struct err *err)
{
	struct memory from = {p, n};
	CLEANUP(zio_reader_free_p) struct zio_reader *r = NULL;
	TRY(zio_reader_new(&r, kind, read_memory, &from, err));
	for (size_t start = to->n;;) {
		ssize_t got = zio_reader_some(r, buf_reserve(to, STEP), STEP, err);
		to->p[to->n + (size_t)MAX(got, 0)] = 0;
		if (got <= 0)
			return (int)got;
		to->n += (size_t)got;
		if (to->n - start > limit)
			return err_set(err, -EFBIG, "decompressed data exceeds %zu bytes", limit);
	}
}

int zio_compress_zstd(struct buf *to, const void *p, size_t n, int level, struct err *err)
{
	size_t bound = ZSTD_compressBound(n);
	size_t got = ZSTD_compress(buf_reserve(to, bound), bound, p, n, level);
	if (ZSTD_isError(got))
		return err_set(err, -EIO, "zstd: %s", ZSTD_getErrorName(got));
	to->n += got;
	to->p[to->n] = 0;
	return 0;
}

uint32_t zio_crc32(const void *p, size_t n)
{
	return (uint32_t)crc32_z(0, p, n);
}

int zio_compress_gzip(struct buf *to, const void *p, size_t n, int level, struct err *err)
{
	CLEANUP(deflateEnd) z_stream z = {.next_in = (Bytef *)(uintptr_t)p, .avail_in = (uInt)n};
	if (n > UINT32_MAX ||
	    deflateInit2(&z, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return err_set(err, -EIO, "cannot gzip %zu bytes", n);
	size_t bound = deflateBound(&z, n);
	z.next_out = (Bytef *)buf_reserve(to, bound);
	z.avail_out = (uInt)bound;
	int rc = deflate(&z, Z_FINISH);
	to->n += bound - z.avail_out;
	to->p[to->n] = 0;
	return rc == Z_STREAM_END ? 0 : err_set(err, -EIO, "gzip failed");
}

#ifdef ASSAY_NO_ISAL
static int compress_fast(struct buf *to, const void *p, size_t n, struct err *err)
{
	return zio_compress_gzip(to, p, n, 1, err);
}
#else
static int compress_fast(struct buf *to, const void *p, size_t n, struct err *err)
{
	if (n > UINT32_MAX)
		return err_set(err, -EIO, "cannot gzip %zu bytes", n);
	CLEANUP(free_p) struct isal_zstream *z = xmalloc(sizeof(*z)); /* 83 KB */
	CLEANUP(free_p) uint8_t *level_memory = xmalloc(ISAL_DEF_LVL1_DEFAULT);
	isal_deflate_init(z);
	z->level = 1;
	z->level_buf = level_memory;
	z->level_buf_size = ISAL_DEF_LVL1_DEFAULT;
	z->gzip_flag = IGZIP_GZIP;
	z->end_of_stream = 1;
	z->next_in = (uint8_t *)(uintptr_t)p;
	z->avail_in = (uint32_t)n;
	do {
		z->next_out = (uint8_t *)buf_reserve(to, STEP);
		z->avail_out = STEP;
		if (isal_deflate(z) != COMP_OK)
			return err_set(err, -EIO, "gzip failed");
		to->n += STEP - z->avail_out;
		to->p[to->n] = 0;
	} while (z->internal_state.state != ZSTATE_END);
	return 0;
}
#endif

#define SMALL_BYTES ((size_t)512 << 10)

int zio_compress_embedded(struct buf *to, const void *p, size_t n, struct err *err)
{
	return n > SMALL_BYTES ? compress_fast(to, p, n, err) : zio_compress_gzip(to, p, n, 6, err);
}
