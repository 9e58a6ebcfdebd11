/*
 * massif.out, the files of valgrind's massif, which ms_print and massif-visualizer show.
 * docs/formats/massif.md has the grammar.
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
 * Read: every snapshot is a row of "memory" (live heap; thread stacks; anonymous: these and what
 * the allocator adds), the trees of detailed ones are "snapshots", the last of them is "live", that
 * of the peak is "peak". Trees have no counts of blocks (0), and leave out what is below a
 * threshold, which becomes a frame of its own. Units other than ms (instructions, bytes) count as
 * nanoseconds; FACT_MASSIF_UNIT says so.
 *
 * Written: live bytes by second, from what was allocated and freed in it (or from "snapshots", or
 * from "live" alone), with at most 100 snapshots: the peak among them, exact, with its tree. Trees
 * are kept at the peak, at the end and at some in between; sites below 1 % are put together. What
 * threads' stacks take comes from "memory".
 */
#ifndef ASSAY_FORMAT_HEAP_MASSIF_H
#define ASSAY_FORMAT_HEAP_MASSIF_H

#define MASSIF_BELOW "[below massif's threshold]"

#endif
