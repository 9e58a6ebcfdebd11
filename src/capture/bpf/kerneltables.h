/*
 * The memory that our BPF programs unwind by (wire/kernel_tables.h), filled: rows, pages
 * and specials of each binary once, shared by all processes that map it; the mappings of each
 * process as a range that one store replaces. Ranges and rows that nobody names any more are used
 * again a second later, when no walk can still be in them; pages stay their binary's.
 *
 * A process whose mappings cannot be said (no room, not met by the kernel side yet, an exec that
 * has not been applied here) is tried again; meanwhile its stacks come as copies.
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
	struct ktables_head *head; /* with nr_rows rows behind KTABLES_HEAD_BYTES */
	uint32_t nr_rows;
	/* Which space the kernel side has for a process; false: none (yet, or no more). */
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
	VEC(uint32_t) free_ranges; /* slots of ranges */
	VEC(uint32_t) free_processes;
	VEC(int32_t) dirty;    /* pids that are to be tried again */
	struct map table_of;   /* address of an unwind_table -> index + 1 */
	struct map range_of;   /* generation of a space -> index + 1 */
	struct map process_of; /* pid -> index + 1 */
	uint64_t applied_ns;
	uint64_t collected_ns;
	uint32_t last_generation;
	uint64_t nr_full; /* binaries and processes for which there was no room */
};

void kerneltables_init(struct kerneltables *k, const struct kerneltables_spec *spec);
void kerneltables_release(struct kerneltables *k);
/* A space that no process has yet, false: all are taken. */
bool kerneltables_take_space(struct kerneltables *k, uint32_t *ret_idx);
/* The process's mappings are these now; borrowed until told otherwise. NULL: it is gone. */
void kerneltables_changed(struct kerneltables *k, int32_t pid, const struct space *sp);
/* The kernel side met this process and found no mappings. */
void kerneltables_missed(struct kerneltables *k, int32_t pid);
/* All events up to then have been applied: what was changed is published, what is unused freed. */
void kerneltables_applied(struct kerneltables *k, uint64_t time_ns, uint64_t now_ns);
/* Whether what the kernel side has of the process is what was told last. */
bool kerneltables_is_published(const struct kerneltables *k, int32_t pid);

#endif
