/*
 * Reads the state of a process's dynamic linker from its memory: the debugger interface of link.h
 * (struct r_debug), which glibc and musl implement. The process is not stopped.
 *
 * glibc writes struct r_debug before it maps the first library (state RT_ADD) and sets
 * RT_CONSISTENT when all libraries are relocated. musl writes it only when all libraries are
 * relocated. A program without DT_DEBUG in its dynamic section has no struct r_debug.
 */
#ifndef ASSAY_HOST_DYNLINKER_H
#define ASSAY_HOST_DYNLINKER_H

#include "base/base.h"

struct dynlinker {
	/* Runtime addresses. */
	uint64_t entry;   /* entry point of the program */
	uint64_t base;    /* load address of the dynamic linker; 0 = a static program */
	uint64_t dynamic; /* the program's PT_DYNAMIC; 0 = none */
};

/*
 * Reads the program's addresses from its auxv. -EAGAIN: the kernel is still mapping it (execve);
 * -ENOEXEC: a 32-bit program. Other errors: auxv cannot be read.
 */
int dynlinker_find(struct dynlinker *ret_d, int32_t pid, int mem_fd);

enum dynlinker_state {
	DYNLINKER_UNKNOWN,    /* a static program, or one without DT_DEBUG */
	DYNLINKER_LOADING,    /* libraries are being loaded or unloaded */
	DYNLINKER_CONSISTENT, /* all libraries are mapped and relocated */
};

/* *ret_map: address of the first struct link_map, 0 = none; may be NULL. */
enum dynlinker_state dynlinker_state(const struct dynlinker *d, int mem_fd, uint64_t *ret_map);

/*
 * Returns the value of a tag of the dynamic section at @dynamic; 0 = none. @ret_has_tag may be
 * NULL.
 */
uint64_t dynlinker_tag(int mem_fd, uint64_t dynamic, int64_t tag, bool *ret_has_tag);
/*
 * Returns the runtime address of PT_DYNAMIC according to the @nr_phdr program headers in memory at
 * @phdr; 0 = none. *ret_bias: runtime address minus link-time address, computed from PT_PHDR; @base
 * if there is no PT_PHDR.
 */
uint64_t dynlinker_dynamic(int mem_fd, uint64_t phdr, uint64_t nr_phdr, uint64_t base,
			   uint64_t *ret_bias);

#endif
