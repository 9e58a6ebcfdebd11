/*
 * Ranges of code that come, move and go: what perf maps and jitdump files fill and perfmap_find
 * asks. An interval tree laid over an array sorted by start: each element also knows the furthest
 * end among the elements of its half, so that all ranges over an address are found in
 * O(log n + found) however they overlap.
 */
#ifndef ASSAY_SYMBOL_JITCODE_H
#define ASSAY_SYMBOL_JITCODE_H

#include "base/base.h"
#include "base/buf.h"
#include "base/sv.h"
#include "base/vec.h"

#define JITCODE_NONE UINT32_MAX

struct jitcode_line {
	uint32_t at; /* bytes from the function's start */
	uint32_t line;
	uint32_t file_at; /* in names */
	uint32_t nr_file_bytes;
};

struct jitcode_range {
	uint64_t start;
	uint64_t end;
	uint64_t max_end; /* of its subtree */
	uint64_t time_ns; /* from when on; 0 = always */
	uint32_t seq;     /* the highest one wins */
	uint32_t name_at; /* in names; JITCODE_NONE: code was taken away from here */
	uint32_t nr_name_bytes;
	uint32_t lines; /* index of the first; nr_lines of them, ascending */
	uint32_t nr_lines;
};

struct perfmap {
	VEC(struct jitcode_range) ranges;
	VEC(struct jitcode_line) lines;
	struct buf names;
	uint64_t nr_bad;
	bool is_timed;
};

#define JITCODE_RANGES_MAX     ((size_t)1 << 23)
#define JITCODE_LINES_MAX      ((size_t)1 << 25)
#define JITCODE_NAME_BYTES_MAX ((size_t)4096)

/* Copies a name (cut at 4 kB); its place, or JITCODE_NONE when all names are too many. */
uint32_t jitcode_add_name(struct perfmap *m, struct sv name, uint32_t *ret_nr_bytes);
/* seq is set here; false (and counted as bad) for an empty range or one too many. */
bool jitcode_add(struct perfmap *m, struct jitcode_range r);
/* Sorts; afterwards the map only answers. */
void jitcode_seal(struct perfmap *m);

#endif
