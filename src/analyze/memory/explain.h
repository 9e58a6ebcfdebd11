/*
 * Explained RSS: the parts that somebody can name, against what the kernel reports. Everything
 * resident is put into exactly one part, so the parts add up to the sum over the mappings; what
 * nobody can name is the part "[unexplained]".
 *
 * An allocator that says how much it holds in memory explains so much of the anonymous memory that
 * nothing else explains (it does not say where): the rest stays unexplained. Page tables are the
 * kernel's, not part of RSS: they stand apart.
 */
#ifndef ASSAY_ANALYZE_MEMORY_EXPLAIN_H
#define ASSAY_ANALYZE_MEMORY_EXPLAIN_H

#include "analyze/report.h"
#include "base/base.h"
#include "base/vec.h"
#include "model/memory.h"

enum memexplain_kind {
	MEMEXPLAIN_HEAP = 0,  /* [heap], arenas and large blocks of malloc */
	MEMEXPLAIN_ALLOCATOR, /* what an allocator says it holds */
	MEMEXPLAIN_RUNTIME,   /* heaps of Go, V8 */
	MEMEXPLAIN_STACKS,
	MEMEXPLAIN_CODE,
	MEMEXPLAIN_DATA,  /* data of binaries: .data, .bss, .rodata */
	MEMEXPLAIN_FILES, /* other mapped files */
	MEMEXPLAIN_SHMEM,
	MEMEXPLAIN_JIT,
	MEMEXPLAIN_NAMED, /* anonymous with a name that the program gave it */
	MEMEXPLAIN_KERNEL,
	MEMEXPLAIN_PRESUMED, /* an allocator's by elimination: not counted as explained */
	MEMEXPLAIN_UNKNOWN,  /* anonymous memory that nobody named */
	MEMEXPLAIN_NR
};

struct memexplain_part {
	enum memexplain_kind kind;
	const char *name; /* of the file, "glibc: arenas of threads"...; borrowed while adding */
	uint64_t nr_mappings;
	uint64_t rss_bytes;
	uint64_t pss_bytes;
	uint64_t anon_bytes; /* of rss: private copies */
	uint64_t swap_bytes;
	uint64_t virtual_bytes;
};

struct memexplain;

struct memexplain *memexplain_new(void);
void memexplain_free_p(struct memexplain **e);
/* One mapping, or a part of it. Those of the same kind and name are added up. */
void memexplain_add(struct memexplain *e, const struct memexplain_part *part);
/* All mappings of a process; memanon_classify_all said whose anonymous ones are. */
void memexplain_maps(struct memexplain *e, const struct memmaps *m);
/* What the allocator holds in memory, and its name. Once, after all parts. */
void memexplain_allocator(struct memexplain *e, const char *name, uint64_t resident_bytes);

/*
 * The anonymous memory that nothing explains is likely of this allocator, which is there and
 * maps its memory itself, but was not asked. Once, after all parts.
 */
void memexplain_presume(struct memexplain *e, const char *name);

struct memexplain_sum {
	uint64_t rss_bytes;       /* over all parts */
	uint64_t explained_bytes; /* by evidence */
	uint64_t presumed_bytes;
};
struct memexplain_sum memexplain_sum(const struct memexplain *e);
/*
 * Table "memory_parts": kind and name, mappings, bytes, share of the whole, largest
 * first; rows beyond @max_rows (0 = all) become "<other>"; a note with the share explained, and
 * with
 * @rss_bytes, what the kernel's counters say, where that is more.
 */
void memexplain_report(struct report *r, const struct memexplain *e, uint64_t rss_bytes,
		       uint64_t page_table_bytes, uint64_t max_rows);

#endif
