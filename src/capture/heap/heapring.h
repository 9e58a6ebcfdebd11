/*
 * The rings of the recorder inside one process, read: heads copied once and checked, records
 * checked one by one, all rings merged by time. What the memory says is never believed: a ring that
 * makes no sense is counted and passed over, its owner's records thrown away, so that the target
 * does not wait for room either.
 *
 * Works in passes. heapring_begin takes the time T, then the heads; so what happened before T in
 * one thread and became known to another is in what is read. Records stamped after T stay for the
 * next pass. heapring_take hands out events in order of time until there are no more; stacks are
 * told by the callback, ahead of their turn.
 *
 * Time is the time stamp counter (heap_wire.h). Used by one thread at a time.
 */
#ifndef ASSAY_CAPTURE_HEAP_HEAPRING_H
#define ASSAY_CAPTURE_HEAP_HEAPRING_H

#include "base/base.h"
#include "base/vec.h"
#include "heap_wire.h"

struct heapring_event {
	uint64_t tsc;
	uint64_t addr;
	uint64_t nr_bytes; /* FREE: 0 */
	uint32_t stack;    /* FREE, UNMAP: 0 */
	uint16_t slot;
	uint8_t kind; /* ALLOC, FREE, MAP, UNMAP of enum heap_record */
	uint8_t site;
};

struct heapring_spec {
	struct heap_shared *shared;
	struct heap_slot *slots;
	uint32_t nr_slots;
	uint32_t ring_bytes;         /* a power of two */
	const uint8_t *const *rings; /* nr_slots; borrowed */
	/* Another thread has the slot from here on. */
	void (*on_thread)(void *ctx, uint16_t slot, int32_t tid);
	/* Leaf first; borrowed until it returns. */
	void (*on_stack)(void *ctx, uint32_t stack, const uint64_t *frames, uint32_t nr,
			 enum walk_end end);
	void *ctx;
};

struct heapring_counts {
	uint64_t nr_allocs; /* by the recorder, exact also where it sampled */
	uint64_t nr_bytes;
	uint64_t nr_frees;
	uint64_t nr_dropped; /* records for which there was no room, or of threads without a slot */
	uint64_t dropped_bytes;
	uint64_t nr_events; /* read here */
	uint32_t nr_threads;
	uint32_t nr_broken; /* rings that made no sense */
	uint64_t nr_no_stack;
	uint64_t nr_no_block;
	bool is_tsc_forbidden; /* the target forbade its threads the time stamp counter */
	uint64_t inert_tsc;    /* when the recorder fell silent, 0 = it did not */
};

struct heapring_reader;

struct heapring {
	struct heapring_spec spec;
	struct heapring_reader *readers; /* nr_slots */
	uint16_t *queue;                 /* heap of readers by time of their next record */
	uint16_t *taken;                 /* slots that were ever taken */
	uint32_t nr_taken;
	uint32_t nr_taken_reported; /* by the target, when they were looked for last */
	uint32_t nr_queued;
	uint64_t now_tsc;
	uint64_t fullest_bytes; /* at the begin of this pass, as if all rings were as large */
	uint64_t nr_events;
	uint64_t nr_stacks;
	uint64_t nr_frames; /* of these stacks */
	uint32_t nr_threads;
	uint32_t nr_broken;
};

/* Of the CPU that runs this, after everything before it. */
uint64_t heapring_tsc(void);

void heapring_init(struct heapring *r, const struct heapring_spec *spec);
void heapring_release(struct heapring *r);
/* A pass begins. @now_tsc: heapring_tsc(); tests say their own time. */
void heapring_begin(struct heapring *r, uint64_t now_tsc);
/* Up to @max events; 0: the pass is over, everything that was read is free for the recorder. */
size_t heapring_take(struct heapring *r, struct heapring_event *to, size_t max);
/*
 * Threads of which @is_alive says no have ended: their slots, once they are empty, are given up,
 * and those that were long enough (heap_wire.h) are anybody's. To be called between passes, now and
 * then. @now_ns: of any clock.
 */
void heapring_retire(struct heapring *r, uint64_t now_ns, bool (*is_alive)(void *ctx, int32_t tid),
		     void *ctx);
/* One has ended. */
void heapring_thread_ended(struct heapring *r, uint64_t now_ns, int32_t tid);
struct heapring_counts heapring_counts(const struct heapring *r);

#endif
