/*
 * Fills the memory with which the BPF programs (and the injected heap recorder) unwind; layout and
 * protocol: wire/kernel_tables.h. The unwind rows of a binary are written once and shared by all
 * processes that map it. The mappings of a process are a range, published by one store. Ranges and
 * rows that are no longer used are reused a second later, when no walk can still read them; page
 * numbers are never given to another binary.
 *
 * If the mappings of a process cannot be published (no room, the BPF programs do not know the
 * process yet, an exec that has not been applied here), it is tried again later; until then its
 * stacks come as copies. Not thread-safe.
 */
#ifndef ASSAY_CAPTURE_BPF_KERNELTABLES_H
#define ASSAY_CAPTURE_BPF_KERNELTABLES_H

#include "base/base.h"
#include "base/map.h"
#include "base/vec.h"
#include "capture/bpf/rangepool.h"
#include "kernel_tables.h"
#include "unwind/space.h"

struct kerneltables_spec {
	struct ktables_head *head; /* followed by nr_rows rows at KTABLES_HEAD_BYTES */
	uint32_t nr_rows;
	/* Finds the index of a process's space in map "procs"; false: it has none. */
	bool (*find_space)(void *ctx, int32_t pid, uint32_t *ret_idx);
	void *ctx;
};

struct ktable;
struct krange;
struct kprocess;

struct kerneltables {
	struct kerneltables_spec spec;
	struct unwind_row *rows;
	struct rangepool row_pool;
	struct rangepool map_pool;
	struct rangepool page_pool;
	struct rangepool special_pool;
	VEC(struct ktable) tables;
	VEC(struct krange) ranges;
	VEC(struct kprocess) processes;
	VEC(const struct python_layout *) pythons; /* those written, by index */
	VEC(uint32_t) free_ranges;                 /* unused indices of ranges */
	VEC(uint32_t) free_processes;
	VEC(int32_t) dirty;    /* pids whose mappings must be published (again) */
	struct map table_of;   /* address of an unwind_table -> index + 1 */
	struct map range_of;   /* generation of a space -> index + 1 */
	struct map process_of; /* pid -> index + 1 */
	uint64_t applied_ns;   /* all events up to this time have been applied */
	uint64_t collected_ns; /* last time that unused ranges and rows were freed */
	uint32_t last_generation;
	uint64_t nr_full; /* binaries and processes for which there was no room */
};

void kerneltables_init(struct kerneltables *k, const struct kerneltables_spec *spec);
void kerneltables_release(struct kerneltables *k);
/* Allocates the index of an unused space; false: all are in use. */
bool kerneltables_alloc_space(struct kerneltables *k, uint32_t *ret_idx);
/*
 * Sets the mappings of a process, to be published by kerneltables_applied. @sp is borrowed until
 * the next call for this process; NULL: the process has ended.
 */
void kerneltables_changed(struct kerneltables *k, int32_t pid, const struct space *sp);
/* A BPF program found no mappings of this process: they are published again. */
void kerneltables_missed(struct kerneltables *k, int32_t pid);
/* All events up to @time_ns have been applied: publishes changed mappings, frees unused memory. */
void kerneltables_applied(struct kerneltables *k, uint64_t time_ns, uint64_t now_ns);
/* Whether the published mappings of the process are those that were set last. */
bool kerneltables_is_published(const struct kerneltables *k, int32_t pid);

#endif
