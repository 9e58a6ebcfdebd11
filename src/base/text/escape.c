/* Escaping; see escape.h. */
#include "base/base.h"
#include "base/text/escape.h"

size_t utf8_len(struct sv s)
{
	if (!s.n)
		return 0;
	const unsigned char *p = (const unsigned char *)s.p;
	if (p[0] < 0x80)
		return 1;
	size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	if (p[0] < 0xc2 || p[0] > 0xf4 || n > s.n)
		return 0;
	uint32_t c = p[0] & (0xffu >> (n + 1));
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	if ((n == 3 && c < 0x800) || (n == 4 && (c < 0x10000 || c > 0x10ffff)) ||
	    (c >= 0xd800 && c <= 0xdfff))
		return 0;
	return n;
}

#define REPLACEMENT "\xef\xbf\xbd"

/* Characters that are never output as they are: C0 without tab/newline, DEL, C1, noncharacters. */
static bool is_control(struct sv s, size_t n)
{
	const unsigned char *p = (const unsigned char *)s.p;
	if (n == 1)
		return p[0] < 0x20 || p[0] == 0x7f;
	if (n == 2)
		return p[0] == 0xc2 && p[1] < 0xa0;
	return n == 3 && p[0] == 0xef && p[1] == 0xbf && p[2] >= 0xbe;
}

static void add_hex_bytes(struct buf *to, struct sv s, size_t n, const char *fmt)
{
	for (size_t i = 0; i < n; i++) {
		char text[8];
		int len = snprintf(text, sizeof(text), "%s%02x", fmt, (unsigned char)s.p[i]);
		buf_add(to, text, (size_t)len);
	}
}

void escape_xml(struct buf *to, struct sv s)
{
	while (s.n) {
		size_t n = utf8_len(s);
		if (!n) {
			buf_add_str(to, REPLACEMENT);
			n = 1;
		} else if (n == 1 && strchr("&<>\"'", s.p[0])) {
			buf_add_str(to, s.p[0] == '&'    ? "&amp;"
					: s.p[0] == '<'  ? "&lt;"
					: s.p[0] == '>'  ? "&gt;"
					: s.p[0] == '"'  ? "&quot;"
					: s.p[0] == '\'' ? "&#39;"
							 : "\\x00");
		} else if (is_control(s, n)) {
			add_hex_bytes(to, s, n, "\\x");
		} else {
			buf_add(to, s.p, n);
		}
		s = sv_from_idx(s, n);
	}
}

void escape_xml_lines(struct buf *to, struct sv s)
{
	const char *end;
	while (s.n && (end = memchr(s.p, '\n', s.n))) {
		size_t n = (size_t)(end - s.p);
		escape_xml(to, (struct sv){s.p, n});
		buf_add_ch(to, '\n');
		s = sv_from_idx(s, n + 1);
	}
	escape_xml(to, s);
}

void escape_json(struct buf *to, struct sv s)
{
	while (s.n) {
		size_t n = utf8_len(s);
		unsigned char c = (unsigned char)s.p[0];
		if (!n) {
			buf_add_str(to, REPLACEMENT);
			n = 1;
		} else if (c == '"' || c == '\\') {
			buf_add_ch(to, '\\');
			buf_add_ch(to, (char)c);
		} else if (c == '\n') {
			buf_add_str(to, "\\n");
		} else if (c == '\t') {
			buf_add_str(to, "\\t");
		} else if (c < 0x20 || c == 0x7f) {
			add_hex_bytes(to, s, 1, "\\u00");
		} else {
			buf_add(to, s.p, n);
		}
		s = sv_from_idx(s, n);
	}
}

void escape_term(struct buf *to, struct sv s)
{
	while (s.n) {
		size_t n = utf8_len(s);
		if (!n || is_control(s, n)) {
			n = n ? n : 1;
			add_hex_bytes(to, s, n, "\\x");
		} else {
			buf_add(to, s.p, n);
		}
		s = sv_from_idx(s, n);
	}
}

size_t utf8_columns(struct sv s)
{
	size_t n = 0;
	for (size_t i = 0; i < s.n; i++)
		n += ((unsigned char)s.p[i] & 0xc0) != 0x80;
	return n;
}

void escape_filename(struct buf *to, struct sv s)
{
	size_t start = to->n;
	for (size_t i = 0; i < s.n && i < 100; i++) {
		char c = s.p[i];
		bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			  (c >= '0' && c <= '9') || c == '_' || c == '-' ||
			  (c == '.' && to->n > start);
		buf_add_ch(to, ok ? c : '_');
	}
	if (to->n == start)
		buf_add_ch(to, '_');
}

static bool is_shell_safe(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       strchr("_-./:=@%+,", c);
}

void escape_shell(struct buf *to, struct sv s)
{
	size_t nr_safe = 0;
	while (nr_safe < s.n && s.p[nr_safe] && is_shell_safe(s.p[nr_safe]))
		nr_safe++;
	if (s.n && nr_safe == s.n) {
		buf_add_sv(to, s);
		return;
	}
	buf_add_ch(to, '\'');
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '\'')
			buf_add_str(to, "'\\''");
		else
			buf_add_ch(to, s.p[i]);
	}
	buf_add_ch(to, '\'');
}
