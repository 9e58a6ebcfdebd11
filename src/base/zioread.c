/* Decompression that is pulled; see zioread.h. */
#include "base/base.h"
#include "base/zioread.h"

#include <errno.h>
#include <zlib.h>
#include <zstd.h>

#include "base/mem.h"

/* Small enough to stay in a core's cache: bytes passed over never reach memory. */
#define IN_BYTES  ((size_t)64 << 10)
#define OUT_BYTES ((size_t)128 << 10)

struct zio_reader {
	enum zkind kind;
	zio_source_fn source;
	void *ctx;
	const uint8_t *p; /* plain bytes that nobody took yet */
	size_t n;
	bool is_started;
	bool is_ended;
	bool has_sum;
	uLong sum; /* of all plain bytes so far */
	struct inflater *zlib;
	ZSTD_DCtx *zstd;
	bool is_frame_whole; /* zstd */
	ZSTD_inBuffer in;
	uint8_t *bytes; /* zstd: IN_BYTES, then OUT_BYTES */
};

int zio_reader_new(struct zio_reader **ret_r, enum zkind kind, zio_source_fn source, void *ctx,
		   struct err *err)
{
	ASSERT(kind == ZKIND_ZLIB || kind == ZKIND_ZSTD);
	struct zio_reader *r = xcalloc(1, sizeof(*r));
	r->kind = kind;
	r->source = source;
	r->ctx = ctx;
	if (kind == ZKIND_ZLIB) {
		r->zlib = inflater_new(source, ctx);
	} else if ((r->zstd = ZSTD_createDCtx())) {
		r->bytes = xmalloc(IN_BYTES + OUT_BYTES);
		r->in.src = r->bytes;
	} else {
		free(r);
		return err_set(err, -ENOMEM, "cannot start the zstd decoder");
	}
	*ret_r = r;
	return 0;
}

void zio_reader_free(struct zio_reader *r)
{
	if (!r)
		return;
	inflater_free(r->zlib);
	ZSTD_freeDCtx(r->zstd);
	free(r->bytes);
	free(r);
}

void zio_reader_sum(struct zio_reader *r)
{
	ASSERT(!r->is_started);
	r->has_sum = true;
	r->sum = adler32(0, NULL, 0);
}

/* RFC 1950: method and window, a check of both, no dictionary. */
static int read_zlib_header(struct zio_reader *r, struct err *err)
{
	uint8_t h[2];
	int rc = inflater_raw(r->zlib, h, sizeof(h), err);
	if (!rc && ((h[0] & 0x0f) != 8 || h[1] & 0x20 || (h[0] * 256 + h[1]) % 31))
		rc = err_set(err, -EBADMSG, "bad compressed data: no zlib header");
	return rc;
}

static int next_zlib(struct zio_reader *r, struct err *err)
{
	int rc = r->is_started ? 0 : read_zlib_header(r, err);
	r->is_started = true;
	if (!rc)
		rc = inflater_next(r->zlib, &r->p, &r->n, err);
	r->is_ended = !rc && !r->n;
	if (!rc && r->has_sum)
		r->sum = adler32_z(r->sum, r->p, r->n);
	return rc;
}

static int next_zstd(struct zio_reader *r, struct err *err)
{
	r->is_started = true;
	r->p = r->bytes + IN_BYTES;
	while (!r->n) {
		ZSTD_outBuffer out = {r->bytes + IN_BYTES, OUT_BYTES, 0};
		size_t in_at = r->in.pos;
		size_t rc = ZSTD_decompressStream(r->zstd, &out, &r->in);
		if (ZSTD_isError(rc))
			return err_set(err, -EBADMSG, "bad zstd data: %s", ZSTD_getErrorName(rc));
		r->n = out.pos;
		if (r->in.pos > in_at || r->n) /* else it asks for another frame */
			r->is_frame_whole = !rc;
		if (r->n || r->in.pos < r->in.size)
			continue;
		ssize_t got = r->source(r->ctx, r->bytes, IN_BYTES, err);
		if (got < 0)
			return (int)got;
		r->in = (ZSTD_inBuffer){r->bytes, (size_t)got, 0};
		if (got)
			continue;
		r->is_ended = true;
		return r->is_frame_whole ? 0
					 : err_set(err, -ENODATA, "compressed data is truncated");
	}
	return 0;
}

static int next(struct zio_reader *r, struct err *err)
{
	return r->kind == ZKIND_ZLIB ? next_zlib(r, err) : next_zstd(r, err);
}

int zio_reader_take(struct zio_reader *r, void *to, uint64_t n, struct err *err)
{
	while (n) {
		int rc = r->n || r->is_ended ? 0 : next(r, err);
		if (rc)
			return rc;
		if (!r->n)
			return err_set(err, -ENODATA, "compressed data is truncated");
		size_t step = (size_t)MIN(n, (uint64_t)r->n);
		if (to) {
			memcpy(to, r->p, step);
			to = (uint8_t *)to + step;
		}
		r->p += step;
		r->n -= step;
		n -= step;
	}
	return 0;
}

int zio_reader_finish(struct zio_reader *r, struct err *err)
{
	int rc = r->n || r->is_ended ? 0 : next(r, err);
	if (rc)
		return rc;
	if (r->n)
		return err_set(err, -EBADMSG, "compressed data holds more than it claims");
	if (r->kind != ZKIND_ZLIB || !r->has_sum)
		return 0;
	uint8_t b[4];
	rc = inflater_raw(r->zlib, b, sizeof(b), err);
	uint32_t sum = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
	if (!rc && sum != (uint32_t)r->sum)
		rc = err_set(err, -EBADMSG, "bad compressed data: its checksum does not hold");
	return rc;
}
