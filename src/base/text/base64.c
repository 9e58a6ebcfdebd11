/* Base64; see base64.h. */
#include "base/base.h"
#include "base/text/base64.h"

#include <errno.h>

void base64_add(struct buf *to, struct sv s)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *p = (const uint8_t *)s.p;
	char *out = buf_reserve(to, s.n / 3 * 4 + 8);
	size_t n = 0;
	for (size_t i = 0; i < s.n; i += 3) {
		uint32_t v = (uint32_t)p[i] << 16;
		v |= i + 1 < s.n ? (uint32_t)p[i + 1] << 8 : 0;
		v |= i + 2 < s.n ? p[i + 2] : 0;
		out[n++] = digits[v >> 18];
		out[n++] = digits[v >> 12 & 63];
		out[n++] = i + 1 < s.n ? digits[v >> 6 & 63] : '=';
		out[n++] = i + 2 < s.n ? digits[v & 63] : '=';
	}
	to->n += n;
	to->p[to->n] = 0;
}

static int value_of(char c)
{
	return c >= 'A' && c <= 'Z'   ? c - 'A'
	       : c >= 'a' && c <= 'z' ? c - 'a' + 26
	       : c >= '0' && c <= '9' ? c - '0' + 52
	       : c == '+'             ? 62
	       : c == '/'             ? 63
				      : -1;
}

int base64_decode(struct buf *to, struct sv text, struct err *err)
{
	size_t n = text.n;
	while (n && n + 2 >= text.n && text.p[n - 1] == '=')
		n--;
	if (text.n % 4)
		return err_set(err, -EBADMSG, "base64 of %zu characters is cut off", text.n);
	signed char values[256];
	for (unsigned i = 0; i < 256; i++)
		values[i] = (signed char)value_of((char)i);
	char *out = buf_reserve(to, text.n / 4 * 3 + 1);
	uint32_t v = 0;
	size_t nr = 0;
	for (size_t i = 0; i < n; i++) {
		int digit = values[(unsigned char)text.p[i]];
		if (digit < 0)
			return err_set(err, -EBADMSG, "no base64 at character %zu", i);
		v = v << 6 | (uint32_t)digit;
		if (i % 4)
			out[nr++] = (char)(v >> (6 - 2 * (i % 4)));
	}
	to->n += nr;
	to->p[to->n] = 0;
	return 0;
}
