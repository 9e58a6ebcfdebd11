/*
 * Finds the frames of a profile whose function name matches a regex. The regex is tried once per
 * function name. The results are arrays by function and by location, so loops over stacks need no
 * regex. Names are those shown in reports; an unsymbolized location is "[unknown]".
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
	/*
	 * By location, which has several frames if functions are inlined: index of its innermost
	 * and of its outermost matching frame, or MATCH_NONE.
	 */
	const uint16_t *innermost;
	const uint16_t *outermost;
	size_t nr_functions; /* number of matching functions */
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

/* Returns an array in the arena, 0 or 1 by stack_id: whether any frame of the stack matches. */
const uint8_t *match_stacks(struct arena *a, const struct profile *p, const struct match *m);

/* The names most similar to a name that was not found, for hints. */
#define NEAR_MAX 3
struct near {
	const char *wanted;          /* borrowed; a pattern or a name */
	const char *best[NEAR_MAX];  /* borrowed, best first; NULL = fewer */
	unsigned distance[NEAR_MAX]; /* edit distance of each */
};
void near_add(struct near *n, const char *candidate);
/* Sets the error's hint "did you mean 'a', 'b'?" if there are names. Returns the error's code. */
int near_hint(const struct near *n, struct err *err);

#endif
