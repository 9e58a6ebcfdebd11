/*
 * RSS breakdown: assigns all resident memory of a process to named parts. Everything resident
 * belongs to exactly one part, so the parts add up to the sum over the mappings. What cannot be
 * named is the part "[unexplained]".
 *
 * If an allocator reports its resident bytes, that many bytes of otherwise unexplained anonymous
 * memory are assigned to it (it does not report addresses). Page tables belong to the kernel, not
 * to RSS, and are reported separately.
 */
#ifndef ASSAY_ANALYZE_MEMORY_EXPLAIN_H
#define ASSAY_ANALYZE_MEMORY_EXPLAIN_H

#include "analyze/report.h"
#include "base/base.h"
#include "base/buf.h"
#include "base/sv.h"
#include "base/vec.h"
#include "model/memory.h"

/* The numbers are stored in files. */
enum memexplain_kind {
	MEMEXPLAIN_HEAP = 0,  /* [heap], arenas and large blocks of malloc */
	MEMEXPLAIN_ALLOCATOR, /* resident bytes that an allocator reports */
	MEMEXPLAIN_RUNTIME,   /* heaps of Go, V8 */
	MEMEXPLAIN_STACKS,
	MEMEXPLAIN_CODE,
	MEMEXPLAIN_DATA,  /* data of binaries: .data, .bss, .rodata */
	MEMEXPLAIN_FILES, /* other mapped files */
	MEMEXPLAIN_SHMEM,
	MEMEXPLAIN_JIT,
	MEMEXPLAIN_NAMED,   /* anonymous, named by the program (PR_SET_VMA_ANON_NAME) */
	MEMEXPLAIN_MAPPED,  /* anonymous, variables of this binary point to it */
	MEMEXPLAIN_KERNEL,  /* mappings of the kernel: [vdso], [vvar] */
	MEMEXPLAIN_LIKELY,  /* likely an allocator's, by elimination; not counted as explained */
	MEMEXPLAIN_UNKNOWN, /* other anonymous memory */
	MEMEXPLAIN_NR
};

struct memexplain_part {
	enum memexplain_kind kind;
	const char *name; /* file name or a text ("glibc: arenas of threads"); copied */
	uint64_t nr_mappings;
	uint64_t rss_bytes;
	uint64_t pss_bytes;
	uint64_t anon_bytes; /* part of rss_bytes that is anonymous */
	uint64_t swap_bytes;
	uint64_t virtual_bytes;
};

struct memexplain;

struct memexplain *memexplain_new(void);
void memexplain_free_p(struct memexplain **e);
/* Adds a mapping or a part of one. Parts of equal kind and name are summed. */
void memexplain_add(struct memexplain *e, const struct memexplain_part *part);
enum memexplain_flags {
	MEMEXPLAIN_NO_REFERENCES = 1 << 0, /* leave memory that variables point to unexplained */
};
/*
 * Adds all mappings of a process, after memanon_classify_all has set the owners. An allocator that
 * uses mmap has variables that point to the memory it manages: pass MEMEXPLAIN_NO_REFERENCES.
 */
void memexplain_maps(struct memexplain *e, const struct memmaps *m, unsigned flags);
/* Sets the resident bytes of the allocator. Call once, after all parts are added. */
void memexplain_allocator(struct memexplain *e, const char *name, uint64_t resident_bytes);

/*
 * Marks unexplained anonymous memory as likely this allocator's: it is loaded and uses mmap, but
 * was not queried. Call once, after all parts are added.
 */
void memexplain_assign_likely(struct memexplain *e, const char *name);

/* Appends the parts as text, for FACT_MEMORY_PARTS; at most 2,000, without control characters. */
void memexplain_save(struct buf *to, const struct memexplain *e);
/* Adds the parts of such a text. It is from a file: what cannot be read is left out. */
void memexplain_load(struct memexplain *e, struct sv text);

struct memexplain_sum {
	uint64_t rss_bytes;       /* of all parts */
	uint64_t explained_bytes; /* known owner */
	uint64_t likely_bytes;
};
struct memexplain_sum memexplain_sum(const struct memexplain *e);
/*
 * Adds table "memory_parts": kind, name, mappings, bytes and share, largest first; rows beyond
 * @max_rows (0: all) become "<other>". Its note has the share explained and, if larger, the
 * kernel's RSS counter @rss_bytes.
 */
void memexplain_report(struct report *r, const struct memexplain *e, uint64_t rss_bytes,
		       uint64_t page_table_bytes, uint64_t max_rows);

#endif
