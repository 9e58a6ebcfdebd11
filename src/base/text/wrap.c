/* Wrapped text; see wrap.h. */
#include "base/base.h"
#include "base/text/wrap.h"

#include "base/text/escape.h"

static void break_line(struct buf *to, size_t indent)
{
	buf_add_ch(to, '\n');
	buf_add_repeat(to, ' ', indent);
}

/* Bytes of the first @columns code points. */
static size_t fitting(struct sv s, size_t columns)
{
	size_t at = 0;
	while (at < s.n && columns--)
		at += MAX(utf8_len(sv_from_idx(s, at)), (size_t)1);
	return MIN(at, s.n);
}

void wrap_add(struct buf *to, struct sv text, size_t column, size_t indent, size_t width)
{
	if (!width) {
		buf_add_sv(to, text);
		return;
	}
	width = MAX(width, indent + 8); /* too narrow for anything is still not endless */
	size_t start = column;
	for (size_t at = column; text.n;) {
		struct sv word = sv_split(&text, ' ');
		size_t n = utf8_columns(word);
		if (at > start && at + 1 + n > width) {
			break_line(to, indent);
			at = start = indent;
		} else if (at > start) {
			buf_add_ch(to, ' ');
			at++;
		}
		while (at + n > width) {
			size_t part = fitting(word, width > at ? width - at : 0);
			buf_add(to, word.p, part);
			word = sv_from_idx(word, part);
			break_line(to, indent);
			at = start = indent;
			n = utf8_columns(word);
		}
		buf_add_sv(to, word);
		at += n;
	}
}
