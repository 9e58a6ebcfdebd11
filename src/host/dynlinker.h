/*
 * What a process's dynamic linker tells debuggers, read from its memory: the protocol of link.h
 * (struct r_debug), which glibc and musl keep. Nothing is stopped or called.
 *
 * glibc sets it up before it maps the first library, in the state RT_ADD, and says RT_CONSISTENT
 * when all is relocated; musl fills it in then. A program without DT_DEBUG tells nothing.
 */
#ifndef ASSAY_HOST_DYNLINKER_H
#define ASSAY_HOST_DYNLINKER_H

#include "base/base.h"

struct dynlinker {
	uint64_t entry;   /* of the program; runtime addresses, all of them */
	uint64_t base;    /* of the dynamic linker; 0 = there is none */
	uint64_t dynamic; /* the program's PT_DYNAMIC; 0 = none */
};

/*
 * Where the kernel put the program (auxv). -EAGAIN: nowhere yet, it is being executed; -ENOEXEC: of
 * 32 bits; others: no access.
 */
int dynlinker_find(struct dynlinker *ret_d, int32_t pid, int mem_fd);

enum dynlinker_state {
	DYNLINKER_UNKNOWN,    /* does not tell: static, or without DT_DEBUG */
	DYNLINKER_LOADING,    /* libraries are missing, or come or go just now */
	DYNLINKER_CONSISTENT, /* all is mapped and relocated */
};

/* *ret_map: the first of its list (struct link_map), 0 = none; may be NULL. */
enum dynlinker_state dynlinker_state(const struct dynlinker *d, int mem_fd, uint64_t *ret_map);

/* Value of a tag of a dynamic section; 0 = none. @ret_has_tag may be NULL. */
uint64_t dynlinker_tag(int mem_fd, uint64_t dynamic, int64_t tag, bool *ret_has_tag);
/* Address of PT_DYNAMIC by program headers in memory; *ret_bias: what is added to addresses. */
uint64_t dynlinker_dynamic(int mem_fd, uint64_t phdr, uint64_t nr_phdr, uint64_t base,
			   uint64_t *ret_bias);

#endif
