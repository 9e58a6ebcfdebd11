/*
 * Streaming decompression; see zioread.h.
 *
 * Zlib and gzip streams are decoded by ISA-L, 2.5 times as fast as zlib does it (534 and 213 MB/s on
 * a C library's .debug_info), or by zlib itself where there is no ISA-L to link (ISAL=0). Each
 * decoder has four functions: new, free, feed (its next compressed bytes), step (some plain ones).
 */
#include "base/base.h"
#include "base/file/zioread.h"

#include <errno.h>
#include <lzma.h>
#ifdef ASSAY_NO_ISAL
#include <zlib.h>
#else
#include <isa-l/igzip_lib.h>
#endif
#include <zstd.h>
#include <zstd_errors.h>

#include "base/mem.h"

/* Small enough for the CPU cache: skipped bytes never reach memory. */
#define IN_BYTES          ((size_t)64 << 10)
#define OUT_BYTES         ((size_t)128 << 10)
#define HISTORY_BYTES_MAX ((uint64_t)128 << 20) /* of xz; zstd's own limit is the same */

#define GZIP_FIRST 0x1f /* the first byte of a gzip stream */

struct zio_reader {
	enum zkind kind;
	zio_source_fn source;
	void *ctx;
	const uint8_t *p; /* decompressed bytes not yet returned */
	size_t n;
	bool is_fed;   /* the decoder has compressed bytes left */
	bool is_whole; /* zlib, xz: the stream has ended; gzip, zstd: it may end here */
	bool is_last;  /* xz: the source has no more bytes */
	bool is_ended;
#ifdef ASSAY_NO_ISAL
	z_stream *zlib;
#else
	struct inflate_state *zlib;
#endif
	ZSTD_DCtx *zstd;
	ZSTD_inBuffer zstd_in;
	lzma_stream xz;
	uint8_t *bytes; /* IN_BYTES, then OUT_BYTES */
};

/* ---- zlib ---- */

#ifdef ASSAY_NO_ISAL
static int zlib_new(struct zio_reader *r)
{
	r->zlib = xcalloc(1, sizeof(*r->zlib));
	return inflateInit2(r->zlib, r->kind == ZKIND_GZIP ? 15 + 16 : 15) == Z_OK ? 0 : -ENOMEM;
}

/* Begins the next stream of a gzip file. False: no other one follows. */
static bool zlib_next(struct zio_reader *r)
{
	return *r->zlib->next_in == GZIP_FIRST && inflateReset(r->zlib) == Z_OK;
}

static void zlib_free(struct zio_reader *r)
{
	if (r->zlib)
		inflateEnd(r->zlib);
	free(r->zlib);
}

static void zlib_feed(struct zio_reader *r, size_t n)
{
	r->zlib->next_in = r->bytes;
	r->zlib->avail_in = (uInt)n;
}

static int zlib_step(struct zio_reader *r, struct err *err)
{
	r->zlib->next_out = r->bytes + IN_BYTES;
	r->zlib->avail_out = OUT_BYTES;
	int rc = inflate(r->zlib, Z_NO_FLUSH);
	if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
		return err_set(err, -EBADMSG, "bad compressed data: %s",
			       r->zlib->msg ? r->zlib->msg : "not a zlib stream");
	r->n = OUT_BYTES - r->zlib->avail_out;
	r->is_fed = r->zlib->avail_in > 0;
	r->is_whole = rc == Z_STREAM_END;
	return 0;
}
#else
static int zlib_new(struct zio_reader *r)
{
	r->zlib = xmalloc(sizeof(*r->zlib)); /* 87 KB */
	isal_inflate_init(r->zlib);
	r->zlib->crc_flag = r->kind == ZKIND_GZIP ? ISAL_GZIP : ISAL_ZLIB;
	return 0;
}

/* Begins the next stream of a gzip file. False: no other one follows. */
static bool zlib_next(struct zio_reader *r)
{
	if (*r->zlib->next_in != GZIP_FIRST)
		return false;
	r->zlib->crc_flag = ISAL_GZIP;
	isal_inflate_reset(r->zlib);
	return true;
}

