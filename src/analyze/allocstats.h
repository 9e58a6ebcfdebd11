/*
 * What an allocator says of itself, as a report: how much of what it holds is in use, where the
 * rest is (places that are empty in slabs, by size class; free pages that it keeps; its own
 * books), and one sentence that says what to make of it.
 */
#ifndef ASSAY_ANALYZE_ALLOCSTATS_H
#define ASSAY_ANALYZE_ALLOCSTATS_H

#include "analyze/report.h"
#include "base/base.h"

#define ALLOCSTATS_UNKNOWN UINT64_MAX

struct allocstats_class {
	uint64_t size_bytes;
	uint64_t nr_live;  /* blocks in use */
	uint64_t nr_slabs; /* 0: a large class, blocks have pages of their own */
	uint64_t slab_bytes;
	uint32_t nr_per_slab;
};

struct allocstats {
	const char *process;   /* "redis-server (4242)" */
	const char *allocator; /* "jemalloc 5.3.0, static, prefix _rjem_" */
	uint64_t allocated_bytes;
	uint64_t active_bytes; /* pages with at least one block in use */
	uint64_t metadata_bytes;
	uint64_t resident_bytes; /* active, metadata, free pages that are kept */
	uint64_t mapped_bytes;
	uint64_t retained_bytes; /* address space only */
	uint64_t dirty_bytes;
	uint64_t muzzy_bytes;
	uint64_t tcache_bytes; /* of threads' caches; UNKNOWN */
	uint64_t rss_bytes;    /* of the process, by the kernel; 0 = not known */
	int64_t dirty_decay_ms;
	bool has_background_thread;
	uint32_t nr_arenas;
	uint32_t nr_threads;
	const struct allocstats_class *classes;
	size_t nr_classes;
};

/* Adds two tables, notes and facts. @max_rows: of classes, by what is unused in them; 0 = all. */
void allocstats_report(struct report *r, const struct allocstats *s, size_t max_rows);

/* Empty places in the slabs of a class; 0 for large ones. Saturates. */
uint64_t allocstats_unused(const struct allocstats_class *c);

#endif
