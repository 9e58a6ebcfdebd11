/*
 * Reads the memory use of a target repeatedly (`assay watch`). Several processes are summed up;
 * those that exit are dropped and counted. PSS and mappings are read so rarely that this takes at
 * most 1 % of the time (host/memory/memstat.h says what a page table walk costs the target).
 *
 * Also finds the allocator of a single process by its binaries and, if asked for, reads jemalloc's
 * own statistics: a remote call in the process, on one of its threads, which is stopped for a millisecond
 * or so (remote/jemalloc/jemalloc.h), at most once a second and so seldom that the borrowing takes less than
 * a 250th of that thread's time.
 */
#ifndef ASSAY_SESSION_MEMWATCH_H
#define ASSAY_SESSION_MEMWATCH_H

#include "base/base.h"
#include "base/err.h"
#include "base/vec.h"
#include "host/memory/cgroup.h"
#include "host/memory/maps.h"
#include "host/memory/memstat.h"
#include "host/target.h"
#include "plan/heapplan.h"

enum memwatch_flags {
	MEMWATCH_ASK = 1 << 0, /* the allocator, of one process */
};

struct memwatch_process {
	int32_t pid;
	bool has_exited;
	uint64_t start_ticks; /* start time: detects that the pid was reused */
	struct memstat last;
	struct memstacks stacks;
	uint64_t stack_bytes;
};

struct memwatch {
	unsigned flags; /* enum memwatch_flags */
	VEC(struct memwatch_process) processes;
	uint32_t nr_exited;
	uint64_t next_walk_ns;
	struct memgroup_tree tree;
	struct memgroup group;
	bool has_group;
	struct memreading last;
	int refused; /* errno of reading smaps_rollup, 0 = permitted */
	/* The mappings at the last reading, by process; owners are set (memmap.whose). */
	VEC(struct memmaps) maps;
	uint32_t nr_unseen; /* threads whose stacks were not found */
	uint64_t maps_ns;   /* time of the reading; 0 = none yet */
	uint64_t next_maps_ns;
	/* The allocator. */
	char *allocator;  /* its name, or "none found"; NULL: not searched yet; owned */
	bool maps_itself; /* it gets memory by mmap, not by brk */
	struct heap_plan plan;
	bool is_asking; /* jemalloc's statistics are read */
	struct memallocator stats;
	uint64_t next_ask_ns;
	struct err not_asked; /* why they are not */
	/* Cost. */
	uint64_t nr_readings;
	uint64_t nr_walks;
	uint64_t walks_ns;
	uint64_t longest_walk_ns;
	uint32_t nr_asked;
	uint64_t longest_ask_ns; /* longest stop of the thread */
};

#define MEMWATCH_INIT                                               \
	{                                                           \
		.tree = MEMGROUP_TREE_INIT, .group = MEMGROUP_INIT, \
	}
/*
 * Opens the processes of @target and those of its threads; NULL: @child, a command before its
 * execve, whose allocator is not known yet. -ESRCH: it has exited. -ENOTSUP: the allocator has no
 * statistics (with a hint).
 */
int memwatch_open(struct memwatch *w, const struct target *target, int32_t child, unsigned flags,
		  struct err *err);
void memwatch_release(struct memwatch *w);
/* Makes a reading; reads mappings too if they are due. -ESRCH: all processes have exited. */
int memwatch_read(struct memwatch *w, struct memreading *ret_t, struct err *err);
/* Reads mappings now; the previous ones stay if all processes have exited. */
void memwatch_read_maps(struct memwatch *w);
/* Finds the allocator's name if not searched yet. Reads binaries: about 0.1 s. */
void memwatch_name_allocator(struct memwatch *w);

#endif
