/*
 * Common code of the fuzzers of heap profiles: any input gives a profile or an error; no amount is
 * negative; the profile can be written as heaptrack and massif files and read again. Each fuzzer
 * includes it once.
 */
#ifndef ASSAY_TESTS_FUZZ_HEAPFILE_H
#define ASSAY_TESTS_FUZZ_HEAPFILE_H

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

#include "format/format.h"
#include "model/heap.h"
#include "model/tables.h"

static inline struct profile *read_as(const char *format, const char *text, size_t n)
{
	struct profile *p = profile_new();
	struct format_input in = {.head = sv_from(text, n)};
	struct err err = {0};
	int rc = format_find(format)->read(p, &in, &(struct format_options){0}, &err);
	if (rc && !*err_msg(&err))
		BUG("an error without a message");
	err_release(&err);
	profile_seal(p);
	if (!rc)
		return p;
	profile_free(p);
	return NULL;
}

/* Bytes of a table; UINT64_MAX: sums may have saturated. */
static inline uint64_t bytes_of(const struct profile *p, enum table_id kind)
{
	const struct table *t = tables_find(p, kind);
	uint64_t sum = 0;
	for (size_t i = 0; t && i < t->n; i++) {
		int64_t v = t->values[i * t->nr_columns + HEAP_BYTES];
		int64_t nr = t->values[i * t->nr_columns + HEAP_BLOCKS];
		if (v < 0 || nr < 0)
			BUG("a negative amount");
		if (v > (int64_t)1 << 40 || nr > 100000)
			return UINT64_MAX;
		sum += (uint64_t)v;
	}
	return sum;
}

/* Writes the profile and reads it again; live bytes must be the same. */
static inline void write_and_read(const struct profile *p, const char *format, bool keeps_live)
{
	struct format_output to = {0};
	if (bytes_of(p, TABLE_LIVE) == UINT64_MAX || bytes_of(p, TABLE_ALLOCATED) == UINT64_MAX ||
	    bytes_of(p, TABLE_FREED) == UINT64_MAX)
		return; /* millions of blocks are millions of lines */
	if (!format_find(format)->write(&to, p, &(struct format_options){0}, NULL)) {
		struct profile *q = read_as(format, to.buf.p, to.buf.n);
		if (!q)
			BUG("%s: written, not readable: '%s'", format, buf_str(&to.buf));
		if (keeps_live && !strcmp(format, "heaptrack") &&
		    bytes_of(q, TABLE_LIVE) != UINT64_MAX &&
		    bytes_of(q, TABLE_LIVE) != bytes_of(p, TABLE_LIVE))
			BUG("live bytes change");
		profile_free(q);
	}
	buf_release(&to.buf);
}

/* @format: name of the reader. @keeps_live: heaptrack files keep the live bytes. */
static inline void fuzz_heapfile(const char *format, const uint8_t *data, size_t n, bool keeps_live)
{
	struct profile *p = read_as(format, (const char *)data, n);
	if (!p)
		return;
	write_and_read(p, "heaptrack", keeps_live);
	write_and_read(p, "massif", keeps_live);
	profile_free(p);
}

#endif
