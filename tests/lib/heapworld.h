/*
 * A recorder that is made up (wire/heap_wire.h): threads whose rings a test writes, read by
 * heapring and heapbook as if they were a process's. Time stamps are nanoseconds.
 */
#ifndef ASSAY_TESTS_LIB_HEAPWORLD_H
#define ASSAY_TESTS_LIB_HEAPWORLD_H

#include "base/base.h"
#include "base/map.h"
#include "base/vec.h"
#include "capture/heap/heapaccount.h"
#include "capture/heap/heapring.h"

#define HEAPWORLD_SLOTS      8
#define HEAPWORLD_RING_BYTES 4096
#define HEAPWORLD_START      1000000000000ull

struct heapworld_sum {
	uint32_t spec;
	uint32_t stack;
	int32_t tid;
	uint16_t size_class;
	int64_t values[6];
};

struct heapworld {
	struct heap_shared shared;
	struct heap_slot slots[HEAPWORLD_SLOTS];
	uint64_t rings[HEAPWORLD_SLOTS][HEAPWORLD_RING_BYTES / 8];
	const uint8_t *ring_at[HEAPWORLD_SLOTS];
	struct heapring ring;
	struct heapaccount *account;
	VEC(struct heapworld_sum) sums; /* of rows */
	struct map sum_of;
	VEC(struct heapaccount_row) rows;
	VEC(uint32_t) stacks; /* told */
	uint64_t seed;
};

void heapworld_init(struct heapworld *w, uint64_t interval_bytes, uint64_t seed);
void heapworld_release(struct heapworld *w);
uint64_t heapworld_random(struct heapworld *w, uint64_t below);
/* False: the ring is full. */
bool heapworld_put(struct heapworld *w, unsigned slot, const uint64_t *words, uint32_t nr);
bool heapworld_alloc(struct heapworld *w, unsigned slot, uint64_t tsc, uint64_t addr,
		     uint64_t nr_bytes, uint32_t stack);
bool heapworld_free(struct heapworld *w, unsigned slot, uint64_t tsc, uint64_t addr);
/* What was stamped up to then is read. */
void heapworld_pass(struct heapworld *w, uint64_t tsc);
/* All rows of that kind for these; -1 as the stack or thread: any. */
int64_t heapworld_sum(const struct heapworld *w, uint32_t spec, int64_t stack, int64_t tid,
		      unsigned column);

#endif
