/*
 * A fake heap recorder (wire/heap_wire.h): tests write records into the rings of its threads, and
 * heapring and heapaccount read them as if they came from a process. Time stamps are nanoseconds.
 */
#ifndef ASSAY_TESTS_LIB_FAKE_RECORDER_H
#define ASSAY_TESTS_LIB_FAKE_RECORDER_H

#include "base/base.h"
#include "base/map.h"
#include "base/vec.h"
#include "capture/heap/heapaccount.h"
#include "capture/heap/heapring.h"

#define FAKE_RECORDER_SLOTS      8
#define FAKE_RECORDER_RING_BYTES 4096
#define FAKE_RECORDER_START      1000000000000ull

struct fake_recorder_sum {
	uint32_t spec;
	uint32_t stack;
	int32_t tid;
	uint16_t size_class;
	int64_t values[6];
};

struct fake_recorder {
	struct heap_shared shared;
	struct heap_slot slots[FAKE_RECORDER_SLOTS];
	uint64_t rings[FAKE_RECORDER_SLOTS][FAKE_RECORDER_RING_BYTES / 8];
	const uint8_t *ring_at[FAKE_RECORDER_SLOTS];
	struct heapring ring;
	struct heapaccount *account;
	VEC(struct fake_recorder_sum) sums; /* of rows */
	struct map sum_of;
	VEC(struct heapaccount_row) rows;
	VEC(uint32_t) stacks;  /* reported */
	VEC(uint64_t) pythons; /* reported: reference or key */
	uint64_t seed;
};

void fake_recorder_init(struct fake_recorder *w, uint64_t interval_bytes, uint64_t seed);
void fake_recorder_release(struct fake_recorder *w);
uint64_t fake_recorder_random(struct fake_recorder *w, uint64_t below);
/* False: the ring is full. */
bool fake_recorder_put(struct fake_recorder *w, unsigned slot, const uint64_t *words, uint32_t nr);
bool fake_recorder_alloc(struct fake_recorder *w, unsigned slot, uint64_t tsc, uint64_t addr,
			 uint64_t nr_bytes, uint32_t stack);
bool fake_recorder_free(struct fake_recorder *w, unsigned slot, uint64_t tsc, uint64_t addr);
/* Reads all records with time stamps up to @tsc. */
void fake_recorder_pass(struct fake_recorder *w, uint64_t tsc);
/* Returns the sum of a column over the rows of @spec; @stack or @tid -1: any. */
int64_t fake_recorder_sum(const struct fake_recorder *w, uint32_t spec, int64_t stack, int64_t tid,
			  unsigned column);

#endif
