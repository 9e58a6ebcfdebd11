/*
 * Radix sort of many small records by a 64-bit number at the start of each record. A binary has
 * 10^5 symbols; qsort takes five times as long.
 */
#ifndef ASSAY_BASE_SORT_H
#define ASSAY_BASE_SORT_H

#include "base/base.h"

/*
 * Sorts ascending by the first 8 bytes of each record (record_bytes >= 8), masked with @key_mask;
 * stable. Allocates n * record_bytes temporarily, unless the records are already sorted.
 */
void sort_records(void *records, size_t n, size_t record_bytes, uint64_t key_mask);

#endif
