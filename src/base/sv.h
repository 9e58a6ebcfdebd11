/*
 * String views: borrowed, not NUL-terminated. Valid as long as what they point into.
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
/* Takes everything up to (not including) the first c out of *s; *s keeps what follows it. */
struct sv sv_split(struct sv *s, char c);
/* Whether one of the parts between separators is @item, blanks around it aside. */
bool sv_has_item(struct sv list, char separator, struct sv item);
/* Takes the bytes at the front of *s that are among @bytes. */
struct sv sv_take(struct sv *s, const char *bytes);
/* Bytes [from, n); an empty view when from is past the end. */
struct sv sv_from_idx(struct sv s, size_t from);

/* Strict: the whole view must be the number. Return false and leave *ret_v alone otherwise. */
bool sv_to_u64(struct sv s, uint64_t *ret_v);
bool sv_to_i64(struct sv s, int64_t *ret_v);
bool sv_to_hex(struct sv s, uint64_t *ret_v); /* without or with 0x */
bool sv_to_double(struct sv s, double *ret_v);

#endif
