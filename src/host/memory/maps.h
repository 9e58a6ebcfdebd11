/*
 * Reads the mappings of a process with the resident bytes of each from /proc/PID/smaps, or, where
 * that is not permitted, their sizes alone from /proc/PID/maps; and classifies them.
 *
 * A file counts as a binary if any part of it is mapped executable, else as a mapped file. A stack
 * is a private writable anonymous mapping that contains the stack pointer of a thread
 * (/proc/PID/task/TID/syscall, readable while the thread does not run). Once found, it counts as a
 * stack as long as it is mapped. The stack pointer of a thread that was running at every read is
 * not known. For each such thread one mapping counts as its likely stack: one with a guard page
 * below, whose size is 8 MiB or that of a known stack.
 *
 * Paths are in the target's root and may hold any bytes: escape them when printing. Reading smaps
 * walks the page tables under the target's mmap lock, as smaps_rollup does. The kernel prints about
 * 700 bytes per mapping, which takes 10 us.
 */
#ifndef ASSAY_HOST_MEMORY_MAPS_H
#define ASSAY_HOST_MEMORY_MAPS_H

#include "base/base.h"
#include "base/err.h"
#include "base/intern.h"
#include "base/sv.h"
#include "base/vec.h"
#include "model/memory.h"

/* Known stacks of one process; start with {0}. */
struct memstacks {
	VEC(uint64_t) starts; /* ascending */
	uint32_t nr_unseen;   /* threads whose stack was not found: running at every read */
};
void memstacks_release(struct memstacks *s);

void memmaps_release(struct memmaps *m);

/* @stacks: of this process, updated; NULL: only the main thread's stack is found. */
int memmaps_read(struct memmaps *ret_m, int32_t pid, struct memstacks *stacks, struct err *err);
/* Returns the resident bytes of the mappings of a kind. */
uint64_t memmaps_rss(const struct memmaps *m, enum memmap_kind kind);

/* Public for tests and fuzzing: */
/* Appends the mappings in the text of smaps or maps; skips malformed lines. */
void memmaps_parse(struct memmaps *m, struct sv text);
/* Marks the mappings that hold these stack pointers as stacks. */
void memmaps_mark_stacks(struct memmaps *m, struct memstacks *stacks, const uint64_t *sps,
			 size_t nr);
/* Marks likely stacks of @nr running threads, by size and guard page; returns how many it found. */
size_t memmaps_guess_stacks(struct memmaps *m, struct memstacks *stacks, size_t nr);

#endif
