/*
 * The recorder (inject/) loaded into this process, with memory as assay would make it for a
 * target. For tests and benchmarks; Linux on x86-64 only.
 *
 *	struct heap_world *h = heap_world_new(&(struct heap_world_spec){.is_full_trace = true});
 *	void *(*f)(size_t) = heap_world_hook(h, HEAP_ALLOC_0, (void (*)(void))my_malloc);
 *	heap_world_start(h);
 */
#ifndef ASSAY_TESTS_LIB_HEAP_WORLD_H
#define ASSAY_TESTS_LIB_HEAP_WORLD_H

#include "base/base.h"
#include "remote/patch/image.h"
#include "capture/bpf/kerneltables.h"
#include "heap_wire.h"
#include "unwind_world.h"

struct heap_world_spec {
	bool is_full_trace;
	bool has_no_tables;
	bool has_no_kernel;
	uint64_t interval_bytes;
	uint32_t nr_slots;   /* 0: 64 */
	uint32_t ring_bytes; /* 0: 1 MiB */
	uint32_t nr_blocks;  /* 0: 65536, if sampled */
	uint32_t nr_stacks;  /* 0: 65536 */
	uint64_t wait_tsc;
	uint64_t assay_timeout_tsc; /* 0: never */
};

typedef void (*heap_fn)(void);

struct heap_world {
	struct world world;
	struct kerneltables k;
	uint8_t *image;
	struct heap_data *data;
	struct heap_local *local;
	struct heap_shared *shared;
	struct heap_slot *slots;
	uint8_t *rings;
	uint8_t *stubs;
	uint32_t nr_sites;
};

/* A record, taken apart. */
struct heap_seen {
	enum heap_record kind;
	uint32_t site;
	uint32_t tid;
	uint64_t tsc;
	uint64_t block; /* or address */
	uint64_t n;     /* size or length */
	uint32_t stack;
	uint32_t end; /* of a stack: enum walk_end */
	uint32_t nr_frames;
	uint64_t frames[HEAP_FRAMES_MAX];
};

/* NULL: there is no image for this machine. */
struct heap_world *heap_world_new(const struct heap_world_spec *spec);
void heap_world_free(struct heap_world *h);
/* What to call instead of @original. */
heap_fn heap_world_hook(struct heap_world *h, enum heap_shape shape, heap_fn original);
/* The image's function at this offset. */
heap_fn heap_world_fn(const struct heap_world *h, uint64_t off);
/* Mappings have changed: rules are published again. */
bool heap_world_refresh(struct heap_world *h);
void heap_world_start(struct heap_world *h);
void heap_world_stop(struct heap_world *h);
/* The slot of the calling thread, or NULL. */
struct heap_slot *heap_world_slot(const struct heap_world *h);
/* The next record of a slot; false: none. Paddings are skipped. */
bool heap_world_next(const struct heap_world *h, struct heap_slot *s, struct heap_seen *ret);
/* Forgets all records of a slot. */
void heap_world_skip(struct heap_slot *s);

#endif
