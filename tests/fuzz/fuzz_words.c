/*
 * Parsers of words that people type and of file names: numbers, sizes, durations, suggestions, names of
 * dumps; regular expressions, where a NUL byte separates the pattern from the subject.
 */
#include "base/base.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/text/num.h"
#include "base/text/regex.h"
#include "base/text/suggest.h"
#include "format/heap/jemallocheap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct sv text = sv_from((const char *)data, n);
	struct sv left = text;
	struct sv first = sv_split(&left, 0);
	uint64_t v;
	(void)num_parse_bytes(text, &v);
	(void)num_parse_count(text, &v);
	(void)num_parse_scaled(text, 1000, &v);
	(void)clock_parse_duration(text, &v);
	struct jemallocheap_name name;
	if (jemallocheap_parse_name(text, &name))
		ASSERT(name.pid > 0 && name.prefix.n < n);
	struct sv word = sv_from(first.p, MIN(first.n, (size_t)64));
	struct suggest s = suggest_for(word);
	suggest_offer(&s, sv_from(left.p, MIN(left.n, (size_t)64)));
	CLEANUP(free_p) char *pattern = xstrndup(first.p ? first.p : "", first.n);
	for (unsigned flags = 0; flags < 8; flags++) {
		CLEANUP(regex_free_p) struct regex *re = NULL;
		if (regex_new(&re, pattern, flags, NULL))
			continue;
		bool is_match = regex_match(re, left);
		ASSERT(is_match == regex_match(re, left));
	}
	return 0;
}
