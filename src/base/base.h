/*
 * The language that every other file is written in: fixed-width types, attributes, and the two
 * ways to say that a programmer was wrong. First include of every .c file.
 *
 * BUG() and ASSERT() are on in every build: they print file, line and reason and abort. They are
 * for what must hold, never for what a file, the kernel or a target may do (see err.h).
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
/* For qsort, the smaller first: COMPARE(a->x, b->x) ?: COMPARE(a->y, b->y). */
#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

#define PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define CLEANUP(fn)       __attribute__((cleanup(fn)))
#define UNUSED            __attribute__((unused))
#define NORETURN          __attribute__((noreturn))
#define LIKELY(x)         __builtin_expect(!!(x), 1)
#define UNLIKELY(x)       __builtin_expect(!!(x), 0)

/* x_free_p for CLEANUP, beside the declaration of x_free. */
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
