/*
 * Reader and writer of massif.out, the files of valgrind's massif, which ms_print and
 * massif-visualizer show. Grammar: docs/formats/massif.md.
 *
 *	desc: --stacks=yes			three lines, then snapshots
 *	cmd: ./prog
 *	time_unit: ms
 *	snapshot=3
 *	time=125
 *	mem_heap_B=7072472			useful bytes, then the allocator's own, then stacks
 *	heap_tree=peak				or detailed, or empty
 *	n2: 7072472 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.
 *	 n1: 7072200 0x1091B6: leaf_alloc (t1.c:5)
 *
 * Reading: each snapshot becomes a row of "memory" (live heap, thread stacks, and as anonymous
 * memory their sum plus the allocator's overhead). The trees of detailed snapshots become
 * "snapshots"; the last one also "live", the one of the peak also "peak". Trees have no numbers of
 * blocks (0); massif sums up sites below a threshold, these become one frame. Time units other than
 * ms (instructions, bytes) are treated as nanoseconds and named in FACT_MASSIF_UNIT.
 *
 * Writing: live bytes at the ends of slices, computed from allocations and frees, and between them from
 * "heap-level" (or all from "snapshots", or from "live"), in at most 100 snapshots, those nearest to
 * their neighbours dropped as massif does; they include the exact peak with its tree. The peak, the end
 * and some snapshots in between have trees; sites below 1 % are summed up. Bytes of thread stacks
 * come from "memory".
 */
#ifndef ASSAY_FORMAT_HEAP_MASSIF_H
#define ASSAY_FORMAT_HEAP_MASSIF_H

#endif
