/*
 * The shapes of the tables of memory (model/heap.h): columns with names and units, the same from
 * every source, so that profiles of different sources merge and every view knows them.
 */
#ifndef ASSAY_MODEL_HEAPTABLES_H
#define ASSAY_MODEL_HEAPTABLES_H

#include "base/base.h"
#include "model/profile.h"

enum heap_table_kind {
	HEAP_KIND_ALLOCATED,
	HEAP_KIND_FREED,
	HEAP_KIND_OLDER,
	HEAP_KIND_LIVE,
	HEAP_KIND_PEAK,
	HEAP_KIND_MAPPED,
	HEAP_KIND_GROWTH,
	HEAP_KIND_MEMORY,
	HEAP_KIND_SNAPSHOTS,
	HEAP_KIND_NR
};

enum heap_table_flags {
	HEAP_TABLE_ESTIMATE = 1 << 0, /* scaled up from a sample: counts and bytes are estimates */
	HEAP_TABLE_SHORT = 1 << 1,    /* "allocated" without what is known of temporary blocks */
};

/* The table's name: HEAP_TABLE_... */
const char *heap_table_name(enum heap_table_kind kind);
/* Finds or adds it; index into p->tables. flags: enum heap_table_flags. */
uint32_t heap_table(struct profile *p, enum heap_table_kind kind, unsigned flags);
/* The table in a profile, or NULL. */
const struct table *heap_table_find(const struct profile *p, enum heap_table_kind kind);

#endif
