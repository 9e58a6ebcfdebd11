/*
 * Finds allocators in a binary, with the addresses of their functions: the C library's (glibc,
 * musl), jemalloc with any prefix, tcmalloc, mimalloc, operator new and delete of those that have
 * their own (libstdc++'s only call malloc), and the C library's mmap, munmap, mremap, brk, sbrk.
 *
 * Uses the symbol tables of the image, its debug file and its .gnu_debugdata. jemalloc is
 * recognized by <prefix>mallctl together with <prefix>mallocx and similar functions. A function
 * with several names at one address is listed once, under the most common name. Stripped jemalloc:
 * allocstrip.h.
 *
 * The binary is not trusted: before calling an address found here, the caller must verify it (for
 * jemalloc by its "version").
 */
#ifndef ASSAY_PLAN_ALLOCFIND_H
#define ASSAY_PLAN_ALLOCFIND_H

#include "base/base.h"
#include "base/err.h"
#include "base/vec.h"
#include "object/elf.h"
#include "plan/heapplan.h"

struct allocfind_function {
	uint64_t vaddr; /* link-time */
	uint64_t end;   /* past the last instruction; 0 = unknown */
	enum heap_allocator kind;
	enum heap_shape shape;
	/*
	 * Has a standard name ("malloc"), so the dynamic linker binds calls of other binaries to
	 * it.
	 */
	bool is_plain;
	char *name; /* owned */
};

/* A jemalloc in the image. */
struct allocfind_jemalloc {
	char *prefix;        /* "", "_rjem_", "je_"; owned; NULL = there is none */
	char *variable;      /* environment variable with its options: "_RJEM_MALLOC_CONF"; owned */
	uint64_t mallctl;    /* link-time, 0 = not found */
	uint32_t version[3]; /* 0, 0, 0 = not found */
	char *version_text;  /* "5.3.0-0-g54ea..."; owned; NULL = not found */
	bool has_prof;       /* built with profiling */
	bool is_stripped;    /* found by its strings only; prefix is derived from variable */
	/*
	 * Its contiguous code, link-time, if it is_stripped: `code` also has functions of a static C
	 * library that it calls.
	 */
	struct heap_range span;
};

struct allocfind {
	VEC(struct allocfind_function) functions; /* by address */
	struct heap_ranges code; /* link-time ranges of all of jemalloc's code, by address */
	struct allocfind_jemalloc jemalloc;
	bool exports_malloc; /* defines malloc for other binaries */
	bool is_libc;
	bool is_go;
	bool is_jvm;
};

/* @debug: the binary's debug file; @mini: its .gnu_debugdata. Both may be NULL. */
int allocfind_image(struct allocfind *ret_f, struct elf *image, struct elf *debug, struct elf *mini,
		    struct err *err);
void allocfind_release(struct allocfind *f);

#endif
