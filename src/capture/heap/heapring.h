/*
 * Reads the rings of the recorder in one process: copies ring heads once and checks them, checks
 * every record, and merges all rings by time. The memory is not trusted: a ring with invalid
 * contents is counted and its records are discarded from then on. Its tail still advances, so that
 * the target's thread never waits for room in it.
 *
 * A drain: heapring_begin is given the current time T and then reads the heads of all rings. The
 * drain reads each record that was written before T. Example: thread A allocates a block, thread B
 * frees it before T. The recorder wrote the record of A before the patched function returned to A,
 * so the drain reads both records. Records with a time after T stay for the next drain.
 * heapring_next returns events in time order until none is left; stacks are passed to the callback
 * before the events that refer to them.
 *
 * Times are time stamp counter values (heap_wire.h). One thread at a time.
 */
#ifndef ASSAY_CAPTURE_HEAP_HEAPRING_H
#define ASSAY_CAPTURE_HEAP_HEAPRING_H

#include "base/base.h"
#include "base/vec.h"
#include "heap_wire.h"
#include "kernel_record.h"

struct heapring_event {
	uint64_t tsc;
	uint64_t addr;
	uint64_t nr_bytes; /* FREE: 0 */
	uint32_t stack;    /* FREE, UNMAP: 0 */
	uint16_t slot;
	uint8_t kind; /* ALLOC, FREE, MAP, UNMAP of enum heap_record */
	uint8_t site; /* index of the allocator function */
	bool is_all;  /* ALLOC: recorded while all allocations were, though sampled later */
};

struct heapring_spec {
	struct heap_shared *shared;
	struct heap_slot *slots;
	uint32_t nr_slots;
	uint32_t ring_bytes;         /* a power of two */
	const uint8_t *const *rings; /* nr_slots; borrowed */
	/* Later events of @slot are of thread @tid. */
	void (*on_thread)(void *ctx, uint16_t slot, int32_t tid);
	/* A new stack; frames leaf first, borrowed during the call. */
	void (*on_stack)(void *ctx, uint32_t stack, const uint64_t *frames, uint32_t nr,
			 enum walk_end end);
	/*
	 * A Python code object, or the Python frames of a stack (wire/kernel_python.h), whose ref and
	 * native_ref are stack ids; without time and ids of the thread, not checked otherwise. What it
	 * refers to may come later in the same drain. Borrowed during the call, may be changed. NULL: they
	 * are skipped.
	 */
	void (*on_python)(void *ctx, struct kernel_record *r);
	void *ctx;
};

struct heapring_counts {
	/* Counted by the recorder; exact also when sampled. */
	struct heap_class_count classes[HEAP_COUNT_CLASSES];
	uint64_t nr_allocs; /* sums of the classes */
	uint64_t nr_bytes;
	uint64_t nr_frees;
	uint64_t nr_dropped; /* records that did not fit, events without a slot */
	uint64_t dropped_bytes;
	uint64_t nr_events; /* events read */
	uint32_t nr_threads;
	uint32_t nr_broken; /* rings with invalid contents */
	/* Stacks not stored: the set of known stacks or the ring was full. */
	uint64_t nr_no_stack;
	/* Events in Python code whose Python frames could not be read or stored. */
	uint64_t nr_no_python;
	/* Sampled blocks whose frees are not recorded: the set of sampled blocks was full. */
	uint64_t nr_no_block;
	bool is_tsc_forbidden; /* the target disabled rdtsc */
	bool has_implausible;  /* counters that cannot be true count as 0 */
	/* Time at which the recorder stopped because assay did not run; 0 = it did not stop. */
	uint64_t inert_tsc;
};

struct heapring_reader;

struct heapring {
	struct heapring_spec spec;
	struct heapring_reader *readers; /* nr_slots */
	uint16_t *queue;                 /* binary heap of readers by time of the next record */
	uint16_t *taken;                 /* slots that were ever in use */
	uint32_t nr_taken;
	uint32_t nr_taken_reported; /* heap_shared.nr_taken when new slots were last searched */
	uint32_t nr_queued;
	uint64_t now_tsc;
	uint64_t begin_ns; /* CLOCK_MONOTONIC; before it nothing is counted */
	/*
	 * Largest number of unread bytes in a ring at the start of the drain. For a ring smaller
	 * than spec.ring_bytes: multiplied by spec.ring_bytes / its size.
	 */
	uint64_t fullest_bytes;
	uint64_t nr_events;
	uint64_t nr_stacks;
	uint64_t nr_frames; /* of these stacks, and words of records on Python */
	uint32_t nr_threads;
	uint32_t nr_broken;
};

void heapring_init(struct heapring *r, const struct heapring_spec *spec);
void heapring_release(struct heapring *r);
/* Starts a drain. @now_tsc: clock_ticks(). */
void heapring_begin(struct heapring *r, uint64_t now_tsc);
/* Returns up to @max events; 0: the drain is complete, and all that was read is free again. */
size_t heapring_next(struct heapring *r, struct heapring_event *to, size_t max);
/*
 * Retires slots of ended threads (@is_alive returns false) once their rings are empty, and frees
 * slots retired for long enough (heap_wire.h). Call between drains, occasionally. @now_ns: any
 * clock.
 */
void heapring_retire(struct heapring *r, uint64_t now_ns, bool (*is_alive)(void *ctx, int32_t tid),
		     void *ctx);
/* Retires the slot of thread @tid, which has ended. */
void heapring_thread_ended(struct heapring *r, uint64_t now_ns, int32_t tid);
struct heapring_counts heapring_counts(const struct heapring *r);

#endif
