/*
 * Heap dumps of jemalloc (prof.dump, prof_final, lg_prof_interval, prof_gdump): "heap_v2".
 * docs/formats/jemalloc-heap.md has the grammar. Reader only.
 *
 *	heap_v2/524288
 *	  t*: 28106: 56637512 [0: 0]          of all: live blocks, their bytes [allocated so far]
 *	  t0: 28106: 56637512 [0: 0] name     of a thread
 *	@ 0x55d1 0x55d0 ...                   a stack, leaf first
 *	  t*: 539: 120987 [0: 0]
 *	  t0: ...
 *	MAPPED_LIBRARIES:                     /proc/PID/maps
 *
 * Numbers are sampled, and which rule makes them whole is not written down: up to 5.2 a row holds
 * what was seen, and is scaled by its mean size; 5.3 scales each block by its own size and then
 * writes such numbers that the same formula, applied to the row, gives its result. So one formula
 * (dumpmaps_unbias) is right for both, if it is applied to each row before anything is added up;
 * numbers as they stand in the file mean nothing. The rows of a stack's threads are scaled each,
 * then fitted to the stack's own row ("t*"), so that totals are those of jeprof.
 *
 * Fills "live", and "allocated" where the program ran with prof_accum:true. Threads become tasks:
 * jemalloc numbers them from 0, which is no thread id of the kernel's.
 */
#ifndef ASSAY_FORMAT_HEAP_JEMALLOCHEAP_H
#define ASSAY_FORMAT_HEAP_JEMALLOCHEAP_H

#include "base/base.h"
#include "base/sv.h"

struct jemallocheap_options {
	int32_t pid; /* the process that was dumped, as the file's name says; 0 = unknown */
};

/* The parts of "<prefix>.<pid>.<sequence>.<kind>[number].heap". */
struct jemallocheap_name {
	struct sv prefix; /* with its folder */
	int32_t pid;
	uint64_t sequence; /* grows by one a dump */
	char kind;         /* f: final, i: interval, m: asked for, u: growth */
};
bool jemallocheap_parse_name(struct sv path, struct jemallocheap_name *ret_n);

#endif
