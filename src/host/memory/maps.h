/*
 * The mappings of a process with what is resident of each, from /proc/PID/smaps; where that is
 * refused, their sizes alone from /proc/PID/maps.
 *
 * Kinds are told by what a mapping is, not by its address: a file of which any part is mapped
 * executable is a binary, any other a mapped file; a stack is a private writable mapping without a
 * file that holds the stack pointer of a thread (/proc/PID/task/TID/syscall, told while the thread
 * is not running), and is remembered as long as it is mapped. For threads that always run, mappings
 * are taken that have a guard below and the size of a stack that was seen, or of 8 MiB.
 *
 * Paths are the kernel's, in the target's root, and foreign: escape them. Reading walks the page
 * tables under the target's lock for mappings, as smaps_rollup does, and prints some 700 bytes a
 * mapping: 10 us each.
 */
#ifndef ASSAY_HOST_MEMORY_MAPS_H
#define ASSAY_HOST_MEMORY_MAPS_H

#include "base/base.h"
#include "base/err.h"
#include "base/intern.h"
#include "base/sv.h"
#include "base/vec.h"
#include "model/memory.h"

/* Where stacks were seen, by process; start with {0}. */
struct memstacks {
	VEC(uint64_t) starts; /* ascending */
	uint32_t nr_unseen;   /* threads that were running whenever they were looked at */
};
void memstacks_release(struct memstacks *s);

void memmaps_release(struct memmaps *m);

/* @stacks: of this process, updated; NULL: only the first thread's is told apart. */
int memmaps_read(struct memmaps *ret_m, int32_t pid, struct memstacks *stacks, struct err *err);
/* RSS of the mappings of a kind. */
uint64_t memmaps_rss(const struct memmaps *m, enum memmap_kind kind);

/* For tests and fuzzing: text of smaps or maps, appended. Lines that make no sense are passed. */
void memmaps_parse(struct memmaps *m, struct sv text);
/* Marks the mappings that hold these stack pointers. */
void memmaps_mark_stacks(struct memmaps *m, struct memstacks *stacks, const uint64_t *sps,
			 size_t nr);
/* The same for @nr threads that were running, by size and guard; how many it found. */
size_t memmaps_guess_stacks(struct memmaps *m, struct memstacks *stacks, size_t nr);

#endif
