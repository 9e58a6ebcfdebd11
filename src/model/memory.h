/*
 * Memory in numbers, as the kernel and allocators give them: of a process, of a mapping, of a
 * memory cgroup, of a command that ran under a limit, and one reading of `assay watch`. Plain data:
 * host/ reads it, recordings, analyses and renderers take it. Bytes throughout; what a source had
 * to say is in `has`, what no source said is 0.
 */
#ifndef ASSAY_MODEL_MEMORY_H
#define ASSAY_MODEL_MEMORY_H

#include "base/base.h"
#include "base/intern.h"
#include "base/vec.h"

/* ---- a process (host/memory/memstat.h) ------------------------------------------------------------ */

enum memstat_has {
	MEMSTAT_HAS_RSS = 1 << 0,    /* also virtual_bytes */
	MEMSTAT_HAS_SPLIT = 1 << 1,  /* shmem told apart from file; swap, page tables, peak */
	MEMSTAT_HAS_FAULTS = 1 << 2, /* nr_minor, nr_major, start_ticks */
	MEMSTAT_HAS_PSS = 1 << 3,    /* what smaps_rollup says */
};

struct memstat {
	unsigned has; /* enum memstat_has, of all processes that were added up */
	uint32_t nr_processes;
	uint32_t nr_threads;
	uint64_t rss_bytes;
	uint64_t anon_bytes;
	uint64_t file_bytes;
	uint64_t shmem_bytes;
	uint64_t virtual_bytes;
	uint64_t swap_bytes;
	uint64_t peak_rss_bytes;
	uint64_t peak_virtual_bytes;
	uint64_t page_table_bytes; /* the kernel's, not part of rss */
	uint64_t locked_bytes;
	uint64_t nr_minor; /* faults since the process began */
	uint64_t nr_major;
	uint64_t start_ticks; /* when it began: with the pid, which process this is */
	/* smaps_rollup. */
	uint64_t walked_rss_bytes; /* by the page tables, at the moment of the walk */
	uint64_t pss_bytes;
	uint64_t pss_anon_bytes;
	uint64_t pss_file_bytes;
	uint64_t pss_shmem_bytes;
	uint64_t private_clean_bytes;
	uint64_t private_dirty_bytes;
	uint64_t shared_clean_bytes;
	uint64_t shared_dirty_bytes;
	uint64_t lazy_free_bytes; /* given back by MADV_FREE, still counted in rss */
	uint64_t anon_huge_bytes;
	uint64_t file_huge_bytes;
	uint64_t shmem_huge_bytes;
	uint64_t swap_pss_bytes;
	uint64_t counters_ns; /* what reading cost us, wall time */
	uint64_t rollup_ns;
};

static inline uint64_t memstat_huge(const struct memstat *m)
{
	return m->anon_huge_bytes + m->file_huge_bytes + m->shmem_huge_bytes;
}

/* ---- a mapping (host/memory/maps.h, host/memory/anon.h) --------------------------------------------- */

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

enum memanon_owner {
	MEMANON_UNKNOWN = 0,
	MEMANON_GLIBC_ARENA,
	MEMANON_GLIBC_MMAP,
	MEMANON_V8,
	MEMANON_GO,
	MEMANON_BSS,
	MEMANON_NR
};

struct memanon {
	enum memanon_owner owner;
	uint64_t owned_bytes; /* of the mapping's addresses; less than all where only a part is */
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
	uint64_t huge_bytes;  /* mapped by large pages, of any kind */
	struct memanon whose; /* of MEMMAP_ANON, once memanon_classify_all was called */
};

struct memmaps {
	struct intern paths;
	VEC(struct memmap) list; /* in order of addresses */
	bool has_rss;            /* by smaps; else sizes only */
	uint64_t read_ns;
};

static inline const char *memmaps_path(const struct memmaps *m, const struct memmap *one)
{
	return one->path ? intern_str(&m->paths, one->path) : "";
}

/* ---- a memory cgroup (host/memory/cgroup.h) ------------------------------------------------------- */

#define MEMGROUP_NO_LIMIT UINT64_MAX

enum memgroup_has {
	MEMGROUP_HAS_PEAK = 1 << 0, /* of the kernel; else the largest usage that we saw */
	MEMGROUP_HAS_SWAP = 1 << 1,
	MEMGROUP_HAS_PRESSURE = 1 << 2,
	MEMGROUP_HAS_OWN_PRESSURE = 1 << 3, /* of the group; else of the whole machine */
	MEMGROUP_HAS_RECLAIM = 1 << 4,      /* nr_scanned, nr_stolen */
	MEMGROUP_HAS_KERNEL = 1 << 5,
};

