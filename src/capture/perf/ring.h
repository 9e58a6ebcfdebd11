/*
 * One perf_event ring buffer, mapped: peek the oldest record, consume it. Records are handed out
 * as they lie in the ring (no copy) unless they wrap, then from a scratch buffer. The kernel
 * writes data_head, we write data_tail (linux/perf_event.h, struct perf_event_mmap_page); a
 * record stays valid until it is consumed.
 */
#ifndef ASSAY_CAPTURE_PERF_RING_H
#define ASSAY_CAPTURE_PERF_RING_H

#include <linux/perf_event.h>

#include "base/base.h"
#include "base/err.h"

struct ring {
	int fd; /* the event that it belongs to; not owned */
	struct perf_event_mmap_page *page;
	const uint8_t *data;
	uint64_t nr_data_bytes;
	uint64_t head; /* as last read */
	uint64_t tail;
	uint8_t *scratch;
	size_t nr_scratch;
};

/* @nr_pages: power of two. -EPERM when over the locked-memory limit: try fewer. */
int ring_open(struct ring *ret_r, int fd, uint32_t nr_pages, struct err *err);
void ring_release(struct ring *r);
/* Looks how far the kernel has written. */
void ring_refresh(struct ring *r);
/* The oldest unread record, or NULL. A torn or absurd record empties the ring: *ret_is_bad. */
const struct perf_event_header *ring_peek(struct ring *r, bool *ret_is_bad);
void ring_consume(struct ring *r, uint16_t nr_bytes);
/* Makes what was consumed free for the kernel. */
void ring_publish(struct ring *r);

#endif