static void zlib_free(struct zio_reader *r)
{
	free(r->zlib);
}

static void zlib_feed(struct zio_reader *r, size_t n)
{
	r->zlib->next_in = r->bytes;
	r->zlib->avail_in = (uint32_t)n;
}

static int zlib_step(struct zio_reader *r, struct err *err)
{
	r->zlib->next_out = r->bytes + IN_BYTES;
	r->zlib->avail_out = OUT_BYTES;
	int rc = isal_inflate(r->zlib);
	if (rc < 0 || rc == ISAL_NEED_DICT)
		return err_set(err, -EBADMSG, "bad compressed data: %s",
			       rc == ISAL_INCORRECT_CHECKSUM ? "its checksum does not hold"
							     : "not a zlib stream");
	r->n = OUT_BYTES - r->zlib->avail_out;
	r->is_fed = r->zlib->avail_in > 0;
	r->is_whole = r->zlib->block_state == ISAL_BLOCK_FINISH;
	return 0;
}
#endif

static int history_too_large(struct err *err, const char *tool)
{
	err_set(err, -EFBIG, "decompression needs more than %" PRIu64 " MiB of history",
		HISTORY_BYTES_MAX >> 20);
	return err_hint(err, "decompress it with `%s` first", tool);
}

/* ---- xz ---- */

static int xz_new(struct zio_reader *r)
{
	r->xz = (lzma_stream)LZMA_STREAM_INIT;
	lzma_ret rc = lzma_stream_decoder(&r->xz, HISTORY_BYTES_MAX, LZMA_CONCATENATED);
	return rc == LZMA_OK ? 0 : -ENOMEM;
}

static int xz_step(struct zio_reader *r, struct err *err)
{
	r->xz.next_out = r->bytes + IN_BYTES;
	r->xz.avail_out = OUT_BYTES;
	lzma_ret rc = lzma_code(&r->xz, r->is_last ? LZMA_FINISH : LZMA_RUN);
	if (rc == LZMA_MEMLIMIT_ERROR)
		return history_too_large(err, "xz -d");
	if (rc == LZMA_BUF_ERROR && r->is_last)
		return err_set(err, -ENODATA, "compressed data is truncated");
	if (rc != LZMA_OK && rc != LZMA_STREAM_END && rc != LZMA_BUF_ERROR)
		return err_set(err, -EBADMSG, "bad xz data");
	r->n = OUT_BYTES - r->xz.avail_out;
	r->is_fed = r->xz.avail_in > 0;
	r->is_whole = rc == LZMA_STREAM_END;
	return 0;
}

/* ---- zstd ---- */

static int zstd_step(struct zio_reader *r, struct err *err)
{
	ZSTD_outBuffer out = {r->bytes + IN_BYTES, OUT_BYTES, 0};
	size_t in_at = r->zstd_in.pos;
	size_t rc = ZSTD_decompressStream(r->zstd, &out, &r->zstd_in);
	if (ZSTD_getErrorCode(rc) == ZSTD_error_frameParameter_windowTooLarge)
		return history_too_large(err, "zstd -d --long=31");
	if (ZSTD_isError(rc))
		return err_set(err, -EBADMSG, "bad zstd data: %s", ZSTD_getErrorName(rc));
	if (r->zstd_in.pos > in_at || out.pos) /* else it asks for another frame */
		r->is_whole = !rc;
	r->n = out.pos;
	r->is_fed = r->zstd_in.pos < r->zstd_in.size;
	return 0;
}

/* ---- all ---- */

static bool is_zlib(const struct zio_reader *r)
{
	return r->kind == ZKIND_ZLIB || r->kind == ZKIND_GZIP;
}

static int decoder_new(struct zio_reader *r)
{
	if (is_zlib(r))
		return zlib_new(r);
	if (r->kind == ZKIND_XZ)
		return xz_new(r);
	r->zstd = ZSTD_createDCtx();
	return r->zstd ? 0 : -ENOMEM;
}

