/*
 * Records of our programs, taken out of the kernel's ring one by one, and kept from overflowing it
 * while nobody asks: opening a large binary that a target has just mapped takes a while, a file
 * system that hangs takes longer, and meanwhile every stack comes as a copy. A thread looks from
 * time to time and moves what fills a quarter of the ring into memory.
 *
 * One reader; the thread is the queue's own business.
 */
#ifndef ASSAY_CAPTURE_BPF_RECORDQUEUE_H
#define ASSAY_CAPTURE_BPF_RECORDQUEUE_H

#include "base/base.h"
#include "base/err.h"

struct recordqueue;

/* @fd: the ring's map, @nr_bytes: its max_entries; @held_max: bytes that may lie in memory. */
int recordqueue_open(struct recordqueue **ret_q, int fd, uint64_t nr_bytes, size_t held_max,
		     struct err *err);
void recordqueue_free(struct recordqueue *q);
void recordqueue_free_p(struct recordqueue **q);

enum recordqueue_state {
	RECORDQUEUE_EMPTY,
	RECORDQUEUE_RECORD, /* *ret_record is valid until the next call */
	RECORDQUEUE_BUSY,   /* the next one is still being written */
};
/* Takes the oldest record out. Heads that cannot be are counted in *nr_bad and passed over. */
enum recordqueue_state recordqueue_next(struct recordqueue *q, const void **ret_record,
					uint32_t *ret_nr_bytes, uint64_t *nr_bad);
/* Makes what was taken free for the kernel now; it happens now and then anyway. */
void recordqueue_publish(struct recordqueue *q);
/* The most bytes that lay in memory at a time. */
size_t recordqueue_max_held(struct recordqueue *q);

#endif
