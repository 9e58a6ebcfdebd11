/*
 * The memory tables of a profile: meaning of their rows and columns. They are filled by heap
 * captures and by the readers of jemalloc, heaptrack and massif files, and read by the memory
 * analyses. Keys and column names are in model/tables.c. All have tags.
 *
 *	TABLE_ALLOCATED  allocations per slice of time, by allocating stack and thread
 *	TABLE_FREED      frees per slice of blocks that were allocated during the capture, by the
 *	                 stack and thread that allocated them; so live bytes at a time are the sum
 *	                 of allocated - freed up to that time. Rows with HEAP_FREED_BY_END in
 *	                 tag.detail: blocks that a process still held when it ended or executed
 *	                 another program, which freed them, while other processes were recorded;
 *	                 at that moment, not at the start of a slice;
 *	                 with HEAP_FREED_BY_KILL the process was killed by SIGKILL
 *	TABLE_FREED_PREEXISTING  frees per second of blocks allocated before the capture; no stack;
 *	                 bytes are 0 where unknown
 *	TABLE_LIVE       blocks still live at the end. time_ns is the start of the step of time of
 *	                 their allocation (0 = unknown), see heap_age_step_of; so their age is at
 *	                 most the end of the capture minus time_ns
 *	TABLE_PEAK       blocks live when the live bytes of the process were at their maximum
 *	TABLE_MAPPED     mmap, munmap, mremap, brk calls of the program itself per second, by
 *	                 stack; tag.detail names the call. Not part of the heap, never added to it
 *	TABLE_GROWTH     first-touch page faults of anonymous memory per second, by stack;
 *	                 available without knowing the allocator
 *	TABLE_MEMORY     memory use of a process as the kernel reports it, at instants; no stacks
 *	TABLE_HEAP_LEVEL live blocks and bytes of a process at instants, without stacks, of the first
 *	                 minute: a hundredth of the time passed apart, so finer than the slices
 *	TABLE_SNAPSHOTS  live blocks at several times (dumps, massif's detailed snapshots); time_ns
 *	                 is the time of the snapshot. Only rows of the same snapshot may be summed
 *
 * Columns are in the order of the enums below; a table may omit columns from its end. Values of
 * sampling sources are already scaled to unbiased estimates (is_estimate is set on the columns).
 * `samples` counts the sampled blocks; `variance` sums the variances of the estimate of bytes, in
 * bytes^2 (saturating; 0 where every block was recorded), so the 95 % confidence interval of a sum
 * is sum +- 1.96 sqrt(sum of variances).
 *
 * tag.size_class: size class of the blocks of a row (heap_size_class); 0 = not distinguished.
 */
#ifndef ASSAY_MODEL_HEAP_H
#define ASSAY_MODEL_HEAP_H

#include "base/base.h"
#include "base/text/num.h"

/*
 * Slices of time of TABLE_ALLOCATED, TABLE_FREED, TABLE_FREED_PREEXISTING and TABLE_MAPPED: rows have
 * the time of the start of their slice. So that the live bytes of a program of some milliseconds are
 * known over its time, slices are short at first: 1 ms, later an eighth to a sixteenth of the time
 * passed, from 4 s on half a second. A fact of the profile holds the first slice's start; without it,
 * as in files of other tools, slices have a second.
 */
struct profile;
/* Returns start or end of the slice that contains @ns. Both count from the first slice's start. */
uint64_t heap_slice_start(uint64_t ns);
uint64_t heap_slice_end(uint64_t ns);
/* The slices of a profile. */
struct heap_slices {
	uint64_t first_ns; /* start of the first one; 0: slices have a second */
};
struct heap_slices heap_slices_of(const struct profile *p);
/* Returns the end of the slice of a row with @time_ns, on the profile's clock. */
uint64_t heap_slices_end(const struct heap_slices *s, uint64_t time_ns);
/* Sets the start of the first slice, and that ages are in ticks. The profile's start_ns is set. */
void heap_slices_set(struct profile *p, uint64_t first_ns);

