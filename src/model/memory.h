/*
 * Memory statistics from the kernel and from allocators: of a process, a mapping, a memory cgroup,
 * a command that ran under a memory limit, and one reading of `assay watch`. Plain data, filled by
 * host/, used by analyses and renderers. Sizes are in bytes. `has` says which groups of fields are
 * set; the others are 0.
 */
#ifndef ASSAY_MODEL_MEMORY_H
#define ASSAY_MODEL_MEMORY_H

#include "base/base.h"
#include "base/intern.h"
#include "base/vec.h"

/* ---- a process (host/memory/memstat.h) */

enum memstat_has {
	MEMSTAT_HAS_RSS = 1 << 0,    /* rss_bytes, virtual_bytes */
	MEMSTAT_HAS_SPLIT = 1 << 1,  /* anon, file, shmem separately; swap, page tables, peaks */
	MEMSTAT_HAS_FAULTS = 1 << 2, /* nr_minor, nr_major, start_ticks */
	MEMSTAT_HAS_PSS = 1 << 3,    /* the fields of /proc/PID/smaps_rollup */
};

/* Of one process, or the sum over several. */
struct memstat {
	unsigned has; /* enum memstat_has, common to all processes of the sum */
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
	uint64_t data_bytes;       /* VmData: private writable memory, which RLIMIT_DATA limits */
	uint64_t page_table_bytes; /* VmPTE: kernel memory, not part of rss */
	uint64_t locked_bytes;
	uint64_t nr_minor;    /* minor page faults since the process started */
	uint64_t nr_major;    /* major ones */
	uint64_t start_ticks; /* start time; identifies the process together with the pid */
	/* From smaps_rollup. */
	uint64_t walked_rss_bytes; /* RSS from the page table walk */
	uint64_t pss_bytes;
	uint64_t pss_anon_bytes;
	uint64_t pss_file_bytes;
	uint64_t pss_shmem_bytes;
	uint64_t private_clean_bytes;
	uint64_t private_dirty_bytes;
	uint64_t shared_clean_bytes;
	uint64_t shared_dirty_bytes;
	uint64_t lazy_free_bytes; /* freed by MADV_FREE, still counted in rss */
	uint64_t anon_huge_bytes;
	uint64_t file_huge_bytes;
	uint64_t shmem_huge_bytes;
	uint64_t swap_pss_bytes;
	uint64_t counters_ns; /* how long assay took to read the counters */
	uint64_t rollup_ns;   /* how long assay took to read smaps_rollup */
};

static inline uint64_t memstat_huge(const struct memstat *m)
{
	return m->anon_huge_bytes + m->file_huge_bytes + m->shmem_huge_bytes;
}

/* ---- a mapping (host/memory/maps.h, host/memory/anon.h) */

enum memmap_kind {
	MEMMAP_ANON = 0,      /* private anonymous memory without a name */
	MEMMAP_HEAP = 1,      /* [heap], grown by brk */
	MEMMAP_STACK = 2,     /* stack of the main thread or of another one */
	MEMMAP_CODE = 3,      /* executable mapping of a binary */
	MEMMAP_BINARY = 4,    /* other mapping of a binary */
	MEMMAP_FILE = 5,      /* mapping of any other file */
	MEMMAP_SHMEM = 6,     /* shared memory: memfd, /dev/shm, SYSV, shared anonymous */
	MEMMAP_JIT = 7,       /* executable anonymous memory */
	MEMMAP_NAMED = 8,     /* anonymous with a name (prctl PR_SET_VMA) */
	MEMMAP_SPECIAL = 9,   /* [vdso], [vvar]... */
	MEMMAP_HUGETLB = 10,  /* hugetlbfs pages: not part of the RSS that the kernel reports */
	MEMMAP_RECORDER = 11, /* of assay: the recorder of `assay heap` */
	MEMMAP_KIND_NR
};

/* What anonymous memory is used for, as far as host/memory/anon.h can determine. */
enum memanon_owner {
	MEMANON_UNKNOWN = 0,
	MEMANON_GLIBC_ARENA,
	MEMANON_GLIBC_MMAP,
	MEMANON_V8,
	MEMANON_GO,
	MEMANON_BSS,
	MEMANON_PYMALLOC,
	MEMANON_INNODB,
	MEMANON_JEMALLOC_USED,
	MEMANON_JEMALLOC_FREE,
	MEMANON_JEMALLOC_OWN,
	MEMANON_REFERENCED,
	MEMANON_NR
};

