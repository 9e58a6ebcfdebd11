/*
 * Records page faults (first accesses to memory) and memory-mapping calls by stack: the heap method
 * GROWTH, which changes nothing in the target (bpf/growth.bpf.h). The source in capture/io/io.h
 * delivers the rows (IO_PART_GROWTH) of tables "growth" and "mapped" (model/heap.h).
 */
#ifndef ASSAY_CAPTURE_HEAP_GROWTH_H
#define ASSAY_CAPTURE_HEAP_GROWTH_H

#include "base/base.h"
#include "base/err.h"

struct assay_bpf;
struct btf;
struct heapgrowth;

enum heapgrowth_flags {
	HEAPGROWTH_FAULTS = 1 << 0,
	/* With faults. The recorder of a heap fills table "mapped" itself, without malloc's own calls. */
	HEAPGROWTH_CALLS = 1 << 1,
};

/*
 * @flags: enum heapgrowth_flags. Call between engine_open and engine_load: disables programs that are
 * not wanted or not supported. @types: engine_kernel_types.
 * Returns whether the kernel reports the size of each fault's allocation; if not, a fault counts as
 * one page.
 */
bool heapgrowth_choose(struct assay_bpf *skel, const struct btf *types, unsigned flags);
/*
 * Attaches the programs, after engine_load. *ret_g must be freed also after an error. Without access
 * to tracefs page faults are recorded, but no calls.
 */
int heapgrowth_attach(struct heapgrowth **ret_g, struct assay_bpf *skel, unsigned flags,
		      struct err *err);
/* Why mapping calls are not recorded; NULL: they are, or are not wanted. Borrowed. */
const char *heapgrowth_no_calls(const struct heapgrowth *g);
/* Detaches. NULL is fine. */
void heapgrowth_free(struct heapgrowth *g);

#endif
