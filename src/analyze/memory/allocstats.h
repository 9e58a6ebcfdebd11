/*
 * What an allocator says of itself, as a report: how much of what it holds is in use, where the
 * rest is (places that are empty in slabs, by size class; free pages that it keeps; its own
 * books), and one sentence that says what to make of it.
 */
#ifndef ASSAY_ANALYZE_MEMORY_ALLOCSTATS_H
#define ASSAY_ANALYZE_MEMORY_ALLOCSTATS_H

#include "analyze/report.h"
#include "base/base.h"
#include "model/memory.h"

/* Whose they are. */
struct allocstats_of {
	const char *process;   /* "redis-server (4242)" */
	const char *allocator; /* "jemalloc 5.3.0, static, prefix _rjem_" */
	uint64_t rss_bytes;    /* of the process, by the kernel; 0 = not known */
};

/* Adds two tables, notes and facts. @max_rows: of classes, by what is unused in them; 0 = all. */
void allocstats_report(struct report *r, const struct allocstats_of *of, const struct allocstats *s,
		       size_t max_rows);

/* Empty places in the slabs of a class; 0 for large ones. Saturates. */
uint64_t allocstats_unused(const struct allocstats_class *c);

#endif
