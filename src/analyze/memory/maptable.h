/* Table of the mappings of processes, like pmap -x. */
#ifndef ASSAY_ANALYZE_MEMORY_MAPTABLE_H
#define ASSAY_ANALYZE_MEMORY_MAPTABLE_H

#include "analyze/report.h"
#include "base/base.h"
#include "model/memory.h"

/*
 * Adds table "mappings" of @nr_maps processes, sorted by address: all mappings, or the @max_rows
 * with the largest RSS.
 */
void maptable_report(struct report *r, const struct memmaps *maps, size_t nr_maps,
		     uint64_t max_rows);

#endif
