/*
 * Which frames of a profile a regex matches. The regex is tried once per function name; the
 * answers are tables by function and by location, so that walks over stacks only look up.
 * Names are those that views show; a location without a name is "[unknown]".
 */
#ifndef ASSAY_ANALYZE_SELECT_MATCH_H
#define ASSAY_ANALYZE_SELECT_MATCH_H

#include "base/arena.h"
#include "base/base.h"
#include "base/err.h"
#include "model/profile.h"

#define MATCH_NONE UINT16_MAX

struct match {
	const uint8_t *by_func; /* 0 or 1 by func_id; [0] is "[unknown]" */
	const uint16_t
		*innermost; /* by location: index of its first matching frame, or MATCH_NONE */
	const uint16_t *outermost; /* of its last one */
	size_t nr_functions;       /* how many functions match */
};

/*
 * @option names the option in messages ("--within"). -EINVAL: bad regex, or one that is too
 * expensive on these names; -ENOENT: no function matches, the hint has near ones.
 */
int match_functions(struct arena *a, const struct profile *p, const char *option,
		    const char *pattern, struct match *ret_m, struct err *err);
/* The same, but no match at all is fine. */
int match_functions_if_any(struct arena *a, const struct profile *p, const char *option,
			   const char *pattern, struct match *ret_m, struct err *err);

/* 0 or 1 by stack_id: whether some frame of the stack matches. In the arena. */
const uint8_t *match_stacks(struct arena *a, const struct profile *p, const struct match *m);

/* The best few candidates for a name that is not there, for hints. */
#define NEAR_MAX 3
struct near {
	const char *wanted;         /* borrowed; a pattern or a name */
	const char *best[NEAR_MAX]; /* borrowed, best first; NULL = fewer */
	unsigned distance[NEAR_MAX];
};
void near_add(struct near *n, const char *candidate);
/* "did you mean 'a', 'b'?" as the error's hint, if there are any. Returns the error's code. */
int near_hint(const struct near *n, struct err *err);

#endif
