/*
 * Report of an allocator's own statistics: how much of its resident memory is in use, where the
 * rest is (free slots in slabs, by size class; free pages kept; metadata), and a one-sentence
 * conclusion.
 */
#ifndef ASSAY_ANALYZE_MEMORY_ALLOCSTATS_H
#define ASSAY_ANALYZE_MEMORY_ALLOCSTATS_H

#include "analyze/report.h"
#include "base/base.h"
#include "model/memory.h"

/* The process and allocator that the statistics are of. */
struct allocstats_of {
	const char *process;   /* "redis-server (4242)" */
	const char *allocator; /* "jemalloc 5.3.0, static, prefix _rjem_" */
	uint64_t rss_bytes;    /* of the process, as the kernel counts it; 0: not known */
};

/*
 * Adds two tables, notes and facts. @max_rows: number of size classes to show, those with most
 * unused bytes; 0: all.
 */
void allocstats_report(struct report *r, const struct allocstats_of *of, const struct allocstats *s,
		       size_t max_rows);

/* Bytes of free slots in the slabs of a size class; 0 for large classes. Saturates. */
uint64_t allocstats_unused(const struct allocstats_class *c);

#endif
