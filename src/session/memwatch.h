/*
 * Reads the memory use of a target repeatedly (`assay watch`). Values of several processes are
 * summed. Processes that join a group of the target (a container) are added; those that exit are
 * removed and counted in nr_exited. PSS and mappings are read so
 * rarely that this takes at most 1 % of the time (host/memory/memstat.h: cost of a page table
 * walk).
 *
 * The heaps of glibc's malloc are walked from outside after each reading of mappings
 * (host/memory/mallocheap.h), for a single process; nothing is stopped for that.
 *
 * Also finds the allocator of a single process by its binaries and, with MEMWATCH_ALLOCATOR_STATS,
 * reads jemalloc's own statistics by a remote call. The call stops one thread of the process for
 * about a millisecond (remote/jemalloc/jemalloc.h). It is made at most once a second, and so rarely
 * that the thread is stopped for at most 1/250 of the time.
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
	MEMWATCH_ALLOCATOR_STATS = 1 << 0, /* read jemalloc's statistics; one process only */
	MEMWATCH_CHILDREN = 1 << 1,        /* with descendants that are forked later */
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
	struct target_family family; /* those that have not exited */
	struct target *target;       /* borrowed; NULL: a command */
	uint32_t nr_joined;          /* added after the start */
	uint32_t nr_exited;
	uint64_t next_walk_ns; /* time of the next reading of smaps_rollup */
	struct memgroup_tree tree;
	struct memgroup group;
	bool has_group;
	struct memreading last;
	int refused; /* -errno of the first refused reading of smaps_rollup, 0 = none */
	/* The mappings at the last reading of mappings, by process; memmap.whose is set. */
	VEC(struct memmaps) maps;
	uint32_t nr_unseen; /* threads whose stacks were not found */
	uint64_t maps_ns;   /* time of the last reading of mappings; 0 = none yet */
	uint64_t next_maps_ns;
	/* The allocator. */
	char *allocator;  /* its name, or "none found"; NULL: not searched yet; owned */
	bool maps_itself; /* the allocator gets memory by mmap, not by brk */
	struct heap_plan plan;
	bool is_stats_open; /* jemalloc's statistics are read */
	struct memallocator stats;
	struct memheap heap;    /* of glibc's malloc, at the last reading of mappings */
	uint64_t next_stats_ns; /* time of the next reading of the statistics */
	struct err no_stats;    /* why the statistics are not read */
	/* Cost. */
	uint64_t nr_readings;
	uint64_t nr_walks; /* page table walks of the target, by readings of smaps_rollup */
	uint64_t walks_ns; /* their total time */
	uint64_t longest_walk_ns;
	uint32_t nr_stats_readings;     /* readings of the statistics */
	uint64_t longest_stats_stop_ns; /* longest stop of the thread for such a reading */
};

#define MEMWATCH_INIT                                               \
	{                                                           \
		.tree = MEMGROUP_TREE_INIT, .group = MEMGROUP_INIT, \
	}
/*
 * Opens the processes of @target that still run, and the processes that its single threads belong to. @target
 * NULL: opens @child, the pid of a command before its execve, whose allocator is not known yet.
 * -ESRCH: the process has exited. -ENOTSUP: the allocator has no statistics (with a hint).
 */
int memwatch_open(struct memwatch *w, struct target *target, int32_t child, unsigned flags,
		  struct err *err);
void memwatch_release(struct memwatch *w);
/*
 * Reads the memory use into *ret_t, and the mappings if it is time for them (next_maps_ns). -ESRCH:
 * all processes have exited.
 */
int memwatch_read(struct memwatch *w, struct memreading *ret_t, struct err *err);
/* Reads mappings now; keeps those of the last reading if all processes have exited. */
void memwatch_read_maps(struct memwatch *w);
/* Asks the allocator now, if MEMWATCH_ALLOCATOR_STATS is set and it could be asked before. */
void memwatch_read_stats(struct memwatch *w);
/* Sets w->allocator if it is NULL. Reads the process's binaries, which takes about 0.1 s. */
void memwatch_name_allocator(struct memwatch *w);

#endif
