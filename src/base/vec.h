/*
 * Typed growable arrays: VEC(struct thing) things = {0}; vec_push(&things, t); things.p[i].
 * vec_release frees the array; memory that elements own must be released before.
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

/* Appends a zeroed element and returns its address, valid until the next append. */
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
 * Binary search in the @n elements at @p, which are sorted by @member in ascending order.
 * lower_bound: index of the first element with member >= key; upper_bound: of the first with
 * member > key (so upper_bound - 1 is the last range that may contain an address). n if none.
 */
#define lower_bound(p, n, member, key) vec_bound_(p, n, member, <, key)
#define upper_bound(p, n, member, key) vec_bound_(p, n, member, <=, key)
#define vec_bound_(p, n, member, is, key)                    \
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
/* lower_bound over an array of numbers. */
static inline size_t u64_lower_bound(const uint64_t *v, size_t n, uint64_t key)
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

/* For CLEANUP of a VEC, or of a struct whose first member is one: frees the array `p`. */
#define vec_free_p free_p

#endif
