/*
 * A reading of memory (`assay watch`) as a line of a table for people, of CSV, or of JSON. One list
 * of fields makes all three (docs/formats/watch.md). Numbers of CSV and JSON are plain: bytes,
 * seconds, percent; what is not known is empty, or null.
 */
#ifndef ASSAY_RENDER_MEMLINES_H
#define ASSAY_RENDER_MEMLINES_H

#include "base/base.h"
#include "base/buf.h"
#include "model/memory.h"

enum memlines_form { MEMLINES_TABLE, MEMLINES_CSV, MEMLINES_JSON };

struct memlines {
	enum memlines_form form;
	uint64_t start_ns;      /* time 0 */
	uint64_t machine_bytes; /* 0 = not known */
	unsigned columns;       /* of the table; 0 = as wide as it comes */
	const char *group;      /* the cgroup's path */
	bool has_group;
	bool has_allocator;
};

/* @t NULL: the line of headings; JSON has none. */
void memlines_add(struct buf *to, const struct memlines *l, const struct memreading *t);
/* Two lines on a reading, above its table on a terminal. @pid: of the only process. */
void memlines_head(struct buf *to, const struct memlines *l, const struct memreading *t,
		   const char *name, int32_t pid);

#endif
