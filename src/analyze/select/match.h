/*
 * Finds the frames of a profile that match a regex. The regex is tried once per function name. The
 * results are tables by function and by location, so that loops over stacks only look up. Names are
 * those shown in reports; an unsymbolized location is "[unknown]".
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
	size_t nr_functions;       /* number of matching functions */
};

/*
 * @option is the option's name for messages ("--within"). -EINVAL: invalid regex, or one that takes
 * too many steps on these names. -ENOENT: no function matches; the hint has similar names.
 */
int match_functions(struct arena *a, const struct profile *p, const char *option,
		    const char *pattern, struct match *ret_m, struct err *err);
/* The same, but no match is not an error. */
int match_functions_if_any(struct arena *a, const struct profile *p, const char *option,
			   const char *pattern, struct match *ret_m, struct err *err);

/* Returns 0 or 1 by stack_id: whether any frame of the stack matches. In the arena. */
const uint8_t *match_stacks(struct arena *a, const struct profile *p, const struct match *m);

/* The most similar names for a name that was not found, for hints. */
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
