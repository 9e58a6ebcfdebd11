/*
 * The consumer's side of a BPF_MAP_TYPE_RINGBUF, mapped: peek the oldest record, consume it, no
 * copy. Layout (linux/bpf.h, kernel/bpf/ringbuf.c): a page with the consumer's position, which is
 * ours to write; a page with the producer's; then the data, mapped twice in a row so that no
 * record wraps. Each record has an 8-byte head (length with two flag bits, page offset) and is
 * padded to 8 bytes. A record stays valid until it is consumed.
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
	uint64_t tail; /* consumed, published or not */
};

enum bpfring_state {
	BPFRING_EMPTY,
	BPFRING_RECORD, /* *ret_record is the oldest one */
	BPFRING_BUSY,   /* the oldest one is still being written */
	BPFRING_BAD,    /* a head that cannot be: everything up to the producer was dropped */
};

/* @fd: the map; @nr_bytes: its max_entries. */
int bpfring_open(struct bpfring *ret_r, int fd, uint64_t nr_bytes, struct err *err);
void bpfring_release(struct bpfring *r);
/* Skips what was discarded. */
enum bpfring_state bpfring_peek(struct bpfring *r, const void **ret_record, uint32_t *ret_nr_bytes);
/* Bytes between the reader and the writer. */
uint64_t bpfring_used(const struct bpfring *r);
/* After a peek that gave a record. */
void bpfring_consume(struct bpfring *r);
/* Makes what was consumed free for the kernel. */
void bpfring_publish(struct bpfring *r);

#endif
