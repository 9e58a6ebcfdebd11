/*
 * Report of `assay watch` at the end: growth, verdict and RSS breakdown; and, during the run, the
 * verdict so far.
 */
#ifndef ASSAY_ANALYZE_MEMORY_WATCHPAGE_H
#define ASSAY_ANALYZE_MEMORY_WATCHPAGE_H

#include "analyze/memory/verdict.h"
#include "analyze/report.h"
#include "base/base.h"
#include "base/vec.h"
#include "model/memory.h"
#include "model/profile.h"

/* All pointers are borrowed. */
struct watchpage {
	const char *target;
	const char *allocator;         /* its name, or NULL */
	bool maps_itself;              /* it allocates by mmap */
	const char *group;             /* path of the cgroup, or NULL */
	const struct profile *profile; /* sealed, with the table "memory" */
	uint64_t start_ns;
	uint64_t machine_bytes;      /* 0: not known */
	uint64_t every_ns;           /* intended time between readings */
	VEC(struct mempoint) points; /* filled by watchpage_add; owned */
	struct memreading last;      /* the latest reading */
	const struct memmaps *maps;  /* of each process */
	size_t nr_maps;              /* number of processes */
	const struct memheap *heap;  /* of glibc's malloc, read with maps */
	uint64_t maps_ns;            /* time at which maps were read */
	uint32_t nr_unseen;          /* threads whose stacks were not found */
	uint64_t max_rows;           /* 0: all */
	bool shows_mappings;
	uint64_t
		end_peak_bytes; /* most resident of an ended command, by the kernel; 0 = not known */
};

void watchpage_release(struct watchpage *p);
void watchpage_add(struct watchpage *p, const struct memreading *t);
/* Adds an answer of the allocator after the last reading to that one. */
void watchpage_set_allocator(struct watchpage *p, const struct memallocator *a);
/* Verdict on the readings so far; evidence in the arena. */
struct memverdict watchpage_verdict(const struct watchpage *p, struct arena *a);
void watchpage_report(struct report *r, const struct watchpage *p, const struct memverdict *v);

/* Appends the RSS breakdown as text for FACT_MEMORY_PARTS; nothing if it is not known. */
void watchpage_save(struct buf *to, const struct watchpage *p);
/* Adds the breakdown of a recording of `assay watch`, if it has one. */
void watchpage_saved_parts(struct report *r, const struct profile *p, uint64_t max_rows);

#endif
