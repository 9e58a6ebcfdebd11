/*
 * Which allocators are in a binary, and where their functions begin and end: the family of the C
 * library (glibc, musl), jemalloc under any prefix, tcmalloc, mimalloc, operator new and delete of
 * those that bring their own (libstdc++'s only call malloc), and the C library's mmap, munmap,
 * mremap, brk, sbrk.
 *
 * Found by the symbol tables of the image, its debug file and its .gnu_debugdata. jemalloc is
 * known by <prefix>mallctl with <prefix>mallocx and its sisters beside it. A function with several
 * names at one address comes once, under the name that says most. Stripped jemalloc: see
 * allocstrip.h.
 *
 * The image is foreign; what is found is where to look, not proof: before an address is called,
 * whoever calls it checks what it answers (jemalloc's "version").
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
	/* Has a name that other binaries' calls are bound to by name ("malloc"), not by prefix. */
	bool is_plain;
	char *name; /* owned */
};

/* What is known of a jemalloc in the image. */
struct allocfind_jemalloc {
	char *prefix;        /* "", "_rjem_", "je_"; owned; NULL = there is none */
	char *variable;      /* of its environment: "_RJEM_MALLOC_CONF"; owned; NULL = not found */
	uint64_t mallctl;    /* link-time, 0 = not found */
	uint32_t version[3]; /* 0, 0, 0 = not found */
	char *version_text;  /* "5.3.0-0-g54ea..."; owned; NULL = not found */
	bool has_prof;       /* built with profiling */
	bool is_stripped;    /* found by its strings only: prefix is a guess by the variable */
};

struct allocfind {
	VEC(struct allocfind_function) functions; /* by address */
	struct heap_ranges code; /* link-time; of jemalloc, all of it, by address */
	struct allocfind_jemalloc jemalloc;
	bool exports_malloc; /* defines malloc for other binaries */
	bool is_libc;
	bool is_go;
	bool is_jvm;
};

/* @debug, @mini: more symbols of the same binary, or NULL. */
int allocfind_image(struct allocfind *ret_f, struct elf *image, struct elf *debug, struct elf *mini,
		    struct err *err);
void allocfind_release(struct allocfind *f);

#endif
