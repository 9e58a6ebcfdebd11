/*
 * The mappings of a process with what is resident of each, from /proc/PID/smaps; where that is
 * refused, their sizes alone from /proc/PID/maps.
 *
 * Kinds are told by what a mapping is, not by its address: a file of which any part is mapped
 * executable is a binary, any other a mapped file; a stack is a private writable mapping without a
 * file that holds the stack pointer of a thread (/proc/PID/task/TID/syscall, told while the thread
 * is not running), and is remembered as long as it is mapped. For threads that always run, mappings
 * are taken that have a guard below and the size of a stack that was seen, or of 8 MiB.
 *
 * Paths are the kernel's, in the target's root, and foreign: escape them. Reading walks the page
 * tables under the target's lock for mappings, as smaps_rollup does, and prints some 700 bytes a
 * mapping: 10 us each.
 */
#ifndef ASSAY_HOST_MEMMAPS_H
#define ASSAY_HOST_MEMMAPS_H

#include "base/base.h"
#include "base/err.h"
#include "base/intern.h"
#include "base/sv.h"
#include "base/vec.h"

enum memmap_kind {
	MEMMAP_ANON = 0,     /* private memory that nobody named */
	MEMMAP_HEAP = 1,     /* [heap], grown by brk */
	MEMMAP_STACK = 2,    /* of the first thread or another one */
	MEMMAP_CODE = 3,     /* executable part of a binary */
	MEMMAP_BINARY = 4,   /* its other parts */
	MEMMAP_FILE = 5,     /* any other file */
	MEMMAP_SHMEM = 6,    /* shared memory: memfd, /dev/shm, SYSV, shared anonymous */
	MEMMAP_JIT = 7,      /* executable without a file */
	MEMMAP_NAMED = 8,    /* anonymous with a name (prctl PR_SET_VMA) */
	MEMMAP_SPECIAL = 9,  /* [vdso], [vvar]... */
	MEMMAP_HUGETLB = 10, /* pages of hugetlbfs: not part of the RSS that the kernel reports */
	MEMMAP_KIND_NR
};

struct memmap {
	uint64_t start;
	uint64_t end;
	uint32_t path; /* 0 = none */
	enum memmap_kind kind;
	bool is_writable;
	bool is_readable;
	bool is_exec;
	bool is_shared;
	uint64_t rss_bytes;
	uint64_t pss_bytes;
	uint64_t private_clean_bytes;
	uint64_t private_dirty_bytes;
	uint64_t shared_clean_bytes;
	uint64_t shared_dirty_bytes;
	uint64_t anon_bytes; /* of rss: private copies of a file's pages, too */
	uint64_t swap_bytes;
	uint64_t swap_pss_bytes;
	uint64_t locked_bytes;
	uint64_t huge_bytes; /* mapped by large pages, of any kind */
};

/* Where stacks were seen, by process; start with {0}. */
struct memstacks {
	VEC(uint64_t) starts; /* ascending */
	uint32_t nr_unseen;   /* threads that were running whenever they were looked at */
};
void memstacks_release(struct memstacks *s);

struct memmaps {
	struct intern paths;
	VEC(struct memmap) list; /* in order of addresses */
	bool has_rss;            /* by smaps; else sizes only */
	uint64_t read_ns;
};
void memmaps_release(struct memmaps *m);
const char *memmaps_path(const struct memmaps *m, const struct memmap *one); /* "" = none */

/* @stacks: of this process, updated; NULL: only the first thread's is told apart. */
int memmaps_read(struct memmaps *ret_m, int32_t pid, struct memstacks *stacks, struct err *err);
/* RSS of the mappings of a kind. */
uint64_t memmaps_rss(const struct memmaps *m, enum memmap_kind kind);
/* "anonymous", "heap", "stack"... */
const char *memmap_kind_name(enum memmap_kind kind);

/* For tests and fuzzing: text of smaps or maps, appended. Lines that make no sense are passed. */
void memmaps_parse(struct memmaps *m, struct sv text);
/* Marks the mappings that hold these stack pointers. */
void memmaps_mark_stacks(struct memmaps *m, struct memstacks *stacks, const uint64_t *sps,
			 size_t nr);
/* The same for @nr threads that were running, by size and guard; how many it found. */
size_t memmaps_guess_stacks(struct memmaps *m, struct memstacks *stacks, size_t nr);
/* The stack pointer in text of /proc/PID/task/TID/syscall; false: "running", or no such. */
bool memmaps_parse_sp(struct sv text, uint64_t *ret_sp);

#endif
