/*
 * Allocation that never returns NULL, and scope-based cleanup.
 *
 * Running out of memory in the tool ends it once, here, with the size asked for. Sizes that come
 * from a file or a target are limited by the caller before they reach this header.
 */
#ifndef ASSAY_BASE_MEM_H
#define ASSAY_BASE_MEM_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"

void *xmalloc(size_t n) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t nr, size_t n) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *p, size_t n) __attribute__((returns_nonnull));
/* Overflow-checked realloc of nr elements of n bytes. */
void *xreallocarray(void *p, size_t nr, size_t n) __attribute__((returns_nonnull));
char *xstrdup(const char *s) __attribute__((returns_nonnull));
char *xstrndup(const char *s, size_t n) __attribute__((returns_nonnull));
void *xmemdup(const void *p, size_t n) __attribute__((returns_nonnull));
char *xasprintf(const char *fmt, ...) PRINTF(1, 2) __attribute__((returns_nonnull));
char *xvasprintf(const char *fmt, va_list ap) PRINTF(1, 0) __attribute__((returns_nonnull));
void mem_die(size_t n) NORETURN;

/* Hands a pointer out of a CLEANUP scope: return TAKE(p). */
#define TAKE(p)                            \
	({                                 \
		__typeof__(p) take_ = (p); \
		(p) = NULL;                \
		take_;                     \
	})
/* The same for a descriptor, whose empty value is -1. */
static inline int take_fd(int *fd)
{
	int r = *fd;
	*fd = -1;
	return r;
}

/* CLEANUP(free_p) char *s = NULL; and so on. */
void free_p(void *pp);
void close_p(int *fd);

#endif
