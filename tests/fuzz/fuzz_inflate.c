/*
 * Deflate streams: any bytes give what zlib gives, as far as zlib goes, or an error where it has
 * one. The first byte says how many bytes the source hands out at a time.
 */
#include "base/base.h"

#include <stdlib.h>

#include "base/inflate.h"
#include "base/mem.h"

#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define PLAIN_MAX ((size_t)1 << 20)

struct stream {
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	if (!n)
		return 0;
	size_t step = 1 + data[0];
	data++, n--;
	uint8_t *plain = xmalloc(PLAIN_MAX);
	z_stream z = {.next_in = (Bytef *)(uintptr_t)data,
		      .avail_in = (uInt)n,
		      .next_out = plain,
		      .avail_out = PLAIN_MAX};
	ASSERT(inflateInit2(&z, -15) == Z_OK);
	int theirs = inflate(&z, Z_SYNC_FLUSH);
	size_t nr_theirs = z.total_out;
	inflateEnd(&z);

	struct stream s = {data, n, step};
	struct inflater *x = inflater_new(next_bytes, &s);
	const uint8_t *p;
	size_t nr, nr_ours = 0;
	int ours;
	while (!(ours = inflater_next(x, &p, &nr, NULL)) && nr && nr_ours < PLAIN_MAX) {
		size_t nr_both = MIN(nr, nr_theirs - MIN(nr_theirs, nr_ours));
		ASSERT(!memcmp(p, plain + nr_ours, nr_both));
		nr_ours += nr;
	}
	inflater_free(x);
	free(plain);
	if (nr_ours >= PLAIN_MAX)
		return 0;
	/* A whole stream is one for both, of the same length. */
	ASSERT((theirs == Z_STREAM_END) == !ours);
	ASSERT(ours || nr_ours == nr_theirs);
	return 0;
}
