/* JSON reader; see jsonread.h. */
#include "base/base.h"
#include "base/text/jsonread.h"

#include <math.h>
#include <stdlib.h>

#define SURROGATE_HIGH 0xd800u
#define SURROGATE_LOW  0xdc00u
#define SURROGATE_END  0xe000u
#define REPLACEMENT    0xfffdu
#define NUMBER_MAX     63 /* bytes; longer ones are skipped */

struct jsonread jsonread_from(struct sv text)
{
	return (struct jsonread){.left = text};
}

bool jsonread_is_bad(const struct jsonread *j)
{
	return j->is_bad;
}

static bool fail(struct jsonread *j)
{
	j->is_bad = true;
	j->left.n = 0;
	return false;
}

/* The next byte that is no blank; 0: the end. */
static char peek(struct jsonread *j)
{
	(void)sv_take(&j->left, " \t\r\n");
	return j->left.n ? *j->left.p : 0;
}

static bool take(struct jsonread *j, char c)
{
	if (peek(j) != c || !j->left.n)
		return false;
	j->left = sv_from_idx(j->left, 1);
	return true;
}

static void add_utf8(struct buf *to, uint32_t c)
{
	if (c < 0x80) {
		buf_add_ch(to, (char)c);
		return;
	}
	if (c < 0x800) {
		buf_add_ch(to, (char)(0xc0 | c >> 6));
	} else if (c < 0x10000) {
		buf_add_ch(to, (char)(0xe0 | c >> 12));
		buf_add_ch(to, (char)(0x80 | (c >> 6 & 0x3f)));
	} else {
		buf_add_ch(to, (char)(0xf0 | c >> 18));
		buf_add_ch(to, (char)(0x80 | (c >> 12 & 0x3f)));
		buf_add_ch(to, (char)(0x80 | (c >> 6 & 0x3f)));
	}
	buf_add_ch(to, (char)(0x80 | (c & 0x3f)));
}

static bool take_hex4(struct jsonread *j, uint32_t *ret_v)
{
	uint32_t v = 0;
	for (size_t i = 0; i < 4; i++) {
		char c = i < j->left.n ? j->left.p[i] : 0;
		bool is_letter = (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
		if (!is_letter && !(c >= '0' && c <= '9'))
			return fail(j);
		v = v << 4 | (uint32_t)(is_letter ? (c & 7) + 9 : c - '0');
	}
	j->left = sv_from_idx(j->left, 4);
	*ret_v = v;
	return true;
}

/* After "\u". Characters beyond the first 65,536 are two escapes, a surrogate pair. */
static bool take_unicode(struct jsonread *j, struct buf *to)
{
	uint32_t c;
	uint32_t low = 0;
	if (!take_hex4(j, &c))
		return false;
	if (c >= SURROGATE_HIGH && c < SURROGATE_LOW && sv_has_prefix(j->left, SV("\\u"))) {
		j->left = sv_from_idx(j->left, 2);
		if (!take_hex4(j, &low))
			return false;
		if (low >= SURROGATE_LOW && low < SURROGATE_END)
			c = 0x10000 + ((c - SURROGATE_HIGH) << 10) + (low - SURROGATE_LOW);
	}
	bool is_half = c >= SURROGATE_HIGH && c < SURROGATE_END;
	add_utf8(to, is_half || !c ? REPLACEMENT : c); /* a name never contains NUL */
	return true;
}

static bool take_escape(struct jsonread *j, struct buf *to)
{
	static const char from[] = "\"\\/bfnrt";
	static const char into[] = "\"\\/\b\f\n\r\t";
	char c = j->left.n ? *j->left.p : 0;
	const char *at = c ? strchr(from, c) : NULL;
	if (!at && c != 'u')
		return fail(j);
	j->left = sv_from_idx(j->left, 1);
	if (!at)
		return take_unicode(j, to);
	buf_add_ch(to, into[at - from]);
	return true;
}

/* The next byte is the quote. */
static bool take_string(struct jsonread *j, struct buf *to)
{
	buf_clear(to);
	if (!take(j, '"'))
		return fail(j);
	for (;;) {
		size_t n = 0;
		while (n < j->left.n && j->left.p[n] != '"' && j->left.p[n] != '\\' &&
		       (unsigned char)j->left.p[n] >= ' ')
			n++;
		if (n == j->left.n || (unsigned char)j->left.p[n] < ' ')
			return fail(j);
		buf_add_sv(to, sv_from(j->left.p, n));
		bool is_end = j->left.p[n] == '"';
		j->left = sv_from_idx(j->left, n + 1);
		if (is_end)
			return true;
		if (!take_escape(j, to))
			return false;
	}
}

void jsonread_skip(struct jsonread *j)
{
	static const char literal[] = "+-.0123456789abcdefghijklmnopqrstuvwxyzE";
	CLEANUP(buf_release) struct buf unused = {0};
	size_t depth = 0;
	do {
		char c = peek(j);
		if (c == '"') {
			(void)take_string(j, &unused);
		} else if (c && strchr("{}[],:", c)) {
			j->left = sv_from_idx(j->left, 1);
			depth += c == '{' || c == '[';
			if ((c == '}' || c == ']') && depth-- == 0)
				(void)fail(j);
		} else if (!sv_take(&j->left, literal).n) {
			(void)fail(j);
		}
	} while (depth && !j->is_bad);
}

static bool enter(struct jsonread *j, char bracket)
{
	if (!j->is_bad && take(j, bracket))
		return true;
	if (!j->is_bad)
		jsonread_skip(j);
	return false;
}

bool jsonread_obj(struct jsonread *j)
{
	return enter(j, '{');
}

bool jsonread_arr(struct jsonread *j)
{
	return enter(j, '[');
}

bool jsonread_key(struct jsonread *j, struct buf *key)
{
	if (j->is_bad || take(j, '}'))
		return false;
	(void)take(j, ',');
	if (!take_string(j, key))
		return false;
	return take(j, ':') || fail(j);
}

bool jsonread_more(struct jsonread *j)
{
	if (j->is_bad || take(j, ']'))
		return false;
	(void)take(j, ',');
	return peek(j) && peek(j) != ']' ? true : fail(j);
}

bool jsonread_str(struct jsonread *j, struct buf *to)
{
	if (!j->is_bad && peek(j) == '"')
		return take_string(j, to);
	if (!j->is_bad)
		jsonread_skip(j);
	return false;
}

bool jsonread_number(struct jsonread *j, double *ret)
{
	char text[NUMBER_MAX + 1];
	char *end;
	struct sv start = j->is_bad || !peek(j) ? (struct sv){0} : j->left;
	jsonread_skip(j);
	size_t n = start.n - j->left.n;
	if (j->is_bad || !n || n > NUMBER_MAX || !strchr("-0123456789", start.p[0]))
		return false;
	memcpy(text, start.p, n);
	text[n] = 0;
	double v = strtod(text, &end);
	if (end != text + n || !isfinite(v))
		return false;
	*ret = v;
	return true;
}
