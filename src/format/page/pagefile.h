/*
 * The HTML page as a recording (docs/formats/report-html.md). Beside the data of its script a page
 * has two blocks that only this reader reads:
 *
 *	recording  a recording (format/assay/) without the rows that the script has, too, without
 *	           mappings, linkage names and single intervals of waits
 *	rows       per table the columns of those rows that the script's streams lack
 *
 * A row's time, weight and count are those of the stream. Its stack, task and tag are mostly the only
 * one that the stream's node, thread and attributes stand for, so that they take nearly no room.
 * Times of samples are whole milliseconds since the start.
 */
#ifndef ASSAY_FORMAT_PAGE_PAGEFILE_H
#define ASSAY_FORMAT_PAGE_PAGEFILE_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/sv.h"
#include "model/profile.h"

#define PAGEFILE_MAGIC "assay-page-2\n" /* of the script's data */

/* The rows of a stream of the page, by column. */
struct pagefile_stream {
	size_t n;
	const uint8_t *table;    /* 0: of no table; else its index + 1 */
	const uint32_t *source;  /* row of that table; not in the file */
	const uint32_t *time_ms; /* NULL: no times */
	const uint32_t *node;
	const uint32_t *thread;
	const uint64_t *count;
	const uint64_t *weight;
	const uint8_t *state; /* NULL: no states, log2, objects and wakers */
	const uint8_t *log2_ns;
	const uint32_t *object;
	const uint32_t *waker;
};

/*
 * Makes the two blocks of a page, not yet in base64. @name: of the recording, for messages of
 * commands that need it; NULL: none. @start_ns: time 0 of the streams.
 */
int pagefile_make(struct buf *recording, struct buf *rows, const struct profile *p,
		  const struct pagefile_stream *streams, size_t nr, uint64_t start_ns,
		  const char *name, struct err *err);

#endif
