/* Base64; see base64.h. */
#include "base/base.h"
#include "render/base64.h"

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
