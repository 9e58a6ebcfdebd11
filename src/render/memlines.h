/*
 * Writes a memory reading (`assay watch`) as a line of a text table, of CSV, or of JSON. All three
 * come from one list of fields (docs/formats/watch.md). CSV and JSON have plain numbers: bytes,
 * seconds, percent; an unknown value is empty in CSV and null in JSON. The table has one unit for each
 * column, and the columns that matter most, as many as fit.
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
	unsigned columns;       /* maximum width of the table; 0 = unlimited */
	const char *group;      /* the cgroup's path */
	bool has_group;
	bool has_allocator;
	int refused; /* -errno of the files that need the right to trace; 0 = readable */
};

/* Appends one reading; @t NULL: the heading, which JSON does not have. */
void memlines_add(struct buf *to, const struct memlines *l, const struct memreading *t);
/*
 * Appends what a terminal shows above the table, wrapped. @pid is printed if @t is of a single
 * process.
 */
void memlines_head(struct buf *to, const struct memlines *l, const struct memreading *t,
		   const char *name, int32_t pid);

#endif
