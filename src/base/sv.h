/*
 * String views: pointer and length, borrowed, not NUL-terminated. Valid as long as the memory that
 * they point into.
 * Print with printf("%.*s", SV_ARGS(s)).
 */
#ifndef ASSAY_BASE_SV_H
#define ASSAY_BASE_SV_H

#include "base/base.h"

struct sv {
	const char *p;
	size_t n;
};

#define SV(lit)    ((struct sv){"" lit, sizeof(lit) - 1})
#define SV_ARGS(s) (int)(s).n, (s).p

static inline struct sv sv_from(const char *p, size_t n)
{
	return (struct sv){p, n};
}
struct sv sv_from_str(const char *s);
bool sv_eq(struct sv a, struct sv b);
bool sv_eq_str(struct sv a, const char *s);
bool sv_has_prefix(struct sv s, struct sv prefix);
bool sv_has_suffix(struct sv s, struct sv suffix);
struct sv sv_trim(struct sv s);
/* Index of the first/last byte c, or -1. */
ssize_t sv_index(struct sv s, char c);
ssize_t sv_rindex(struct sv s, char c);
/* Returns the part before the first c and sets *s to the part after it; without c, all of *s. */
struct sv sv_split(struct sv *s, char c);
/* Whether @list has @item among its parts, ignoring blanks around parts. */
bool sv_has_item(struct sv list, char separator, struct sv item);
/* Removes and returns the longest prefix of *s that consists of characters in @bytes. */
struct sv sv_take(struct sv *s, const char *bytes);
/* Bytes [from, n); an empty view when from is past the end. */
struct sv sv_from_idx(struct sv s, size_t from);

/* Parse the whole view as a number; return false and leave *ret_v untouched otherwise. */
bool sv_to_u64(struct sv s, uint64_t *ret_v);
bool sv_to_i64(struct sv s, int64_t *ret_v);
bool sv_to_hex(struct sv s, uint64_t *ret_v); /* without or with 0x */
bool sv_to_double(struct sv s, double *ret_v);

#endif
