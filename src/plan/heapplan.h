/*
 * The plan for recording the heap of one process: method, functions, reason. Made by
 * plan/heapchoice.h, used by the sources of capture/ and by remote/. Addresses are runtime
 * addresses in that process at that time.
 */
#ifndef ASSAY_PLAN_HEAPPLAN_H
#define ASSAY_PLAN_HEAPPLAN_H

#include "base/base.h"
#include "base/vec.h"
#include "heap_wire.h"

enum heap_method {
	HEAP_METHOD_NONE = 0,    /* in options: assay chooses */
	HEAP_METHOD_PROF = 1,    /* jemalloc's own profiling, controlled by assay */
	HEAP_METHOD_HOOKS = 2,   /* jemalloc 5.2 - 5.3.1: experimental.hooks.install */
	HEAP_METHOD_PATCH = 3,   /* functions patched, at launch or on attach */
	HEAP_METHOD_UPROBES = 4, /* BPF on uprobes */
	HEAP_METHOD_GROWTH = 5,  /* page faults and mappings, nothing injected */
};

/* A function to be patched or probed. Its site number: see remote/patch/inject.h. */
struct heap_function {
	uint64_t addr;         /* of the function's first instruction */
	uint64_t end;          /* past its last; 0 = unknown */
	enum heap_shape shape; /* wire/heap_wire.h */
	char *name;            /* "malloc", "_rjem_mallocx"; owned */
	char *path;            /* of the binary, as mapped; owned */
	uint64_t file_offset;  /* of addr in it: for uprobes */
};

struct heap_range {
	uint64_t start;
	uint64_t end;
};

struct heap_ranges { /* a VEC */
	struct heap_range *p;
	size_t n;
	size_t cap;
};
void heap_ranges_release(struct heap_ranges *r);
/* Sorts, removes empty ranges, merges those at most @gap bytes apart. */
void heap_ranges_join(struct heap_ranges *r, uint64_t gap);
/* Whether @addr is in one of the ranges, which need not be sorted. */
bool heap_ranges_have(const struct heap_ranges *r, uint64_t addr);

enum heap_allocator {
	HEAP_ALLOCATOR_NONE = 0, /* none was found */
	HEAP_ALLOCATOR_GLIBC,
	HEAP_ALLOCATOR_MUSL,
	HEAP_ALLOCATOR_JEMALLOC,
	HEAP_ALLOCATOR_TCMALLOC,
	HEAP_ALLOCATOR_MIMALLOC,
	HEAP_ALLOCATOR_OTHER, /* a malloc of another library, or the program's own */
	/*
	 * The C library's mmap, munmap, mremap, brk, sbrk, prctl and syscall. Only the kind of an
	 * allocfind_function, never the allocator of a plan.
	 */
	HEAP_ALLOCATOR_PAGES,
	HEAP_ALLOCATOR_NR
};
/* Name for output: "jemalloc", "glibc". */
const char *heap_allocator_name(enum heap_allocator a);

struct heap_plan {
	enum heap_method method;
	enum heap_allocator allocator;
	char *allocator_text;                /* "jemalloc 5.3.0, static, prefix _rjem_"; owned */
	char *reason;                        /* why this method, for output; owned */
	VEC(struct heap_function) functions; /* to be patched or probed */
	/* Code of allocators. A thread with a frame in it must not be made to call the allocator. */
	struct heap_ranges allocator_code;
	struct heap_range
		skip; /* HOOKS, PROF: code of jemalloc, whose frames are omitted from stacks */
	/* jemalloc: address of mallctl; 0 = not found. */
	uint64_t mallctl;
	/*
	 * If mallctl was found without a symbol: the version that it must report. Owned; NULL = it
	 * was found by its symbol.
	 */
	char *expected_version;
	uint32_t version[3]; /* 5, 3, 0 */
	bool has_prof;       /* built with profiling; opt.prof is known only from mallctl */
	/*
	 * Method PATCH was chosen although jemalloc has hooks: if one of the allocator's functions
	 * cannot be patched, the attach fails with -ENOTSUP and changes nothing.
	 */
	bool is_all_or_none;
	/*
	 * The process is stopped before its first instruction, and its allocator may be called only
	 * from its main function on, which is here: run it to there and make a new plan. 0 = no.
	 */
	uint64_t main;
	bool is_at_main; /* the process is stopped there */
	bool is_held;    /* the process is stopped by assay: sessions use the stopped thread */
	/* proc_exec_id() when the plan was made, 0 = unknown; if it differs, the plan is stale. */
	uint64_t image;
	/* The dynamic linker has not finished: a later plan may have more functions. */
	bool is_loading;
};

void heap_plan_release(struct heap_plan *p);
void heap_plan_clear_functions(struct heap_plan *p);

#endif
