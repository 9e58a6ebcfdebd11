/*
 * Allocation that never returns NULL, and scope-based cleanup.
 *
 * When memory runs out, these functions print the requested size and exit. Callers must limit
 * sizes that come from a file or a target before they allocate.
 */
#ifndef ASSAY_BASE_MEM_H
#define ASSAY_BASE_MEM_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"

/* Blocks of 4 MiB or more are in huge pages, where the kernel has them: one page fault for 2 MiB. */
void *xmalloc(size_t n) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t nr, size_t n) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *p, size_t n) __attribute__((returns_nonnull));
/* Overflow-checked realloc of nr elements of n bytes. */
void *xreallocarray(void *p, size_t nr, size_t n) __attribute__((returns_nonnull));
/* The same for a zeroed array that is written from its start to its end. Released by free. */
void *xcalloc_huge(size_t nr, size_t n) __attribute__((malloc, returns_nonnull));
/*
 * From now on freed memory is kept for later allocations, and the first 256 MiB are in huge
 * pages: for commands that read a file, write a result and end. A capture would hold its peak to the
 * end.
 */
void mem_keep(void);
char *xstrdup(const char *s) __attribute__((returns_nonnull));
char *xstrndup(const char *s, size_t n) __attribute__((returns_nonnull));
void *xmemdup(const void *p, size_t n) __attribute__((returns_nonnull));
char *xasprintf(const char *fmt, ...) PRINTF(1, 2) __attribute__((returns_nonnull));
char *xvasprintf(const char *fmt, va_list ap) PRINTF(1, 0) __attribute__((returns_nonnull));
/* Prints that @n bytes could not be allocated, and exits. */
void mem_die(size_t n) NORETURN;

/* Returns a pointer and sets the variable to NULL, so that CLEANUP does not free it. */
#define TAKE(p)                            \
	({                                 \
		__typeof__(p) take_ = (p); \
		(p) = NULL;                \
		take_;                     \
	})
/* The same for a file descriptor: sets the variable to -1. */
static inline int take_fd(int *fd)
{
	int r = *fd;
	*fd = -1;
	return r;
}

/* For CLEANUP: CLEANUP(free_p) char *s = NULL; CLEANUP(close_p) int fd = -1; */
void free_p(void *pp);
void close_p(int *fd);

#endif