struct memanon_part {
	uint64_t virtual_bytes;
	uint64_t resident_bytes;
	uint64_t used_bytes; /* of malloc's large blocks and of pymalloc: in use by the program */
};

/* What belongs to each owner; the part of MEMANON_UNKNOWN is 0. */
struct memanon {
	struct memanon_part of[MEMANON_NR];
	uint32_t referrer; /* of MEMANON_REFERENCED: id of a binary in memmaps.paths; 0 = none */
};

struct memmap {
	uint64_t start;
	uint64_t end;
	uint32_t path; /* id in memmaps.paths, 0 = none */
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
	uint64_t anon_bytes; /* anonymous part of rss, with private copies of file pages */
	uint64_t swap_bytes;
	uint64_t swap_pss_bytes;
	uint64_t locked_bytes;
	uint64_t huge_bytes; /* mapped by huge pages of any kind */
	struct memanon anon; /* of MEMMAP_ANON, set by memanon_classify_all */
};

/* The mappings of a process. */
struct memmaps {
	struct intern paths;
	VEC(struct memmap) list; /* sorted by address */
	bool has_rss;            /* read from smaps; else from maps: sizes only */
	uint64_t read_ns;        /* how long assay took to read them */
};

static inline const char *memmaps_path(const struct memmaps *m, const struct memmap *one)
{
	return one->path ? intern_str(&m->paths, one->path) : "";
}

/* ---- the heaps of glibc's malloc (host/memory/mallocheap.h) */

struct memheap {
	bool is_known;
	uint32_t nr_arenas;
	uint64_t total_bytes;       /* address space of the heaps, without large blocks */
	uint64_t walked_bytes;      /* of these */
	uint64_t main_unread_bytes; /* of these, the main heap if its arena was not found */
	uint64_t used_bytes; /* chunks in use, with their headers and those in caches of threads */
	uint64_t free_bytes; /* free chunks, also those in fastbins and the top */
	uint64_t fast_bytes; /* of these, in fastbins */
	uint64_t nr_used;    /* chunks in use */
	uint64_t resident_bytes;
	uint64_t trimmable_bytes; /* resident pages without a chunk in use */
};

/* ---- a memory cgroup (host/memory/cgroup.h) */

#define MEMGROUP_NO_LIMIT UINT64_MAX

enum memgroup_has {
	MEMGROUP_HAS_PEAK = 1 << 0, /* the kernel's peak; else the largest usage that was read */
	MEMGROUP_HAS_SWAP = 1 << 1,
	MEMGROUP_HAS_PRESSURE = 1 << 2,
	MEMGROUP_HAS_OWN_PRESSURE = 1 << 3, /* PSI of the group; else of the whole machine */
	MEMGROUP_HAS_RECLAIM = 1 << 4,      /* nr_scanned, nr_stolen */
	MEMGROUP_HAS_KERNEL = 1 << 5,
};

struct memgroup_numbers {
	unsigned has; /* enum memgroup_has */
	/* Levels. */
	uint64_t limit_bytes;       /* of this group itself, or MEMGROUP_NO_LIMIT */
	uint64_t limit_above_bytes; /* smallest limit of the ancestor groups, 0 = unknown */
	uint64_t usage_bytes;
	uint64_t peak_bytes;
	uint64_t swap_bytes;
	uint64_t swap_limit_bytes; /* of swap only (not memory + swap), or MEMGROUP_NO_LIMIT */
	uint64_t anon_bytes;
	uint64_t file_bytes; /* page cache, including shared memory */
	uint64_t shmem_bytes;
	uint64_t mapped_bytes; /* mapped part of the page cache */
	uint64_t kernel_bytes; /* slab, kernel stacks, page tables */
	/* Counts. */
	uint64_t nr_low; /* events "low" and "high" of cgroup v2 */
	uint64_t nr_high;
	uint64_t nr_at_limit; /* v2: "max"; v1: failcnt of memory, and of memory + swap */
	uint64_t nr_oom;      /* v2: "oom", reclaim failed */
	uint64_t nr_oom_kill;
	uint64_t nr_faults;
	uint64_t nr_major;
	uint64_t nr_refault_anon; /* pages */
	uint64_t nr_refault_file;
	uint64_t nr_scanned;       /* pages scanned by reclaim (pgscan) */
	uint64_t nr_stolen;        /* pages reclaimed (pgsteal) */
	uint64_t nr_stolen_direct; /* of these, by direct reclaim */
	uint64_t some_us;          /* memory pressure (PSI), total: some, full */
	uint64_t full_us;
};

