/*
 * Definitions that every file uses: fixed-width types, attributes, BUG() and ASSERT(). First
 * include of every .c file.
 *
 * BUG() and ASSERT() are active in every build: they print file, line and reason and abort. Use
 * them for programming errors only; bad input from a file, the kernel or a target is an error to
 * return (see err.h).
 */
#ifndef ASSAY_BASE_BASE_H
#define ASSAY_BASE_BASE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <inttypes.h>
#include <string.h>

#include "base/banned.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)    ((a) < (b) ? (a) : (b))
#define MAX(a, b)    ((a) > (b) ? (a) : (b))
/* Result of a qsort comparator, ascending: COMPARE(a->x, b->x) ?: COMPARE(a->y, b->y). */
#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

/* a + b; UINT64_MAX if that is too large. */
static inline uint64_t u64_add(uint64_t a, uint64_t b)
{
	uint64_t sum;
	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

#define PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define CLEANUP(fn)       __attribute__((cleanup(fn)))
#define UNUSED            __attribute__((unused))
#define NORETURN          __attribute__((noreturn))
#define LIKELY(x)         __builtin_expect(!!(x), 1)
#define UNLIKELY(x)       __builtin_expect(!!(x), 0)

/* Defines x_free_p, for use with CLEANUP, from x_free. */
#define DEFINE_FREE_P(name, type)                   \
	static inline void name##_free_p(type **pp) \
	{                                           \
		name##_free(*pp);                   \
		*pp = NULL;                         \
	}

void bug_at(const char *file, int line, const char *fmt, ...) NORETURN PRINTF(3, 4);
#define BUG(...) bug_at(__FILE__, __LINE__, __VA_ARGS__)
#define ASSERT(cond)                                                               \
	do {                                                                       \
		if (UNLIKELY(!(cond)))                                             \
			bug_at(__FILE__, __LINE__, "assertion failed: %s", #cond); \
	} while (0)

#endif
