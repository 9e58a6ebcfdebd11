/* String views; see sv.h. */
#include "base/base.h"
#include "base/sv.h"

#include <ctype.h>
#include <errno.h>

struct sv sv_from_str(const char *s)
{
	return (struct sv){s, s ? strlen(s) : 0};
}

bool sv_eq(struct sv a, struct sv b)
{
	return a.n == b.n && (a.n == 0 || !memcmp(a.p, b.p, a.n));
}

bool sv_eq_str(struct sv a, const char *s)
{
	return sv_eq(a, sv_from_str(s));
}

bool sv_has_prefix(struct sv s, struct sv prefix)
{
	return s.n >= prefix.n && (prefix.n == 0 || !memcmp(s.p, prefix.p, prefix.n));
}

bool sv_has_suffix(struct sv s, struct sv suffix)
{
	return s.n >= suffix.n &&
	       (suffix.n == 0 || !memcmp(s.p + s.n - suffix.n, suffix.p, suffix.n));
}

struct sv sv_trim(struct sv s)
{
	while (s.n && isspace((unsigned char)s.p[0])) {
		s.p++;
		s.n--;
	}
	while (s.n && isspace((unsigned char)s.p[s.n - 1]))
		s.n--;
	return s;
}

ssize_t sv_index(struct sv s, char c)
{
	const char *q = s.n ? memchr(s.p, c, s.n) : NULL;
	return q ? q - s.p : -1;
}

ssize_t sv_rindex(struct sv s, char c)
{
	const char *q = s.n ? memrchr(s.p, c, s.n) : NULL;
	return q ? q - s.p : -1;
}

struct sv sv_split(struct sv *s, char c)
{
	ssize_t i = sv_index(*s, c);
	if (i < 0) {
		struct sv all = *s;
		*s = sv_from(s->p + s->n, 0);
		return all;
	}
	struct sv head = sv_from(s->p, (size_t)i);
	*s = sv_from(s->p + i + 1, s->n - (size_t)i - 1);
	return head;
}

bool sv_has_item(struct sv list, char separator, struct sv item)
{
	while (list.n)
		if (sv_eq(sv_trim(sv_split(&list, separator)), item))
			return true;
	return false;
}

struct sv sv_take(struct sv *s, const char *bytes)
{
	struct sv head = sv_from(s->p, 0);
	while (head.n < s->n && s->p[head.n] && strchr(bytes, s->p[head.n]))
		head.n++;
	*s = sv_from_idx(*s, head.n);
	return head;
}

struct sv sv_from_idx(struct sv s, size_t from)
{
	from = MIN(from, s.n);
	if (!from)
		return s; /* the pointer of an empty view may be NULL */
	return sv_from(s.p + from, s.n - from);
}

bool sv_to_u64(struct sv s, uint64_t *ret_v)
{
	if (!s.n)
		return false;
	uint64_t v = 0;
	for (size_t i = 0; i < s.n; i++) {
		unsigned d = (unsigned)(unsigned char)s.p[i] - '0';
		if (d > 9 || __builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, d, &v))
			return false;
	}
	*ret_v = v;
	return true;
}

bool sv_to_i64(struct sv s, int64_t *ret_v)
{
	bool neg = s.n && s.p[0] == '-';
	uint64_t v;
	if (!sv_to_u64(sv_from_idx(s, neg), &v) || v > (uint64_t)INT64_MAX + neg)
		return false;
	*ret_v = neg ? (int64_t)(0 - v) : (int64_t)v;
	return true;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool sv_to_hex(struct sv s, uint64_t *ret_v)
{
	if (s.n > 2 && s.p[0] == '0' && (s.p[1] | 0x20) == 'x')
		s = sv_from_idx(s, 2);
	if (!s.n || s.n > 16)
		return false;
	uint64_t v = 0;
	for (size_t i = 0; i < s.n; i++) {
		int d = hex_digit(s.p[i]);
		if (d < 0)
			return false;
		v = v << 4 | (unsigned)d;
	}
	*ret_v = v;
	return true;
}

bool sv_to_double(struct sv s, double *ret_v)
{
	char text[64];
	if (!s.n || s.n >= sizeof(text) || isspace((unsigned char)s.p[0]))
		return false;
	memcpy(text, s.p, s.n);
	text[s.n] = 0;
	char *end;
	errno = 0;
	double v = strtod(text, &end);
	if (errno || *end)
		return false;
	*ret_v = v;
	return true;
}
