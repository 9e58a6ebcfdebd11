/* Single mappings of processes, as pmap -x shows them. */
#ifndef ASSAY_ANALYZE_MEMORY_MAPTABLE_H
#define ASSAY_ANALYZE_MEMORY_MAPTABLE_H

#include "analyze/report.h"
#include "base/base.h"
#include "model/memory.h"

/*
 * Table "mappings" of @nr_maps processes: every mapping, in order of addresses, or the @max_rows
 * with the largest RSS.
 */
void maptable_report(struct report *r, const struct memmaps *maps, size_t nr_maps,
		     uint64_t max_rows);

#endif
