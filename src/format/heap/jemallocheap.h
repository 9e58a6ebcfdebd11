/*
 * Reader of jemalloc's heap dumps, format "heap_v2" (prof.dump, prof_final, lg_prof_interval,
 * prof_gdump). Grammar: docs/formats/jemalloc-heap.md.
 *
 *	heap_v2/524288
 *	  t*: 28106: 56637512 [0: 0]          all threads: live blocks, bytes [allocated: the same]
 *	  t0: 28106: 56637512 [0: 0] name     one thread
 *	@ 0x55d1 0x55d0 ...                   a stack, leaf first
 *	  t*: 539: 120987 [0: 0]
 *	  t0: ...
 *	MAPPED_LIBRARIES:                     /proc/PID/maps
 *
 * The numbers are those of a sample. Up to 5.2 a row contains the sampled blocks and must be scaled
 * by its mean size. 5.3 scales each block by its own size, then writes numbers for which the same
 * formula, applied to the row, gives that result. So one formula (dumpmaps_unbias) is correct for
 * both, if it is applied to each row before rows are summed. Rows of a stack's threads are scaled
 * one by one, then adjusted to the stack's row of all threads ("t*"), so that totals are those of
 * jeprof.
 *
 * Fills "live", and "allocated" if the program ran with prof_accum:true. Threads become tasks;
 * jemalloc numbers them from 0, these are not kernel thread ids.
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