int zio_reader_new(struct zio_reader **ret_r, enum zkind kind, zio_source_fn source, void *ctx,
		   struct err *err)
{
	ASSERT(kind != ZKIND_NONE);
	struct zio_reader *r = xcalloc(1, sizeof(*r));
	r->kind = kind;
	r->source = source;
	r->ctx = ctx;
	r->bytes = xmalloc(IN_BYTES + OUT_BYTES);
	int rc = decoder_new(r);
	if (rc) {
		zio_reader_free(r);
		return err_set(err, rc, "cannot start the decoder");
	}
	*ret_r = r;
	return 0;
}

void zio_reader_free(struct zio_reader *r)
{
	if (!r)
		return;
	zlib_free(r);
	lzma_end(&r->xz);
	ZSTD_freeDCtx(r->zstd);
	free(r->bytes);
	free(r);
}

/* Reads more compressed bytes; if there are none the stream must be complete. */
static int feed(struct zio_reader *r, struct err *err)
{
	ssize_t got = r->source(r->ctx, r->bytes, IN_BYTES, err);
	if (got < 0)
		return (int)got;
	if (!got && r->kind == ZKIND_XZ && !r->is_last) {
		r->is_last = true; /* the decoder says whether it is complete */
		return 0;
	}
	if (!got) {
		r->is_ended = true;
		return r->is_whole ? 0 : err_set(err, -ENODATA, "compressed data is truncated");
	}
	r->is_fed = true;
	if (is_zlib(r)) {
		zlib_feed(r, (size_t)got);
	} else if (r->kind == ZKIND_XZ) {
		r->xz.next_in = r->bytes;
		r->xz.avail_in = (size_t)got;
	} else {
		r->zstd_in = (ZSTD_inBuffer){r->bytes, (size_t)got, 0};
	}
	return 0;
}

/* A stream has ended; finds whether another one follows. */
static int after_stream(struct zio_reader *r, struct err *err)
{
	if (r->kind != ZKIND_GZIP) {
		r->is_ended = true;
		return 0;
	}
	if (!r->is_fed)
		TRY(feed(r, err));
	if (r->is_ended)
		return 0;
	r->is_ended = !zlib_next(r);
	r->is_whole = false;
	return 0;
}

static int step(struct zio_reader *r, struct err *err)
{
	if (is_zlib(r))
		return zlib_step(r, err);
	return r->kind == ZKIND_XZ ? xz_step(r, err) : zstd_step(r, err);
}

/* Decompresses some bytes, or finds the end of the stream. */
static int next(struct zio_reader *r, struct err *err)
{
	bool can_follow = r->kind == ZKIND_ZSTD; /* the decoder begins the next stream itself */
	r->p = r->bytes + IN_BYTES;
	while (!r->n && !r->is_ended) {
		if (r->is_whole && !can_follow) {
			TRY(after_stream(r, err));
			continue;
		}
		/* The decoder may still hold decompressed bytes after it consumed all input. */
		TRY(step(r, err));
		if (!r->n && !r->is_fed && (can_follow || !r->is_whole))
			TRY(feed(r, err));
	}
	return 0;
}

ssize_t zio_reader_some(struct zio_reader *r, void *to, size_t n, struct err *err)
{
	TRY(r->n ? 0 : next(r, err));
	size_t nr = MIN(n, r->n);
	if (to)
		memcpy(to, r->p, nr);
	r->p += nr;
	r->n -= nr;
	return (ssize_t)nr;
}

int zio_reader_take(struct zio_reader *r, void *to, uint64_t n, struct err *err)
{
	while (n) {
		ssize_t got = zio_reader_some(r, to, (size_t)MIN(n, (uint64_t)SSIZE_MAX), err);
		if (got < 0)
			return (int)got;
		if (!got)
			return err_set(err, -ENODATA, "compressed data is truncated");
		to = to ? (uint8_t *)to + got : NULL;
		n -= (uint64_t)got;
	}
	return 0;
}

int zio_reader_finish(struct zio_reader *r, struct err *err)
{
	TRY(r->n ? 0 : next(r, err));
	return r->n ? err_set(err, -EBADMSG, "compressed data holds more than it claims") : 0;
}
