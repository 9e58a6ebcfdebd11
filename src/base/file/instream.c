/* Inputs that are decompressed while they are read; see instream.h. */
#include "base/base.h"
#include "base/file/instream.h"

#include <errno.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/file/zioread.h"
#include "base/mem.h"

#define MAGIC_BYTES  8
#define PLAIN_FLOOR  ((uint64_t)256 << 20)
#define PLAIN_FACTOR 4096

struct instream {
	int fd;
	uint8_t magic[MAGIC_BYTES]; /* the first bytes, read to find the kind of compression */
	size_t nr_magic;
	size_t magic_at;           /* bytes of it that were passed on */
	struct zio_reader *packed; /* NULL: not compressed */
	uint64_t nr_stored;
	uint64_t nr_plain;
	bool is_ended;
	bool is_cut;
};

/* The stored bytes, including those read to find the kind. */
static ssize_t read_stored(void *ctx, void *to, size_t n, struct err *err)
{
	struct instream *s = ctx;
	if (s->magic_at < s->nr_magic) {
		size_t nr = MIN(n, s->nr_magic - s->magic_at);
		memcpy(to, s->magic + s->magic_at, nr);
		s->magic_at += nr;
		return (ssize_t)nr;
	}
	ssize_t got = file_read_some(s->fd, to, n, err);
	s->nr_stored += (uint64_t)MAX(got, 0);
	return got;
}

int instream_open(struct instream **ret_s, int fd, struct err *err)
{
	CLEANUP(instream_free_p) struct instream *s = xcalloc(1, sizeof(*s));
	s->fd = fd;
	while (s->nr_magic < MAGIC_BYTES) {
		ssize_t got =
			file_read_some(fd, s->magic + s->nr_magic, MAGIC_BYTES - s->nr_magic, err);
		if (got < 0)
			return (int)got;
		if (!got)
			break;
		s->nr_magic += (size_t)got;
	}
	s->nr_stored = s->nr_magic;
	enum zkind kind = zio_sniff(s->magic, s->nr_magic);
	TRY(kind == ZKIND_NONE ? 0 : zio_reader_new(&s->packed, kind, read_stored, s, err));
	*ret_s = TAKE(s);
	return 0;
}

void instream_free(struct instream *s)
{
	if (!s)
		return;
	zio_reader_free(s->packed);
	if (s->fd > STDIN_FILENO)
		close(s->fd);
	free(s);
}

static int check_plain(const struct instream *s, struct err *err)
{
	if (s->nr_plain <= PLAIN_FLOOR || s->nr_plain / PLAIN_FACTOR <= s->nr_stored)
		return 0;
	err_set(err, -EFBIG,
		"it decompresses to more than %" PRIu64
		" MiB, which is more than %u times its size",
		PLAIN_FLOOR >> 20, PLAIN_FACTOR);
	return err_hint(err,
			"if you trust it, decompress it (gzip -d, xz -d, zstd -d) and name the "
			"result");
}

ssize_t instream_read(struct instream *s, void *to, size_t n, struct err *err)
{
	if (!s->packed)
		return read_stored(s, to, n, err);
	if (s->is_ended)
		return 0;
	CLEANUP(err_release) struct err why = {0};
	ssize_t got = zio_reader_some(s->packed, to, n, &why);
	s->is_ended = got <= 0;
	s->is_cut = got == -ENODATA;
	if (got == -ENODATA && s->nr_plain)
		return 0; /* truncated: what it contains is used */
	if (got < 0)
		return err_move(err, &why);
	s->nr_plain += (uint64_t)got;
	TRY(check_plain(s, err));
	return got;
}

uint64_t instream_stored(const struct instream *s)
{
	return s->nr_stored;
}

bool instream_is_packed(const struct instream *s)
{
	return s->packed != NULL;
}

bool instream_is_cut(const struct instream *s)
{
	return s->is_cut;
}

int instream_fd(const struct instream *s)
{
	return s->fd;
}