struct memgroup_numbers {
	unsigned has; /* enum memgroup_has */
	/* Levels. */
	uint64_t limit_bytes;       /* of this group alone; MEMGROUP_NO_LIMIT */
	uint64_t limit_above_bytes; /* the smallest of the groups above, where told */
	uint64_t usage_bytes;
	uint64_t peak_bytes;
	uint64_t swap_bytes;
	uint64_t swap_limit_bytes; /* beyond memory; MEMGROUP_NO_LIMIT */
	uint64_t anon_bytes;
	uint64_t file_bytes; /* page cache, shared memory included */
	uint64_t shmem_bytes;
	uint64_t mapped_bytes; /* of the cache, what is mapped */
	uint64_t kernel_bytes; /* slab, stacks, page tables */
	/* Counts. */
	uint64_t nr_low; /* version 2 */
	uint64_t nr_high;
	uint64_t nr_at_limit; /* version 1: failcnt of memory, and of memory with swap */
	uint64_t nr_oom;      /* version 2: reclaim could not help */
	uint64_t nr_oom_kill;
	uint64_t nr_faults;
	uint64_t nr_major;
	uint64_t nr_refault_anon; /* pages */
	uint64_t nr_refault_file;
	uint64_t nr_scanned; /* pages looked at and taken back */
	uint64_t nr_stolen;
	uint64_t nr_stolen_direct; /* of these, by the program's own threads */
	uint64_t some_us;          /* pressure: some threads waited for memory, all did */
	uint64_t full_us;
};

/* The smallest limit of the group and those above it; MEMGROUP_NO_LIMIT. */
static inline uint64_t memgroup_least_limit(const struct memgroup_numbers *n)
{
	return n->limit_above_bytes ? MIN(n->limit_bytes, n->limit_above_bytes) : n->limit_bytes;
}

/* ---- a command under a limit (host/memory/limitgroup.h) --------------------------------------------- */

enum limit_flags {
	LIMIT_RLIMIT = 1 << 0,
};

struct limit_spec {
	uint64_t memory_bytes;
	uint64_t swap_bytes; /* MEMGROUP_NO_LIMIT: none */
	unsigned flags;      /* enum limit_flags */
};

struct limit_point {
	uint64_t time_ns; /* since the command was put in */
	uint64_t usage_bytes;
	uint64_t anon_bytes;
	uint64_t file_bytes;
	uint64_t swap_bytes;
};

struct limit_outcome {
	struct memgroup_numbers numbers; /* of the command alone: counts since it was put in */
	struct limit_point largest;      /* what was in use when most was, of what was seen */
	struct limit_point at_kill;      /* closest before the kernel killed; usage 0 = none */
	uint64_t duration_ns;
	size_t nr_moved; /* processes that outlived the command */
	bool has_group;
	bool has_swap;                  /* swap is accounted for and was limited */
	VEC(struct limit_point) points; /* some hundred, evenly spaced */
};

/* ---- statistics of an allocator (remote/jemalloc/jemalloc.h) ------------------------------------------- */

#define ALLOCSTATS_UNKNOWN UINT64_MAX

struct allocstats_class {
	uint64_t size_bytes;
	uint64_t nr_live;  /* blocks in use; those in threads' caches count */
	uint64_t nr_slabs; /* 0: a large class, blocks have pages of their own */
	uint32_t nr_per_slab;
};

struct allocstats {
	bool has_stats; /* else it was built without */
	uint64_t allocated_bytes;
	uint64_t active_bytes; /* pages with at least one block in use */
	uint64_t metadata_bytes;
	uint64_t resident_bytes; /* active, metadata, free pages that are kept */
	uint64_t mapped_bytes;
	uint64_t retained_bytes; /* address space only */
	uint64_t tcache_bytes;   /* of threads' caches; UNKNOWN */
	int64_t dirty_decay_ms;  /* -1 = never */
	bool has_background_thread;
	uint32_t nr_arenas;
	uint32_t nr_threads;
	VEC(struct allocstats_class) classes; /* in use, by size */
	uint64_t stopped_ns;                  /* longest session */
	uint32_t nr_sessions;
};

/* ---- one reading of a target (session/memwatch.h) -------------------------------------------- */

/* What an allocator says of itself. */
struct memallocator {
	bool is_known;
	uint64_t asked_ns;       /* when; CLOCK_MONOTONIC */
	uint64_t in_use_bytes;   /* handed out to the program and not freed */
	uint64_t active_bytes;   /* whole pages of that */
	uint64_t resident_bytes; /* in memory, with its own bookkeeping and pages to give back */
	uint64_t retained_bytes; /* addresses that it keeps without memory behind them */
};

struct memreading {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	struct memstat m; /* sum over the processes */
	/* Of the process that has most: what all share is in the sum many times. */
	uint64_t shmem_most_bytes;
	bool has_pss;
	bool has_rates;
	double minor_per_s;
	double major_per_s;
	double rss_per_s; /* since the reading before */
	struct memgroup_numbers group;
	bool has_group;
	double pressure_pct; /* of the time since the reading before, some threads waited for memory */
	struct memallocator allocator;
};

#endif
