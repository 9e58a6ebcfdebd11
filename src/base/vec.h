/*
 * Typed growable arrays: VEC(struct thing) things = {0}; vec_push(&things, t); things.p[i].
 * vec_release frees; the owner of the elements' contents releases those first.
 */
#ifndef ASSAY_BASE_VEC_H
#define ASSAY_BASE_VEC_H

#include "base/base.h"
#include "base/mem.h"

#define VEC(type)           \
	struct {            \
		type *p;    \
		size_t n;   \
		size_t cap; \
	}

#define vec_reserve(v, want)                                                       \
	do {                                                                       \
		size_t want_ = (want);                                             \
		if (want_ > (v)->cap) {                                            \
			size_t cap_ = MAX(want_, (v)->cap * 2);                    \
			(v)->cap = MAX(cap_, 8);                                   \
			(v)->p = xreallocarray((v)->p, (v)->cap, sizeof(*(v)->p)); \
		}                                                                  \
	} while (0)

#define vec_push(v, ...)                          \
	do {                                      \
		vec_reserve(v, (v)->n + 1);       \
		(v)->p[(v)->n++] = (__VA_ARGS__); \
	} while (0)

/* Appends a zeroed element and gives its address. */
#define vec_add(v)                                           \
	({                                                   \
		vec_reserve(v, (v)->n + 1);                  \
		memset(&(v)->p[(v)->n], 0, sizeof(*(v)->p)); \
		&(v)->p[(v)->n++];                           \
	})

#define vec_last(v)  (&(v)->p[(v)->n - 1])
#define vec_clear(v) ((void)((v)->n = 0))
#define vec_release(v)                 \
	do {                           \
		free((v)->p);          \
		(v)->p = NULL;         \
		(v)->n = (v)->cap = 0; \
	} while (0)
#define vec_foreach(it, v) for (__typeof__(*(v)->p) *it = (v)->p; it && it < (v)->p + (v)->n; it++)

/*
 * Binary search: how many of the @n elements at @p, which ascend by @member, have it below @key;
 * at or below it. So the latter is the index after the last one that may cover an address.
 */
#define nr_below(p, n, member, key) nr_first(p, n, member, <, key)
#define nr_upto(p, n, member, key)  nr_first(p, n, member, <=, key)
#define nr_first(p, n, member, is, key)                      \
	({                                                   \
		size_t lo_ = 0, hi_ = (n);                   \
		while (lo_ < hi_) {                          \
			size_t mid_ = lo_ + (hi_ - lo_) / 2; \
			if ((p)[mid_].member is(key))        \
				lo_ = mid_ + 1;              \
			else                                 \
				hi_ = mid_;                  \
		}                                            \
		lo_;                                         \
	})
/* The same over numbers. */
static inline size_t u64_nr_below(const uint64_t *v, size_t n, uint64_t key)
{
	size_t lo = 0, hi = n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (v[mid] < key)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* For CLEANUP of one, or of a struct that begins with one: free_p sees its pointer. */
#define vec_free_p free_p

#endif
