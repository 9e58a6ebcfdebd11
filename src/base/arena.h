/*
 * Arena (bump) allocator for objects with the same lifetime: one arena for a profile, a report, or
 * scratch memory. Start with {0}.
 *
 * Pointers stay valid until arena_release, or until arena_rewind to a mark taken before the
 * allocation. Objects are never freed one by one. Not thread safe. Builds with AddressSanitizer
 * poison the space between and after objects, so overruns are still detected.
 */
#ifndef ASSAY_BASE_ARENA_H
#define ASSAY_BASE_ARENA_H

#include <stdarg.h>

#include "base/base.h"

struct arena_block;

struct arena {
	struct arena_block *blocks; /* newest first */
	size_t total_bytes;         /* allocated, for limits and statistics */
};

struct arena_mark {
	struct arena_block *block;
	size_t used;
	size_t total_bytes;
};

void arena_release(struct arena *a);
/* Uninitialised, 16-byte aligned. Never NULL. */
void *arena_alloc(struct arena *a, size_t n) __attribute__((returns_nonnull));
void *arena_calloc(struct arena *a, size_t nr, size_t n) __attribute__((returns_nonnull));
void *arena_dup(struct arena *a, const void *p, size_t n) __attribute__((returns_nonnull));
/* NUL-terminated copy of n bytes. */
char *arena_strndup(struct arena *a, const char *s, size_t n) __attribute__((returns_nonnull));
char *arena_strdup(struct arena *a, const char *s) __attribute__((returns_nonnull));
char *arena_fmt(struct arena *a, const char *fmt, ...) PRINTF(2, 3);

struct arena_mark arena_mark(const struct arena *a);
void arena_rewind(struct arena *a, struct arena_mark m);

#endif
