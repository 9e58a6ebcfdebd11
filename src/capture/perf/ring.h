/*
 * A mapped perf_event ring buffer: peek at the oldest record, then consume it. Records are returned
 * as they are in the ring (no copy), or from a scratch buffer if they wrap around. The kernel
 * writes data_head, user space writes data_tail (linux/perf_event.h, struct perf_event_mmap_page).
 * A record is valid until it is consumed. Not thread-safe.
 */
#ifndef ASSAY_CAPTURE_PERF_RING_H
#define ASSAY_CAPTURE_PERF_RING_H

#include <linux/perf_event.h>

#include "base/base.h"
#include "base/err.h"

struct ring {
	int fd; /* of the event that owns the ring; borrowed */
	struct perf_event_mmap_page *page;
	const uint8_t *data;
	uint64_t nr_data_bytes;
	uint64_t head; /* the kernel's position at the last ring_refresh */
	uint64_t tail; /* position of the reader */
	uint8_t *scratch;
	size_t nr_scratch;
};

/* Maps a ring of @nr_pages, a power of two. -EPERM: over the limit of locked memory; try fewer. */
int ring_open(struct ring *ret_r, int fd, uint32_t nr_pages, struct err *err);
void ring_release(struct ring *r);
/* Reads the kernel's write position. */
void ring_refresh(struct ring *r);
/* The oldest unread record, or NULL. If it is invalid, drops all records, sets *ret_is_bad. */
const struct perf_event_header *ring_peek(struct ring *r, bool *ret_is_bad);
/* Consumes the oldest record, which has @nr_bytes. */
void ring_consume(struct ring *r, uint16_t nr_bytes);
/* Publishes the reader's position: the kernel may overwrite consumed records. */
void ring_publish(struct ring *r);

#endif
