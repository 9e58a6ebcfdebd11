/*
 * The memory of a target, one reading after the other (`assay watch`). Several processes are added
 * up; those that end are left out from then on, with a count. PSS and mappings are read as seldom
 * as takes a 100th of the time (host/memory/memstat.h says what a walk costs the target).
 *
 * Beside that: which allocator the one process has, by its binaries; and, if asked for, what it
 * says of itself: jemalloc, asked in the process on one thread that is borrowed for a millisecond
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
	bool is_gone;
	uint64_t start_ticks; /* a number that is used again is another process */
	struct memstat last;
	struct memstacks stacks;
	uint64_t stack_bytes;
};

struct memwatch {
	unsigned flags; /* enum memwatch_flags */
	VEC(struct memwatch_process) processes;
	uint32_t nr_gone;
	uint64_t next_walk_ns;
	struct memgroup_tree tree;
	struct memgroup group;
	bool has_group;
	struct memreading last;
	int refused; /* errno of smaps_rollup, 0 = it may be read */
	/* The mappings as they were read last, by process; whose they are is marked. */
	VEC(struct memmaps) maps;
	uint32_t nr_unseen; /* threads whose stacks were not found */
	uint64_t maps_ns;   /* when; 0 = not yet */
	uint64_t next_maps_ns;
	/* The allocator. */
	char *allocator;  /* its name, "none found" among them; NULL: not known; owned */
	bool maps_itself; /* it takes its memory by mmap */
	struct heap_plan plan;
	bool is_asking;
	struct memallocator said;
	uint64_t next_ask_ns;
	struct err not_asked; /* why */
	/* What it cost. */
	uint64_t nr_readings;
	uint64_t nr_walks;
	uint64_t walks_ns;
	uint64_t longest_walk_ns;
	uint32_t nr_asked;
	uint64_t longest_ask_ns; /* of the borrowed thread */
};

#define MEMWATCH_INIT                                               \
	{                                                           \
		.tree = MEMGROUP_TREE_INIT, .group = MEMGROUP_INIT, \
	}
/*
 * The processes and those of the threads of @target; NULL: of @child, a command that has yet to
 * start, so that its allocator is not there. -ESRCH: it has ended. -ENOTSUP: an allocator that does
 * not tell, with a hint.
 */
int memwatch_open(struct memwatch *w, const struct target *target, int32_t child, unsigned flags,
		  struct err *err);
void memwatch_release(struct memwatch *w);
/* -ESRCH: all have ended. Mappings are read when it is time to. */
int memwatch_read(struct memwatch *w, struct memreading *ret_t, struct err *err);
/* Now; those that were read before stay if all have ended. */
void memwatch_read_maps(struct memwatch *w);
/* Looks for the allocator's name if there is none yet: a tenth of a second, as it reads binaries. */
void memwatch_name_allocator(struct memwatch *w);

#endif
