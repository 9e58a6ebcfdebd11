/* Decompression; see zio.h. */
#include "base/base.h"
#include "base/file/zio.h"

#include <errno.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#define STEP ((size_t)256 << 10)

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

static int too_large(size_t limit, struct err *err)
{
	return err_set(err, -EFBIG, "decompressed data exceeds %zu bytes", limit);
}

static int inflate_all(struct buf *to, int window_bits, const void *p, size_t n, size_t limit,
		       struct err *err)
{
	CLEANUP(inflateEnd) z_stream z = {.next_in = (Bytef *)(uintptr_t)p};
	if (inflateInit2(&z, window_bits) != Z_OK)
		return err_set(err, -ENOMEM, "cannot start zlib");
	int rc = Z_OK;
	size_t start = to->n;
	size_t left = n;
	while (rc != Z_STREAM_END) {
		if (!z.avail_in && left) {
			z.avail_in = (uInt)MIN(left, (size_t)1 << 30);
			left -= z.avail_in;
		}
		z.next_out = (Bytef *)buf_reserve(to, STEP);
		z.avail_out = (uInt)STEP;
		rc = inflate(&z, Z_NO_FLUSH);
		to->n += STEP - z.avail_out;
		if (to->n - start > limit)
			return too_large(limit, err);
		if (rc == Z_BUF_ERROR && !z.avail_in && !left)
			return err_set(err, -ENODATA, "compressed data is truncated");
		if (rc != Z_OK && rc != Z_STREAM_END)
			return err_set(err, -EBADMSG, "%s", z.msg ? z.msg : "bad compressed data");
		if (rc == Z_STREAM_END && (z.avail_in || left) && window_bits > 15 &&
		    inflateReset(&z) == Z_OK && (z.avail_in + left) > 2)
			rc = Z_OK; /* concatenated members */
	}
	return 0;
}

static int unxz_all(struct buf *to, const void *p, size_t n, size_t limit, struct err *err)
{
	CLEANUP(lzma_end) lzma_stream z = LZMA_STREAM_INIT;
	if (lzma_stream_decoder(&z, (uint64_t)512 << 20, LZMA_CONCATENATED) != LZMA_OK)
		return err_set(err, -ENOMEM, "cannot start the xz decoder");
	z.next_in = p;
	z.avail_in = n;
	lzma_ret rc = LZMA_OK;
	size_t start = to->n;
	while (rc == LZMA_OK) {
		z.next_out = (uint8_t *)buf_reserve(to, STEP);
		z.avail_out = STEP;
		rc = lzma_code(&z, LZMA_FINISH);
		to->n += STEP - z.avail_out;
		if (to->n - start > limit)
			return too_large(limit, err);
	}
	if (rc == LZMA_BUF_ERROR)
		return err_set(err, -ENODATA, "xz data is truncated");
	return rc == LZMA_STREAM_END ? 0 : err_set(err, -EBADMSG, "bad xz data");
}

static void free_dctx(ZSTD_DCtx **d)
{
	(void)ZSTD_freeDCtx(*d); /* cannot fail */
}

static int unzstd_all(struct buf *to, const void *p, size_t n, size_t limit, struct err *err)
{
	CLEANUP(free_dctx) ZSTD_DCtx *d = ZSTD_createDCtx();
	if (!d)
		return err_set(err, -ENOMEM, "cannot start the zstd decoder");
	ZSTD_inBuffer in = {p, n, 0};
	size_t start = to->n;
	for (;;) {
		ZSTD_outBuffer o = {buf_reserve(to, STEP), STEP, 0};
		size_t rc = ZSTD_decompressStream(d, &o, &in);
		to->n += o.pos;
		if (ZSTD_isError(rc))
			return err_set(err, -EBADMSG, "bad zstd data: %s", ZSTD_getErrorName(rc));
		if (to->n - start > limit)
			return too_large(limit, err);
		if (in.pos == in.size && o.pos < o.size)
			return rc ? err_set(err, -ENODATA, "zstd data is truncated") : 0;
	}
}

static int decompress(struct buf *to, enum zkind kind, const void *p, size_t n, size_t limit,
		      struct err *err)
{
	switch (kind) {
	case ZKIND_GZIP:
		return inflate_all(to, 15 + 16, p, n, limit, err);
	case ZKIND_ZLIB:
		return inflate_all(to, 15, p, n, limit, err);
	case ZKIND_XZ:
		return unxz_all(to, p, n, limit, err);
	case ZKIND_ZSTD:
		return unzstd_all(to, p, n, limit, err);
	case ZKIND_NONE:
		break;
	}
	if (n > limit)
		return too_large(limit, err);
	buf_add(to, p, n);
	return 0;
}

int zio_decompress(struct buf *to, enum zkind kind, const void *p, size_t n, size_t limit,
		   struct err *err)
{
	int rc = decompress(to, kind, p, n, limit, err);
	if (to->p)
		to->p[to->n] = 0;
	return rc;
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
	CLEANUP(deflateEnd) z_stream z = {.next_in = (Bytef *)(uintptr_t)p};
	if (n > UINT32_MAX ||
	    deflateInit2(&z, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return err_set(err, -EIO, "cannot gzip %zu bytes", n);
	size_t bound = deflateBound(&z, n);
	z.avail_in = (uInt)n;
	z.next_out = (Bytef *)buf_reserve(to, bound);
	z.avail_out = (uInt)bound;
	int rc = deflate(&z, Z_FINISH);
	to->n += bound - z.avail_out;
	to->p[to->n] = 0;
	return rc == Z_STREAM_END ? 0 : err_set(err, -EIO, "gzip failed");
}
