/*
 * Reader of jemalloc's heap dumps, format "heap_v2" (prof.dump, prof_final, lg_prof_interval,
 * prof_gdump). Grammar: docs/formats/jemalloc-heap.md.
 *
 *	heap_v2/524288
 *	  t*: 28106: 56637512 [0: 0]          all threads: live blocks: bytes [allocated: bytes]
 *	  t0: 28106: 56637512 [0: 0] name     one thread
 *	@ 0x55d1 0x55d0 ...                   a stack, leaf first
 *	  t*: 539: 120987 [0: 0]
 *	  t0: ...
 *	MAPPED_LIBRARIES:                     /proc/PID/maps
 *
 * The numbers are those of a sample. In dumps of jemalloc up to 5.2 a row counts the sampled
 * blocks; the reader scales it by the row's mean block size (dumpmaps_unbias). jemalloc 5.3
 * computes the estimate itself, block by block, and writes the numbers that dumpmaps_unbias scales
 * to this estimate. So dumpmaps_unbias is correct for both, if it is applied to each row before
 * rows are summed. The rows of a stack's threads are scaled one by one, then adjusted so that their
 * sum is the scaled row of all threads ("t*"). Totals are then equal to those of jeprof.
 *
 * Fills TABLE_LIVE, and TABLE_ALLOCATED if the program ran with prof_accum:true. Threads become
 * tasks. jemalloc numbers them from 0; the numbers are not kernel thread ids.
 */
#ifndef ASSAY_FORMAT_HEAP_JEMALLOCHEAP_H
#define ASSAY_FORMAT_HEAP_JEMALLOCHEAP_H

#include "base/base.h"
#include "base/sv.h"

struct jemallocheap_options {
	int32_t pid; /* pid of the dumped process, from the file name; 0 = unknown */
};

/* The parts of a file name "<prefix>.<pid>.<sequence>.<kind>[number].heap". */
struct jemallocheap_name {
	struct sv prefix; /* with the directory */
	int32_t pid;
	uint64_t sequence; /* incremented with each dump */
	char kind;         /* f: final, i: interval, m: by prof.dump, u: new peak (prof_gdump) */
};
bool jemallocheap_parse_name(struct sv path, struct jemallocheap_name *ret_n);

#endif
