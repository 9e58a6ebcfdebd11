/*
 * Regular expressions that a user wrote, over text that anybody wrote: Perl syntax (PCRE2), with
 * limits on the pattern, on backtracking and on memory, so a bad pair is slow for milliseconds,
 * not for ever. Subjects are bytes; invalid UTF-8 matches nothing but does not fail.
 *
 * Compile once, match often. A struct regex is used by one thread at a time.
 */
#ifndef ASSAY_BASE_TEXT_REGEX_H
#define ASSAY_BASE_TEXT_REGEX_H

#include "base/base.h"
#include "base/err.h"
#include "base/sv.h"

enum regex_flags {
	REGEX_ICASE = 1 << 0,
	REGEX_WHOLE = 1 << 1,   /* must match the whole subject */
	REGEX_LITERAL = 1 << 2, /* no metacharacters: substring search */
};

#define REGEX_PATTERN_MAX 4096

struct regex;

/* Error: -EINVAL "pattern 'a(b': missing closing parenthesis at offset 3". */
int regex_new(struct regex **ret_re, const char *pattern, unsigned flags, struct err *err);
void regex_free(struct regex *re);
DEFINE_FREE_P(regex, struct regex)

/* Whether it matches somewhere. A match that hits the limits counts as none, and is counted. */
bool regex_match(struct regex *re, struct sv subject);
/* How many subjects were given up on; to be told to the user. */
uint64_t regex_nr_gave_up(const struct regex *re);

#endif
