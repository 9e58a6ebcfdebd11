/*
 * Prepares a profile's memory tables for the writers of heap files (heaptrack, massif): allocations
 * and frees per slice of time (model/heap.h) and key (stack and size class), summed over threads, and the live bytes at
 * the peak.
 *
 *	keys		dense, from 0
 *	steps		sorted by time, then key; one per slice and key
 *	peak		by key
 *
 * A profile that has only "live" (a dump) is treated as if everything was allocated in the first
 * slice; with "allocated" but without "freed", blocks that are not live count as freed in the
 * slice of their allocation. Times count from the start of the profile.
 */
#ifndef ASSAY_FORMAT_HEAP_HEAPSTEPS_H
#define ASSAY_FORMAT_HEAP_HEAPSTEPS_H

#include "base/base.h"
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "model/profile.h"

/* Options of both writers; zero is the default. */
struct heapwrite_options {
	/* Returns a stack without the allocator's own frames at the leaf; NULL: keep them. */
	stack_id (*trim)(void *ctx, stack_id stack);
	void *trim_ctx;
};

struct heap_amount {
	int64_t nr;
	int64_t nr_bytes;
};

struct heap_key {
	stack_id stack; /* trimmed */
	uint16_t size_class;
};

struct heap_step {
	uint64_t begin_ns; /* of the slice */
	uint64_t end_ns;
	uint32_t key;
	struct heap_amount allocated; /* including temporary */
	struct heap_amount temporary;
	struct heap_amount freed;
};

struct heapsteps {
	VEC(struct heap_key) keys;
	VEC(struct heap_step) steps;
	struct heap_amount *peak; /* by key; NULL: the peak is not known */
	int64_t peak_bytes;
	uint64_t peak_ns; /* since the start */
	uint64_t end_ns;  /* of the profile, since the start */
	struct map by_key;
};

/* @p is sealed. -ENOENT if the profile has no memory tables; the error gets @hint then. */
int heapsteps_init(struct heapsteps *r, const struct profile *p,
		   const struct heapwrite_options *options, const char *hint, struct err *err);
void heapsteps_release(struct heapsteps *r);
/* Converts a time of the profile to nanoseconds since its start. */
uint64_t heapsteps_since(const struct profile *p, uint64_t time_ns);

#endif
