/* Size classes; see heap.h. */
#include "base/base.h"
#include "model/heap.h"

#define LINEAR      64 /* one class per byte below this size */
#define LINEAR_LOG2 6
#define PARTS_LOG2  3 /* log2 of the number of classes per power of two */

uint16_t heap_size_class(uint64_t nr_bytes)
{
	if (nr_bytes < LINEAR)
		return (uint16_t)(nr_bytes + 1);
	unsigned log2 = 63 - (unsigned)__builtin_clzll(nr_bytes);
	unsigned part = (unsigned)(nr_bytes >> (log2 - PARTS_LOG2)) & ((1u << PARTS_LOG2) - 1);
	return (uint16_t)(LINEAR + 1 + ((log2 - LINEAR_LOG2) << PARTS_LOG2) + part);
}

uint64_t heap_class_min(uint16_t size_class)
{
	if (size_class <= LINEAR)
		return size_class ? size_class - 1u : 0;
	unsigned i = size_class - (LINEAR + 1u);
	unsigned log2 = LINEAR_LOG2 + (i >> PARTS_LOG2);
	uint64_t part = i & ((1u << PARTS_LOG2) - 1);
	return log2 > 63 ? 0 : ((uint64_t)1 << log2) + (part << (log2 - PARTS_LOG2));
}
