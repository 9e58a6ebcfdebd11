/*
 * The consumer side of a mapped BPF_MAP_TYPE_RINGBUF: peek at the oldest record, then consume it;
 * nothing is copied. Layout (linux/bpf.h, kernel/bpf/ringbuf.c): a page with the consumer position,
 * which user space writes; a page with the producer position; then the data, mapped twice in a row
 * so that no record wraps around. Each record has an 8-byte header (length with two flag bits, page
 * offset) and is padded to 8 bytes. A record is valid until it is consumed. Not thread-safe.
 */
#ifndef ASSAY_CAPTURE_BPF_BPFRING_H
#define ASSAY_CAPTURE_BPF_BPFRING_H

#include "base/base.h"
#include "base/err.h"

struct bpfring {
	int fd; /* of the map; not owned */
	uint64_t *consumer;
	const uint64_t *producer;
	const uint8_t *data;
	uint64_t nr_data_bytes;
	uint64_t tail; /* position of the reader; *consumer follows at bpfring_publish */
};

enum bpfring_state {
	BPFRING_EMPTY,
	BPFRING_RECORD, /* *ret_record is the oldest one */
	BPFRING_BUSY,   /* the oldest one is still being written */
	BPFRING_BAD,    /* invalid header: everything up to the producer position was dropped */
};

/* Maps the ring. @fd: the map; @nr_bytes: its max_entries. */
int bpfring_open(struct bpfring *ret_r, int fd, uint64_t nr_bytes, struct err *err);
void bpfring_release(struct bpfring *r);
/* Returns the state of the oldest record. Skips records that the BPF program discarded. */
enum bpfring_state bpfring_peek(struct bpfring *r, const void **ret_record, uint32_t *ret_nr_bytes);
/* Bytes between the reader's and the producer's position. */
uint64_t bpfring_used(const struct bpfring *r);
/* Consumes the record that the last peek returned. */
void bpfring_consume(struct bpfring *r);
/* Publishes the consumer position: the kernel may overwrite consumed records. */
void bpfring_publish(struct bpfring *r);

#endif
