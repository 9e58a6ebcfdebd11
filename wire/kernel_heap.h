/*
 * Allocations seen by uprobes on the functions of an allocator (bpf/heap.bpf.h): one record for
 * each allocation and each free, in a ring of their own. With sampling, only sampled blocks and
 * their frees are sent.
 */
#ifndef ASSAY_WIRE_KERNEL_HEAP_H
#define ASSAY_WIRE_KERNEL_HEAP_H

#include "heap_count.h"
#include "kernel_record.h"

/* The cookie of a probe: enum heap_shape (heap_wire.h), and the index of the function. */
#define HEAP_COOKIE(shape, site)  ((wire_u64)(site) << 8 | (shape))
#define HEAP_COOKIE_SHAPE(cookie) ((wire_u32)(cookie)&0xff)
#define HEAP_COOKIE_SITE(cookie)  ((wire_u32)((cookie) >> 8) & 0xff)

/* RECORD_ALLOC, RECORD_FREE */
struct kernel_heap {
	struct kernel_record head; /* time_ns: return of the allocation, entry of the free */
	wire_u64 block;            /* address */
	wire_u64 nr_bytes;         /* requested; FREE: 0 */
	wire_u64 stack;            /* stack reference; FREE: 0 */
};

/* Key of the set of sampled blocks. */
struct kernel_heap_block {
	wire_u64 block;
	wire_u32 tgid;
	wire_u32 pad;
};

/* Sums over all processes. */
struct kernel_heap_counts {
	wire_u64 nr_hits; /* runs of the probes at function entries */
	wire_u64 nr_frees;
	wire_u64 nr_dropped;    /* records for which the ring had no room */
	wire_u64 dropped_bytes; /* allocated bytes in dropped records */
	/* Sampled blocks that could not be added to the full set: their frees are not recorded. */
	wire_u64 nr_no_room;
	/* Allocation calls: exact, also with sampling. */
	struct heap_class_count classes[HEAP_COUNT_CLASSES];
};

#ifndef __bpf__
_Static_assert(sizeof(struct kernel_heap) == 48, "heap record");
_Static_assert(sizeof(struct kernel_heap_block) == 16, "heap block key");
#endif

#endif
