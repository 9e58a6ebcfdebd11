/*
 * Memory touched for the first time, and calls that map memory, by stack: the method of a heap that
 * needs nothing inside the target (bpf/growth.bpf.h). Part of the source io.h, which delivers the
 * rows (IO_PART_GROWTH): tables "growth" and "mapped" (model/heap.h).
 */
#ifndef ASSAY_CAPTURE_HEAP_GROWTH_H
#define ASSAY_CAPTURE_HEAP_GROWTH_H

#include "base/base.h"
#include "base/err.h"

struct assay_bpf;
struct heapgrowth;

/*
 * Between engine_open and engine_load: leaves out what is not wanted or not there. Says whether the
 * kernel tells what it hands out at each fault; else a fault counts as one page.
 */
bool heapgrowth_choose(struct assay_bpf *skel, bool is_wanted);
/* After engine_load. Also after an error *ret_g is to be freed. */
int heapgrowth_attach(struct heapgrowth **ret_g, struct assay_bpf *skel, struct err *err);
/* Detaches. NULL is fine. */
void heapgrowth_free(struct heapgrowth *g);

#endif
