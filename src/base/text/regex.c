/* Regular expressions with limits; see regex.h. */
#include "base/base.h"
#include "base/text/regex.h"

#include <errno.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/mem.h"

/* Limit of backtracking steps: about 10 ms for catastrophic backtracking. */
#define MATCH_LIMIT    1000000
#define DEPTH_LIMIT    10000
#define HEAP_LIMIT_KIB 16384

struct regex {
	pcre2_code *code;
	pcre2_match_data *match;
	pcre2_match_context *limits;
	uint64_t nr_gave_up;
};

void regex_free(struct regex *re)
{
	if (!re)
		return;
	pcre2_match_context_free(re->limits);
	pcre2_match_data_free(re->match);
	pcre2_code_free(re->code);
	free(re);
}

static uint32_t compile_options(unsigned flags)
{
	uint32_t options = PCRE2_NEVER_BACKSLASH_C;
	if (flags & REGEX_LITERAL)
		options = PCRE2_LITERAL;
	options |= PCRE2_UTF | PCRE2_MATCH_INVALID_UTF;
	if (flags & REGEX_ICASE)
		options |= PCRE2_CASELESS;
	if (flags & REGEX_WHOLE)
		options |= PCRE2_ANCHORED | PCRE2_ENDANCHORED;
	return options;
}

int regex_new(struct regex **ret_re, const char *pattern, unsigned flags, struct err *err)
{
	size_t n = strlen(pattern);
	if (n > REGEX_PATTERN_MAX)
		return err_set(err, -EINVAL, "pattern of %zu bytes is over the limit of %d", n,
			       REGEX_PATTERN_MAX);
	CLEANUP(regex_free_p) struct regex *re = xcalloc(1, sizeof(*re));
	int code = 0;
	PCRE2_SIZE off = 0;
	re->code = pcre2_compile((PCRE2_SPTR)pattern, n, compile_options(flags), &code, &off, NULL);
	if (!re->code) {
		char text[128] = "";
		(void)pcre2_get_error_message(code, (PCRE2_UCHAR *)text, sizeof(text));
		err_set(err, -EINVAL, "pattern '%s': %s at offset %zu", pattern, text, (size_t)off);
		return err_hint(err, "patterns have Perl syntax: to match one of ()[]{}*+?.| put "
				     "\\ before it");
	}
	/* without JIT (not built in, or executable memory not allowed) the interpreter is used */
	(void)pcre2_jit_compile(re->code, PCRE2_JIT_COMPLETE);
	re->match = pcre2_match_data_create_from_pattern(re->code, NULL);
	re->limits = pcre2_match_context_create(NULL);
	if (!re->match || !re->limits)
		mem_die(sizeof(*re));
	pcre2_set_match_limit(re->limits, MATCH_LIMIT);
	pcre2_set_depth_limit(re->limits, DEPTH_LIMIT);
	pcre2_set_heap_limit(re->limits, HEAP_LIMIT_KIB);
	*ret_re = TAKE(re);
	return 0;
}

bool regex_match(struct regex *re, struct sv subject)
{
	const char *p = subject.p ? subject.p : "";
	int rc = pcre2_match(re->code, (PCRE2_SPTR)p, subject.n, 0, 0, re->match, re->limits);
	if (rc < 0 && rc != PCRE2_ERROR_NOMATCH)
		re->nr_gave_up++;
	return rc >= 0;
}

bool regex_capture(struct regex *re, struct sv subject, struct sv *ret_group, struct sv *ret_rest)
{
	if (!regex_match(re, subject))
		return false;
	const PCRE2_SIZE *at = pcre2_get_ovector_pointer(re->match);
	for (uint32_t i = 1; i < pcre2_get_ovector_count(re->match); i++) {
		if (at[2 * i] == PCRE2_UNSET)
			continue;
		*ret_group = sv_from(subject.p + at[2 * i], at[2 * i + 1] - at[2 * i]);
		*ret_rest = sv_from(subject.p + at[2 * i + 1], subject.n - at[2 * i + 1]);
		return true;
	}
	return false;
}

bool regex_has_group(const struct regex *re)
{
	uint32_t nr = 0;
	return !pcre2_pattern_info(re->code, PCRE2_INFO_CAPTURECOUNT, &nr) && nr;
}

uint64_t regex_nr_over_limit(const struct regex *re)
{
	return re->nr_gave_up;
}
