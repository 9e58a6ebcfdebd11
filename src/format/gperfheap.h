/*
 * Heap profiles of gperftools (HEAPPROFILE, HeapProfilerDump) and those that tcmalloc samples
 * (MallocExtension's heap and growth). docs/formats/gperftools-heap.md has the grammar.
 * Reader only.
 *
 *	heap profile:  1246:  8800744 [  1246:  8800744] @ heapprofile
 *	     1:   81920 [     1:   81920] @ 0x7f21 0x7f20 ...	live [allocated] @ stack, leaf first
 *	MAPPED_LIBRARIES:
 *
 * What follows the "@" of the first line says how the numbers came about:
 *	heapprofile	every allocation: "live" and "allocated" are exact
 *	..._v2/N	a Poisson sample with N bytes in between: each row is scaled by its mean
 *			size before any sum (dumpmaps_unbias)
 *	heap/N		the older sample: a block of s bytes was seen with s / (N / 2)
 *	growth...	what the allocator got from the system, by stack: "mapped"
 * Without an "@", equal numbers before and in the brackets mean the older sample with 128 KiB.
 */
#ifndef ASSAY_FORMAT_GPERFHEAP_H
#define ASSAY_FORMAT_GPERFHEAP_H

#include "base/base.h"
#include "base/err.h"
#include "base/sv.h"
#include "model/profile.h"

struct format_input;
struct format_options;

int gperfheap_sniff(struct sv head);
int gperfheap_read(struct profile *p, const struct format_input *in,
		   const struct format_options *options, struct err *err);

#endif
