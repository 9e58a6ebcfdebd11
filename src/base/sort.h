/*
 * Sorting of many small records by a number that each begins with, without comparing: a binary
 * has 10^5 symbols, and qsort takes five times as long.
 */
#ifndef ASSAY_BASE_SORT_H
#define ASSAY_BASE_SORT_H

#include "base/base.h"

/*
 * By the first 8 bytes (at least so many has a record) in ascending order, as far as they are in
 * @key_mask; stable. Takes as much memory again, unless the records are in order already.
 */
void sort_records(void *records, size_t n, size_t record_bytes, uint64_t key_mask);

#endif
