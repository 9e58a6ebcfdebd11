/*
 * How the heap of one process is going to be watched: which method, which functions, why. Made by
 * plan/heapchoice.h, used by the sources of capture/ and by remote/. Addresses are runtime
 * addresses of that process at that moment.
 */
#ifndef ASSAY_PLAN_HEAPPLAN_H
#define ASSAY_PLAN_HEAPPLAN_H

#include "base/base.h"
#include "base/vec.h"
#include "heap_wire.h"

enum heap_method {
	HEAP_METHOD_NONE = 0,    /* as an option: choose */
	HEAP_METHOD_PROF = 1,    /* jemalloc's own profiling, driven from here */
	HEAP_METHOD_HOOKS = 2,   /* jemalloc 5.2 - 5.3.1: experimental.hooks.install */
	HEAP_METHOD_PATCH = 3,   /* functions patched, at launch or on attach */
	HEAP_METHOD_UPROBES = 4, /* BPF on uprobes */
	HEAP_METHOD_GROWTH = 5,  /* page faults and mappings, nothing injected */
};

struct heap_site {
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
/* Sorted, without empty ones; those less than @gap bytes apart become one. */
void heap_ranges_join(struct heap_ranges *r, uint64_t gap);
/* Any ranges. */
bool heap_ranges_have(const struct heap_ranges *r, uint64_t addr);

enum heap_allocator {
	HEAP_ALLOCATOR_NONE = 0, /* none was found */
	HEAP_ALLOCATOR_GLIBC,
	HEAP_ALLOCATOR_MUSL,
	HEAP_ALLOCATOR_JEMALLOC,
	HEAP_ALLOCATOR_TCMALLOC,
	HEAP_ALLOCATOR_MIMALLOC,
	HEAP_ALLOCATOR_OTHER, /* malloc and free of somebody else */
	HEAP_ALLOCATOR_PAGES, /* of functions: the C library's mmap and its sisters */
	HEAP_ALLOCATOR_NR
};
/* Words for people: "jemalloc", "glibc". */
const char *heap_allocator_name(enum heap_allocator a);

struct heap_plan {
	enum heap_method method;
	enum heap_allocator allocator;
	char *allocator_text; /* "jemalloc 5.3.0, static, prefix _rjem_"; owned */
	char *reason;         /* why this method, for the screen; owned */
	VEC(struct heap_site) sites;
	/* Code of allocators: a thread with a frame in it must not be made to call it. */
	struct heap_ranges allocator_code;
	/* jemalloc only; 0 = not found. */
	uint64_t mallctl;
	/* Found without a symbol: it is not one unless its version is this. Owned; NULL = by name. */
	char *expected_version;
	uint32_t version[3]; /* 5, 3, 0 */
	bool has_prof; /* built with profiling; whether opt.prof is set only mallctl can say */
	/*
	 * Tier PATCH was chosen though jemalloc has hooks: all of the allocator's functions or
	 * none. If one cannot be patched attaching fails with -ENOTSUP, nothing changed.
	 */
	bool is_all_or_none;
	/* proc_image() of what the addresses are of; 0 = not known. Another by now: a stale plan.
	 */
	uint64_t image;
	/* Its dynamic linker has not finished: more may be found in a moment. */
	bool is_loading;
};

void heap_plan_release(struct heap_plan *p);
void heap_plan_clear_sites(struct heap_plan *p);

#endif
