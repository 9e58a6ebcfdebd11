/* base/zioread: what zlib packs comes out again, whatever the blocks; damage is reported. */
#include "base/base.h"
#include "tap.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/file/zio.h"
#include "base/file/zioread.h"

#include <zlib.h>

struct stream { /* a source that gives @step bytes at a time */
	const uint8_t *p;
	size_t n;
	size_t step;
};

static ssize_t next_bytes(void *ctx, void *to, size_t n, struct err *err)
{
	(void)err;
	struct stream *s = ctx;
	n = MIN(n, MIN(s->n, s->step));
	memcpy(to, s->p, n);
	s->p += n;
	s->n -= n;
	return (ssize_t)n;
}

/* A xorshift generator: the same bytes each time. */
static uint64_t draw(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

enum kind_of_bytes { NOISE, ZEROS, TEXT, RECORDS, LONG_WAYS, NR_KINDS };

static void make_bytes(struct buf *b, enum kind_of_bytes kind, size_t n)
{
	uint64_t state = 88172645463325252ull + kind;
	char *p = buf_reserve(b, n);
	for (size_t i = 0; i < n; i++) {
		uint64_t r = draw(&state);
		if (kind == NOISE)
			p[i] = (char)r;
		else if (kind == ZEROS)
			p[i] = 0;
		else if (kind == TEXT)
			p[i] = "etaoin shrdlu\n.,"[r % 16 < 10 ? r % 7 : r % 16];
		else if (kind == RECORDS)
			p[i] = i % 13 < 9 ? (char)(i % 13) : (char)(r % (i % 5 + 1));
		else
			p[i] = i >= 32768 && r % 9 ? p[i - 32768] : (char)r;
	}
	b->n = n;
}

static void pack(struct buf *to, const struct buf *from, int level, int strategy)
{
	z_stream z = {.next_in = (Bytef *)from->p, .avail_in = (uInt)from->n};
	CHECK(deflateInit2(&z, level, Z_DEFLATED, 15, 9, strategy) == Z_OK);
	size_t bound = deflateBound(&z, from->n) + 64;
	z.next_out = (Bytef *)buf_reserve(to, bound);
	z.avail_out = (uInt)bound;
	CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END);
	to->n = z.total_out;
	deflateEnd(&z);
}

/* Reads the whole stream in pieces of odd sizes and skips every third. */
static int unpack(const uint8_t *packed, size_t nr_packed, size_t step, const struct buf *plain,
		  struct err *err)
{
	struct stream s = {packed, nr_packed, step};
	struct zio_reader *r = NULL;
	CHECK(!zio_reader_new(&r, ZKIND_ZLIB, next_bytes, &s, err));
	char *got = xmalloc(plain->n + 1);
	int rc = 0;
	uint64_t state = nr_packed + 1;
	for (size_t at = 0, i = 0; !rc && at < plain->n; i++) {
		size_t wanted = 1 + draw(&state) % 70000;
		size_t n = MIN(wanted, plain->n - at);
		rc = zio_reader_take(r, i % 3 ? got + at : NULL, n, err);
		if (!rc && i % 3 && memcmp(got + at, plain->p + at, n))
			rc = -EILSEQ;
		at += n;
	}
	if (!rc)
		rc = zio_reader_finish(r, err);
	zio_reader_free(r);
	free(got);
	return rc;
}

TEST(reader_gives_what_zlib_packed)
{
	static const int strategies[] = {Z_DEFAULT_STRATEGY, Z_HUFFMAN_ONLY, Z_RLE, Z_FIXED};
	static const size_t sizes[] = {0, 1, 3, 31, 257, 258, 259, 4096, 32769, 300001};
	for (int kind = 0; kind < NR_KINDS; kind++)
		for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
			for (int k = 0; k < 7; k++) {
				CLEANUP(buf_release) struct buf plain = {0}, packed = {0};
				CLEANUP(err_release) struct err err = {0};
				make_bytes(&plain, kind, sizes[i]);
				pack(&packed, &plain,
				     k < 4    ? 6
				     : k == 4 ? 0
				     : k == 5 ? 1
					      : 9,
				     strategies[k < 4 ? k : 0]);
				const uint8_t *p = (const uint8_t *)packed.p;
				size_t step = k & 1 ? 1 + sizes[i] % 37 : SIZE_MAX;
				if (unpack(p, packed.n, step, &plain, &err))
					tap_fail(__FILE__, __LINE__,
						 "kind %d, %zu bytes, way %d: %s", kind, sizes[i],
						 k, err_msg(&err));
			}
}

TEST(reader_reports_where_a_stream_is_cut_off)
{
	for (int kind = 0; kind < NR_KINDS; kind++) {
		CLEANUP(buf_release) struct buf plain = {0}, packed = {0};
		make_bytes(&plain, kind, 2000);
		pack(&packed, &plain, 6, Z_DEFAULT_STRATEGY);
		for (size_t n = 0; n < packed.n; n++) {
			/* A heap block of the exact size: ASan detects a read past its end. */
			uint8_t *own = xmemdup(packed.p, n);
			CHECK(unpack(own, n, SIZE_MAX, &plain, NULL) == -ENODATA);
			free(own);
		}
	}
}

TEST(reader_survives_every_flipped_bit)
{
	for (int kind = 0; kind < NR_KINDS; kind++) {
		CLEANUP(buf_release) struct buf plain = {0}, packed = {0};
		make_bytes(&plain, kind, 700);
		pack(&packed, &plain, 6, Z_DEFAULT_STRATEGY);
		const uint8_t *p = (const uint8_t *)packed.p;
		unsigned nr_harmless = 0;
		for (size_t bit = 0; bit < packed.n * 8; bit++) {
			packed.p[bit / 8] = (char)(packed.p[bit / 8] ^ 1 << bit % 8);
			int rc = unpack(p, packed.n, SIZE_MAX, &plain, NULL);
			CHECK(!rc || rc == -EBADMSG || rc == -ENODATA || rc == -EILSEQ);
			nr_harmless += !rc;
			packed.p[bit / 8] = (char)(packed.p[bit / 8] ^ 1 << bit % 8);
		}
		/* Those that fill up the byte of a stored block's header and the last byte. */
		CHECK(nr_harmless <= 7 + 5);
	}
}

TEST(zstd_streams_are_read_in_pieces)
{
	CLEANUP(buf_release) struct buf plain = {0}, packed = {0};
	make_bytes(&plain, TEXT, 500000);
	CHECK(!zio_compress_zstd(&packed, plain.p, plain.n, 3, NULL));
	char *got = xmalloc(1000);
	for (size_t n = packed.n; n + 2 > packed.n; n--) {
		struct stream s = {(const uint8_t *)packed.p, n, 777};
		struct zio_reader *r = NULL;
		CHECK(!zio_reader_new(&r, ZKIND_ZSTD, next_bytes, &s, NULL));
		CHECK(!zio_reader_take(r, NULL, 123456, NULL));
		CHECK(!zio_reader_take(r, got, 1000, NULL));
		CHECK(!memcmp(got, plain.p + 123456, 1000));
		int rc = zio_reader_take(r, NULL, plain.n - 124456, NULL);
		rc = rc ? rc : zio_reader_finish(r, NULL);
		CHECK(rc == (n == packed.n ? 0 : -ENODATA));
		zio_reader_free(r);
	}
	free(got);
}