/* Returns the effective limit: the smallest one of the group and its ancestors. */
static inline uint64_t memgroup_least_limit(const struct memgroup_numbers *n)
{
	return n->limit_above_bytes ? MIN(n->limit_bytes, n->limit_above_bytes) : n->limit_bytes;
}

/* ---- a command under a limit (host/memory/limitgroup.h) */

enum limit_flags {
	LIMIT_RLIMIT = 1 << 0,
};

/* The limit that `assay limit` applies. */
struct limit_spec {
	uint64_t memory_bytes;
	uint64_t swap_bytes; /* MEMGROUP_NO_LIMIT: not limited */
	unsigned flags;      /* enum limit_flags */
};

struct limit_point {
	uint64_t time_ns; /* since the command's start */
	uint64_t usage_bytes;
	uint64_t anon_bytes;
	uint64_t file_bytes;
	uint64_t swap_bytes;
};

struct limit_outcome {
	struct memgroup_numbers numbers; /* of the command only: counts since it was moved in */
	struct limit_point largest;      /* the reading with the highest usage */
	struct limit_point highest;      /* of each part its highest reading; time_ns is 0 */
	struct limit_point at_kill;      /* the last reading before an OOM kill; usage 0 = none */
	uint64_t start_ns;               /* of the command; CLOCK_MONOTONIC */
	uint64_t duration_ns;
	uint64_t data_bytes; /* without a cgroup: the highest VmData of the launched process */
	size_t nr_moved;     /* processes that still ran after the command ended */
	bool has_group;
	bool has_swap;                  /* swap accounting is available and swap was limited */
	VEC(struct limit_point) points; /* a few hundred, evenly spaced */
};

/* ---- statistics of an allocator (remote/jemalloc/jemalloc.h) */

#define ALLOCSTATS_UNKNOWN UINT64_MAX

struct allocstats_class {
	uint64_t size_bytes;
	uint64_t nr_live;  /* blocks in use, including those in thread caches */
	uint64_t nr_slabs; /* 0: a large size class, each block has its own pages */
	uint32_t nr_per_slab;
};

struct allocstats {
	bool has_stats; /* false: jemalloc was built without statistics */
	uint64_t allocated_bytes;
	uint64_t active_bytes; /* pages with at least one block in use */
	uint64_t metadata_bytes;
	uint64_t resident_bytes; /* active, metadata, and unused dirty pages */
	uint64_t mapped_bytes;
	uint64_t retained_bytes; /* address space only, no memory */
	uint64_t tcache_bytes;   /* in thread caches, or ALLOCSTATS_UNKNOWN */
	int64_t dirty_decay_ms;  /* -1 = never */
	bool has_background_thread;
	uint32_t nr_arenas;
	uint32_t nr_threads;
	VEC(struct allocstats_class) classes; /* those in use, by size */
	uint64_t stopped_ns;                  /* longest time that a target thread was stopped */
	uint32_t nr_sessions; /* sessions of jemalloc.h: how many times a thread was stopped */
};

/* ---- one reading of a target (session/memwatch.h) */

/* Statistics of the target's allocator. */
struct memallocator {
	bool is_known;
	uint64_t query_ns;       /* time of the query; CLOCK_MONOTONIC */
	uint64_t in_use_bytes;   /* allocated by the program and not freed */
	uint64_t active_bytes;   /* pages with at least one block in use */
	uint64_t resident_bytes; /* resident, including metadata and unused dirty pages */
	uint64_t retained_bytes; /* reserved address space without memory */
};

struct memreading {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	struct memstat m; /* sum over the processes */
	/* Largest shmem of one process. The sum in @m counts shared memory once per process. */
	uint64_t shmem_most_bytes;
	uint64_t shmem_space_bytes; /* address space of this process */
	uint64_t stack_bytes;       /* resident in thread stacks at the last reading of mappings */
	bool has_pss;
	bool has_rates;
	/* Rates since the previous reading. */
	double minor_per_s; /* page faults */
	double major_per_s;
	double rss_per_s; /* change of rss, bytes */
	struct memgroup_numbers group;
	bool has_group;
	double pressure_pct; /* PSI "some" since the previous reading, percent of the time */
	struct memallocator allocator;
};

#endif
