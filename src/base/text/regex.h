/*
 * Regular expressions from the user, matched against untrusted text: Perl syntax (PCRE2), with
 * limits on the pattern, on backtracking and on memory, so that catastrophic backtracking ends
 * after milliseconds. Subjects are bytes; invalid UTF-8 never matches and is not an error.
 *
 * A struct regex may be used by one thread at a time.
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

/* Whether the pattern matches in the subject. Reaching a limit is no match, and is counted. */
bool regex_match(struct regex *re, struct sv subject);
/*
 * The first capturing group that matched, and what follows it in the subject. False: no match, or the
 * pattern has no group that took part in it.
 */
bool regex_capture(struct regex *re, struct sv subject, struct sv *ret_group, struct sv *ret_rest);
bool regex_has_group(const struct regex *re);
/* Number of subjects for which a limit was reached; the caller should report it to the user. */
uint64_t regex_nr_over_limit(const struct regex *re);

#endif
