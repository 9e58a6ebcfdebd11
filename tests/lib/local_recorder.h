/*
 * Loads the heap recorder (inject/) into the calling process, with the same memory layout as assay
 * sets up in a target. For tests and benchmarks; Linux on x86-64 only.
 *
 *	struct local_recorder_spec spec = {.is_full_trace = true};
 *	struct local_recorder *h = local_recorder_new(&spec);
 *	void *(*f)(size_t) = local_recorder_hook(h, HEAP_ALLOC_0, (void (*)(void))my_malloc);
 *	local_recorder_start(h);
 */
#ifndef ASSAY_TESTS_LIB_LOCAL_RECORDER_H
#define ASSAY_TESTS_LIB_LOCAL_RECORDER_H

#include "base/base.h"
#include "remote/patch/image.h"
#include "capture/bpf/kerneltables.h"
#include "heap_wire.h"
#include "unwind_process.h"

struct local_recorder_spec {
	bool is_full_trace;
	bool has_no_tables;
	bool has_no_kernel;
	bool starts_full;
	uint64_t interval_bytes;
	uint32_t nr_slots;   /* 0: 64 */
	uint32_t ring_bytes; /* 0: 1 MiB */
	uint32_t nr_blocks;  /* 0: 65536, if sampled */
	uint32_t nr_stacks;  /* 0: 65536 */
	uint64_t wait_tsc;
	uint64_t assay_timeout_tsc; /* 0: never */
};

typedef void (*heap_fn)(void);

struct local_recorder {
	struct unwind_process process;
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

/* A decoded record. */
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
	/* Of Python records; valid until more is recorded. */
	const struct kernel_pycode *pycode;
	uint32_t native_stack;
	const struct python_frame *python;
};

/* Loads the recorder; NULL: there is no image for this architecture. */
struct local_recorder *local_recorder_new(const struct local_recorder_spec *spec);
void local_recorder_free(struct local_recorder *h);
/* Returns the function to call instead of @original. */
heap_fn local_recorder_hook(struct local_recorder *h, enum heap_shape shape, heap_fn original);
/* Returns the image's function at this offset. */
heap_fn local_recorder_fn(const struct local_recorder *h, uint64_t off);
/* Publishes unwind rules again after mappings have changed. */
bool local_recorder_refresh(struct local_recorder *h);
void local_recorder_start(struct local_recorder *h);
void local_recorder_stop(struct local_recorder *h);
/* Returns the slot of the calling thread, or NULL. */
struct heap_slot *local_recorder_slot(const struct local_recorder *h);
/* Reads the next record of a slot, skipping padding; false: there is none. */
bool local_recorder_next(const struct local_recorder *h, struct heap_slot *s,
			 struct heap_seen *ret);
/* Discards all records of a slot. */
void local_recorder_skip(struct heap_slot *s);

#endif
