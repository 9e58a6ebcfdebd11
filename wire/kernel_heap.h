/*
 * Allocations seen by probes on the functions of an allocator (bpf/heap.bpf.h): one record each,
 * in a ring of their own. Sampled, only blocks that were chosen are told, and their frees.
 */
#ifndef ASSAY_WIRE_KERNEL_HEAP_H
#define ASSAY_WIRE_KERNEL_HEAP_H

#include "kernel_record.h"

/* The cookie of a probe: enum heap_shape (heap_wire.h), and the number of the function. */
#define HEAP_COOKIE(shape, site)  ((wire_u64)(site) << 8 | (shape))
#define HEAP_COOKIE_SHAPE(cookie) ((wire_u32)(cookie)&0xff)
#define HEAP_COOKIE_SITE(cookie)  ((wire_u32)((cookie) >> 8) & 0xff)

/* RECORD_ALLOC, RECORD_FREE */
struct kernel_heap {
	struct kernel_record head; /* time_ns: an allocation's return, a free's call */
	wire_u64 block;
	wire_u64 nr_bytes; /* FREE: 0 */
	wire_u64 stack;    /* FREE: 0 */
};

struct kernel_heap_block {
	wire_u64 block;
	wire_u32 tgid;
	wire_u32 pad;
};

/* Sums over all processes. */
struct kernel_heap_counts {
	wire_u64 nr_hits;   /* of probes at entries */
	wire_u64 nr_allocs; /* calls that ask for memory: exact, also where sampled */
	wire_u64 nr_bytes;
	wire_u64 nr_frees;
	wire_u64 nr_dropped; /* records for which the ring had no room */
	wire_u64 dropped_bytes;
	wire_u64 nr_no_room; /* sampled, but not in the table: its free will not be seen */
};

#ifndef __bpf__
_Static_assert(sizeof(struct kernel_heap) == 48, "heap record");
_Static_assert(sizeof(struct kernel_heap_block) == 16, "heap block key");
#endif

#endif
