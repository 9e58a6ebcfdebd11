/*
 * Memory in a profile: what the tables mean that every source of heap profiles fills (a capture, a
 * reader of jemalloc's, heaptrack's, massif's files) and every analysis of memory reads. Their
 * columns and keys: model/tables.c. All have tags.
 *
 *	TABLE_ALLOCATED  flow: what was allocated in that second, by allocating stack and thread
 *	TABLE_FREED      flow: blocks of this capture that were freed in that second, by the stack
 *	                 and the thread that allocated them. So allocated - freed, added up to a
 *	                 moment, is live
 *	TABLE_FREED_PREEXISTING      flow: frees of blocks from before the capture; no stack; bytes are 0 where
 *	                 they are not known
 *	TABLE_LIVE       level, at the end: blocks that were not freed. time_ns is the second in
 *	                 which they were allocated (0 = unknown), so age is the capture's end minus
 *	                 time_ns
 *	TABLE_PEAK       level, at the moment at which live bytes of the process were most
 *	TABLE_MAPPED     flow: mmap, munmap, mremap, brk by the program itself, by stack; tag.detail
 *	                 says which. Apart from the heap: never added to it
 *	TABLE_GROWTH     flow: memory touched for the first time (page faults of anonymous memory)
 *	                 by stack: what can be said without looking into an allocator
 *	TABLE_MEMORY     level, at instants, of a process: what the kernel says it uses; no stacks
 *	TABLE_SNAPSHOTS  what was live at several moments (dumps, massif's detailed snapshots);
 *	                 time_ns is the moment. Rows of one moment are added up, never those of
 *	                 several
 *
 * Columns are in the order of the enums below; a table may leave out columns from its end. Values
 * of sampled sources are scaled up already (unbiased estimates, is_estimate is set on the columns);
 * `samples` counts blocks that were really seen and `variance` adds up the variance of the estimate
 * of bytes, in bytes^2 (saturating; 0 where everything was seen), so that the 95 % interval of a
 * sum is sum +- 1.96 sqrt(sum of variances).
 *
 * tag.size_class: class of the blocks of a row (heap_size_class); 0 = not told apart.
 */
#ifndef ASSAY_MODEL_HEAP_H
#define ASSAY_MODEL_HEAP_H

#include "base/base.h"

/* TABLE_ALLOCATED. */
enum heap_allocated_column {
	HEAP_ALLOCATED_CALLS = 0,
	HEAP_ALLOCATED_BYTES = 1,
	HEAP_ALLOCATED_SAMPLES = 2,
	HEAP_ALLOCATED_VARIANCE = 3,
	HEAP_ALLOCATED_TEMPORARY = 4, /* freed before the thread's next allocation, by it */
	HEAP_ALLOCATED_TEMPORARY_BYTES = 5,
	HEAP_ALLOCATED_NR
};

/* TABLE_FREED, TABLE_FREED_PREEXISTING (frees), TABLE_LIVE, TABLE_PEAK, TABLE_SNAPSHOTS (blocks). */
enum heap_block_column {
	HEAP_BLOCKS = 0,
	HEAP_BYTES = 1,
	HEAP_SAMPLES = 2,
	HEAP_VARIANCE = 3,
	HEAP_BLOCK_NR
};

/* TABLE_MEMORY: bytes, of a process at an instant (0 = unknown, or really none). */
enum heap_memory_column {
	HEAP_MEMORY_RSS = 0,
	HEAP_MEMORY_PSS = 1,
	HEAP_MEMORY_ANON = 2,
	HEAP_MEMORY_FILE = 3,
	HEAP_MEMORY_SHMEM = 4,
	HEAP_MEMORY_SWAP = 5,
	HEAP_MEMORY_STACKS = 6, /* of threads */
	HEAP_MEMORY_VIRTUAL = 7,
	HEAP_MEMORY_LIVE = 8, /* live heap bytes by the capture of the same moment */
	HEAP_MEMORY_NR
};

/*
 * Classes of sizes: eight a doubling above 64 bytes, one a byte below, so a class is exact to
 * 12.5 %. 0 stands for "not told apart"; a block of 0 bytes is class 1.
 */
uint16_t heap_size_class(uint64_t nr_bytes);
/* The smallest size of a class; its largest is below the next class's smallest. */
uint64_t heap_class_min(uint16_t size_class);

#endif
