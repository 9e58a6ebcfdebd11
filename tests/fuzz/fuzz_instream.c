/*
 * Compressed inputs, which come from anywhere: any bytes as gzip, xz, zstd and zlib, in steps of
 * different sizes. The plain bytes do not depend on the steps.
 */
#include "base/base.h"

#include "base/hash.h"
#include "base/file/zioread.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define PLAIN_MAX ((uint64_t)4 << 20)

struct part {
	const uint8_t *p;
	size_t n;
	size_t step;
};

static ssize_t give(void *ctx, void *to, size_t n, struct err *err)
{
	(void)err;
	struct part *from = ctx;
	size_t nr = MIN(MIN(n, from->n), from->step);
	memcpy(to, from->p, nr);
	from->p += nr;
	from->n -= nr;
	return (ssize_t)nr;
}

/* The plain bytes in, and how it ended: 0, or an error. */
static uint64_t read_all(enum zkind kind, const uint8_t *data, size_t n, size_t step, int *ret_rc)
{
	struct part from = {data, n, step};
	CLEANUP(zio_reader_free_p) struct zio_reader *r = NULL;
	ASSERT(!zio_reader_new(&r, kind, give, &from, NULL));
	uint64_t sum = 0;
	uint8_t byte[1];
	ssize_t got = 1;
	for (uint64_t nr = 0; nr < PLAIN_MAX && got > 0; nr++) {
		got = zio_reader_some(r, byte, 1, NULL);
		if (got > 0)
			sum = hash_mix(sum, byte[0]);
	}
	*ret_rc = (int)got;
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const enum zkind kinds[] = {ZKIND_GZIP, ZKIND_XZ, ZKIND_ZSTD, ZKIND_ZLIB};
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (kinds[i] != ZKIND_ZLIB && zio_sniff(data, n) != kinds[i])
			continue;
		int rc[2];
		uint64_t whole = read_all(kinds[i], data, n, n + 1, &rc[0]);
		uint64_t parts = read_all(kinds[i], data, n, 1 + (n ? data[n - 1] : 0), &rc[1]);
		if (!rc[0] || !rc[1])
			ASSERT(whole == parts && rc[0] == rc[1]);
	}
	return 0;
}