/*
 * What times of a profile count: NULL: nanoseconds; else "instructions", "allocated bytes" (massif's
 * --time-unit=i and B), of which the reader takes one for a nanosecond. They are never shown as times,
 * and rates are not computed.
 */
const char *heap_time_unit(const struct profile *p);
struct num_text heap_time_text(const struct profile *p, uint64_t ns);

/* The frame of the sites that massif sums up in a tree, each below its threshold. */
#define HEAP_BELOW "[below massif's threshold]"

/*
 * Ages of live blocks: recorders keep the time of an allocation in ticks, and write rows of TABLE_LIVE
 * by steps of some ticks, so that a site has at most a thousand, however long the capture.
 */
#define HEAP_TICK_NS 125000000u
/* The step of a recording in which @passed_ns have passed; a multiple of HEAP_TICK_NS. */
uint64_t heap_age_step(uint64_t passed_ns);
/* The longest step of the rows of a profile: a second without the fact that heap_slices_set makes. */
uint64_t heap_age_step_of(const struct profile *p);

/* tag.detail of rows of TABLE_FREED. */
#define HEAP_FREED_BY_END  "process end"
#define HEAP_FREED_BY_KILL "SIGKILL"
struct table;
bool heap_is_freed_by_end(const struct profile *p, const struct table *freed, size_t row);
/* A part of those: SIGKILL ended the process. */
bool heap_is_freed_by_kill(const struct profile *p, const struct table *freed, size_t row);

/*
 * Returns TABLE_HEAP_LEVEL if it can stand for allocated less freed: one process, every allocation was
 * recorded. Else NULL.
 */
const struct table *heap_levels_of(const struct profile *p);

/* TABLE_ALLOCATED. */
enum heap_allocated_column {
	HEAP_ALLOCATED_CALLS = 0,
	HEAP_ALLOCATED_BYTES = 1,
	HEAP_ALLOCATED_SAMPLES = 2,
	HEAP_ALLOCATED_VARIANCE = 3,
	HEAP_ALLOCATED_TEMPORARY = 4, /* freed by the same thread before its next allocation */
	HEAP_ALLOCATED_TEMPORARY_BYTES = 5,
	HEAP_ALLOCATED_NR
};

/*
 * TABLE_FREED, TABLE_FREED_PREEXISTING: of frees; TABLE_LIVE, _PEAK, _SNAPSHOTS: of blocks. TABLE_HEAP_LEVEL
 * has the first two.
 */
enum heap_block_column {
	HEAP_BLOCKS = 0,
	HEAP_BYTES = 1,
	HEAP_SAMPLES = 2,
	HEAP_VARIANCE = 3,
	HEAP_BLOCK_NR
};

/* TABLE_MEMORY: bytes of a process at an instant (0 = none or unknown). */
enum heap_memory_column {
	HEAP_MEMORY_RSS = 0,
	HEAP_MEMORY_PSS = 1, /* 0: not read at this instant */
	HEAP_MEMORY_ANON = 2,
	HEAP_MEMORY_FILE = 3,
	HEAP_MEMORY_SHMEM = 4,
	HEAP_MEMORY_SWAP = 5,
	HEAP_MEMORY_STACKS = 6, /* thread stacks */
	HEAP_MEMORY_VIRTUAL = 7,
	HEAP_MEMORY_LIVE = 8, /* live heap bytes at the same time, from the heap capture */
	HEAP_MEMORY_NR
};

/*
 * Returns the size class of a block: one class per byte below 64 bytes, above that eight per power
 * of two, so a class is accurate to 12.5 %. Class 0 means "not distinguished"; a block of 0 bytes
 * is class 1.
 */
uint16_t heap_size_class(uint64_t nr_bytes);
/* Returns the smallest size of a class; its largest is one less than the next class's smallest. */
uint64_t heap_class_min(uint16_t size_class);

#endif
