/*
 * A queue of the records in the engine's BPF ring buffer, which keeps the ring from overflowing
 * while the capture's thread is busy. Opening a large binary that a target has just mapped can take
 * long, for example on a slow file system. During that time every stack comes as a copy, and the
 * copies fill the ring. A thread of the queue polls the ring and moves records to memory when more
 * than a quarter of the ring is in use.
 *
 * All functions must be called by the same thread.
 */
#ifndef ASSAY_CAPTURE_BPF_RECORDQUEUE_H
#define ASSAY_CAPTURE_BPF_RECORDQUEUE_H

#include "base/base.h"
#include "base/err.h"

struct recordqueue;

/* @fd: the ring's map; @nr_bytes: its max_entries; @held_max: limit of bytes held in memory. */
int recordqueue_open(struct recordqueue **ret_q, int fd, uint64_t nr_bytes, size_t held_max,
		     struct err *err);
void recordqueue_free(struct recordqueue *q);
void recordqueue_free_p(struct recordqueue **q);

enum recordqueue_state {
	RECORDQUEUE_EMPTY,
	RECORDQUEUE_RECORD, /* *ret_record is valid until the next call */
	RECORDQUEUE_BUSY,   /* the next one is still being written */
};
/* Takes the oldest record. Invalid headers are counted in *nr_bad and skipped. */
enum recordqueue_state recordqueue_next(struct recordqueue *q, const void **ret_record,
					uint32_t *ret_nr_bytes, uint64_t *nr_bad);
/* Frees the ring space of the records taken so far; else this happens every 256 records. */
void recordqueue_publish(struct recordqueue *q);
/*
 * Makes the thread call @fn at each poll, so that a source can keep rings of its own from overflowing;
 * NULL: no more. @fn runs in the thread, with the queue locked: it must not use the queue.
 */
void recordqueue_on_poll(struct recordqueue *q, void (*fn)(void *ctx), void *ctx);
/*
 * The reader begins to wait until there is something to read (@is_resting), or has been woken. The
 * thread does nothing meanwhile: it is needed only while the reader is busy with something else.
 */
void recordqueue_rest(struct recordqueue *q, bool is_resting);
/* The largest number of bytes that were held in memory. */
size_t recordqueue_max_held(struct recordqueue *q);

#endif
