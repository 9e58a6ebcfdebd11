/* Inputs that are decompressed while they are read. */
#include "base/base.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/file/instream.h"
#include "base/file/zio.h"
#include "base/mem.h"
#include "tap.h"

static struct instream *open_bytes(const struct buf *b)
{
	struct instream *s = NULL;
	int fd = memfd_create("input", MFD_CLOEXEC);
	CHECK(!file_write_all(fd, b->p, b->n, NULL) && !lseek(fd, 0, SEEK_SET));
	CHECK(!instream_open(&s, fd, NULL));
	return s;
}

/* Reads to the end in steps; returns the last result. */
static ssize_t read_all(struct instream *s, struct buf *to, size_t step, struct err *err)
{
	ssize_t n;
	while ((n = instream_read(s, buf_reserve(to, step), step, err)) > 0)
		to->n += (size_t)n;
	return n;
}

/* Bytes that do not compress, so that the streams end at many offsets in the decoder's buffer. */
TEST(streams_of_gzip_or_zstd_that_follow_each_other_are_one_input)
{
	for (int k = 0; k < 2; k++) {
		CLEANUP(buf_release) struct buf plain = {0};
		CLEANUP(buf_release) struct buf packed = {0};
		CLEANUP(buf_release) struct buf back = {0};
		uint32_t x = 1;
		for (int i = 0; i < 2500; i++) {
			size_t at = plain.n;
			for (int j = 0; j < 20 + i % 90; j++)
				buf_add_u32le(&plain, x = x * 1664525 + 1013904223);
			size_t n = plain.n - at;
			CHECK(k ? !zio_compress_zstd(&packed, plain.p + at, n, 1, NULL)
				: !zio_compress_gzip(&packed, plain.p + at, n, 1, NULL));
		}
		CLEANUP(instream_free_p) struct instream *s = open_bytes(&packed);
		CHECK(instream_is_packed(s));
		CHECK(!read_all(s, &back, 1000, NULL));
		CHECK_U64(instream_stored(s), packed.n);
		CHECK(back.n == plain.n && !memcmp(back.p, plain.p, plain.n));
	}
}

TEST(an_input_that_is_not_compressed_is_passed_on)
{
	CLEANUP(buf_release) struct buf plain = {0};
	CLEANUP(buf_release) struct buf back = {0};
	buf_add_str(&plain, "a;b 1");
	CLEANUP(instream_free_p) struct instream *s = open_bytes(&plain);
	CHECK(!instream_is_packed(s));
	CHECK(!read_all(s, &back, 3, NULL));
	CHECK(back.n == 5 && !memcmp(back.p, "a;b 1", 5));
}

TEST(a_compressed_input_that_ends_too_early_gives_its_beginning)
{
	CLEANUP(buf_release) struct buf plain = {0};
	CLEANUP(buf_release) struct buf packed = {0};
	CLEANUP(buf_release) struct buf back = {0};
	for (int i = 0; i < 100000; i++)
		buf_addf(&plain, "%d;", i);
	CHECK(!zio_compress_gzip(&packed, plain.p, plain.n, 6, NULL));
	packed.n /= 2;
	CLEANUP(instream_free_p) struct instream *s = open_bytes(&packed);
	CHECK(!read_all(s, &back, 4096, NULL));
	CHECK(back.n > plain.n / 3 && back.n < plain.n && !memcmp(back.p, plain.p, back.n));
}

TEST(an_input_that_decompresses_to_far_more_than_its_size_is_an_error)
{
	CLEANUP(buf_release) struct buf packed = {0};
	CLEANUP(free_p) char *zeros = xcalloc(1, 32 << 20);
	CLEANUP(free_p) char *step = xmalloc(1 << 20);
	CLEANUP(err_release) struct err err = {0};
	for (int i = 0; i < 9; i++)
		CHECK(!zio_compress_zstd(&packed, zeros, 32 << 20, 1, NULL));
	CLEANUP(instream_free_p) struct instream *s = open_bytes(&packed);
	ssize_t n;
	uint64_t nr = 0;
	while ((n = instream_read(s, step, 1 << 20, &err)) > 0)
		nr += (uint64_t)n;
	CHECK(n == -EFBIG && nr <= (256 << 20) && strstr(err_msg(&err), "4096 times its size"));
	CHECK(err.hint && strstr(err.hint, "zstd -d"));
}
