/*
 * The tables of memory as what a writer of heap files tells: for each second what was allocated and
 * freed, by key (stack and class of sizes), threads put together; and what was live at the peak.
 *
 *	VEC keys		dense, 0 is the first
 *	VEC steps		sorted by second, then key; one a key and second
 *	peak			by key
 *
 * Profiles that have "live" only (dumps) become one in which all of it was allocated in the first
 * second; "allocated" without "freed" one in which what is not live was freed at once. Seconds
 * count from the profile's start.
 */
#ifndef ASSAY_FORMAT_HEAP_HEAPSTEPS_H
#define ASSAY_FORMAT_HEAP_HEAPSTEPS_H

#include "base/base.h"
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "model/profile.h"

/* What both writers take; zero is the default of all. */
struct heapwrite_options {
	/* A stack without the allocator's own frames at its leaf; NULL: as it is. */
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
	uint64_t second;
	uint32_t key;
	struct heap_amount allocated; /* temporary ones included */
	struct heap_amount temporary;
	struct heap_amount freed;
};

struct heapsteps {
	VEC(struct heap_key) keys;
	VEC(struct heap_step) steps;
	struct heap_amount *peak; /* by key; NULL: no peak is known */
	int64_t peak_bytes;
	uint64_t peak_ns; /* since the start */
	uint64_t end_ns;  /* of the profile, since the start */
	struct map by_key;
};

/* The profile is sealed. -ENOENT when there is no memory in it; @hint says where there is some. */
int heapsteps_init(struct heapsteps *r, const struct profile *p,
		   const struct heapwrite_options *options, const char *hint, struct err *err);
void heapsteps_release(struct heapsteps *r);
/* Nanoseconds since the profile's start. */
uint64_t heapsteps_since(const struct profile *p, uint64_t time_ns);

#endif
