/*
 * Address ranges of JIT code, which is loaded, moved and freed over time. The readers of perf maps
 * and jitdump files add ranges; perfmap_find (symbol/perfmap.h) searches them.
 *
 * The ranges form an interval tree stored in an array sorted by start: each element also holds the
 * largest end of its subtree, so all ranges that cover an address are found in O(log n + found),
 * however they overlap.
 */
#ifndef ASSAY_SYMBOL_JITCODE_H
#define ASSAY_SYMBOL_JITCODE_H

#include "base/base.h"
#include "base/buf.h"
#include "base/sv.h"
#include "base/vec.h"

#define JITCODE_NONE UINT32_MAX

struct jitcode_line {
	uint32_t at; /* offset in bytes from the function's start */
	uint32_t line;
	uint32_t file_at; /* offset in names */
	uint32_t nr_file_bytes;
};

struct jitcode_range {
	uint64_t start;
	uint64_t end;
	uint64_t max_end; /* largest end in the subtree */
	uint64_t time_ns; /* valid from then on; 0 = always */
	uint32_t seq;     /* order of addition; of overlapping ranges the highest one wins */
	uint32_t name_at; /* offset in names; JITCODE_NONE: the code here was moved away */
	uint32_t nr_name_bytes;
	uint32_t lines; /* index of the first of nr_lines lines, ascending by address */
	uint32_t nr_lines;
};

struct perfmap {
	VEC(struct jitcode_range) ranges;
	VEC(struct jitcode_line) lines;
	struct buf names;
	uint64_t nr_bad; /* invalid or incomplete lines and records */
	bool is_timed;   /* time_ns of the ranges is valid: a jitdump without TSC time stamps */
};

#define JITCODE_RANGES_MAX     ((size_t)1 << 23)
#define JITCODE_LINES_MAX      ((size_t)1 << 25)
#define JITCODE_NAME_BYTES_MAX ((size_t)4096)

/*
 * Copies a name, truncated to 4 kB. Returns its offset in names, or JITCODE_NONE when the total
 * size of names reaches its limit.
 */
uint32_t jitcode_add_name(struct perfmap *m, struct sv name, uint32_t *ret_nr_bytes);
/*
 * Adds a range; seq is set by this function. Returns false and increments nr_bad for an empty range
 * or past JITCODE_RANGES_MAX.
 */
bool jitcode_add(struct perfmap *m, struct jitcode_range r);
/* Sorts the ranges. Nothing may be added afterwards. */
void jitcode_seal(struct perfmap *m);

#endif
