/*
 * What `assay watch` says of a target at the end: growth, verdict, what the RSS consists of; and
 * while it runs the verdict so far.
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
	bool maps_itself;              /* it takes its memory by mmap */
	const char *group;             /* path of the cgroup */
	const struct profile *profile; /* sealed, with the table "memory" */
	uint64_t start_ns;
	uint64_t machine_bytes;      /* 0 = not known */
	VEC(struct mempoint) points; /* by watchpage_add; owned */
	struct memreading last;
	const struct memmaps *maps; /* by process */
	size_t nr_maps;
	uint64_t maps_ns;   /* when they were read */
	uint32_t nr_unseen; /* threads whose stacks were not found */
	uint64_t max_rows;  /* 0 = all */
	bool shows_mappings;
};

void watchpage_release(struct watchpage *p);
void watchpage_add(struct watchpage *p, const struct memreading *t);
/* Evidence in the arena. */
struct memverdict watchpage_verdict(const struct watchpage *p, struct arena *a);
void watchpage_report(struct report *r, const struct watchpage *p, const struct memverdict *v);

#endif
