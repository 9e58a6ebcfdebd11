/*
 * Exact counts of allocations by size, which a recorder keeps beside its samples: model/
 * heapcalibrate.h scales the samples by them. Class 0 has blocks below 16 bytes, class i those of
 * 2^(i + 3) bytes up to twice that, the last class all larger ones.
 */
#ifndef ASSAY_WIRE_HEAP_COUNT_H
#define ASSAY_WIRE_HEAP_COUNT_H

#include "wire_types.h"

#define HEAP_COUNT_CLASSES 24u

struct heap_class_count {
	wire_u64 nr;
	wire_u64 nr_bytes; /* requested */
};

#ifndef __bpf__
static inline unsigned heap_count_class(wire_u64 nr_bytes)
{
	unsigned i = 60u - (unsigned)__builtin_clzll(nr_bytes | 8);
	return i < HEAP_COUNT_CLASSES ? i : HEAP_COUNT_CLASSES - 1;
}
#endif

#endif
