/*
 * Checks whether bytes are well-formed XML of the kind that assay writes. Shares no code with the
 * writers except utf8_len.
 */
#ifndef ASSAY_TESTS_LIB_WELLFORMED_H
#define ASSAY_TESTS_LIB_WELLFORMED_H

#include "base/base.h"
#include "base/text/escape.h"
#include "base/sv.h"

/* Returns whether text has no markup, entities are complete, tags balance, and bytes are legal. */
static inline bool is_well_formed(struct sv s)
{
	int depth = 0;
	while (s.n) {
		size_t n = utf8_len(s);
		unsigned char c = (unsigned char)s.p[0];
		if (!n || (n == 1 && c < 0x20 && c != '\n' && c != '\t') ||
		    (n == 3 && c == 0xef && !memcmp(s.p + 1, "\xbf\xbf", 2)))
			return false;
		if (sv_has_prefix(s, SV("<![CDATA["))) {
			const char *end = memmem(s.p, s.n, "]]>", 3);
			if (!end)
				return false;
			s = sv_from_idx(s, (size_t)(end - s.p) + 3);
			continue;
		}
		if (c == '<') {
			const char *end = memchr(s.p, '>', s.n);
			if (!end || s.n < 3)
				return false;
			bool is_end = s.p[1] == '/';
			bool is_empty = end[-1] == '/' || s.p[1] == '?';
			depth += is_end ? -1 : is_empty ? 0 : 1;
			s = sv_from_idx(s, (size_t)(end - s.p) + 1);
			continue;
		}
		if (c == '&' && !memchr(s.p, ';', MIN(s.n, 7)))
			return false;
		s = sv_from_idx(s, n);
	}
	return depth == 0;
}

#endif
