/*
 * Leaks that the user knows of and does not want to see, in the form of LeakSanitizer's
 * suppressions: a line
 *
 *	leak:PATTERN
 *
 * suppresses what was allocated with a function, module or source file on its stack whose name
 * holds PATTERN; '*' is any text, '^' and '$' at its ends anchor it. Empty lines and lines that
 * begin with '#' are skipped. (Form: LeakSanitizer's documentation, "Suppressions".)
 *
 * What is suppressed is shown as one row, never dropped.
 */
#ifndef ASSAY_ANALYZE_MEMORY_SUPPRESS_H
#define ASSAY_ANALYZE_MEMORY_SUPPRESS_H

#include "base/arena.h"
#include "base/base.h"
#include "base/err.h"
#include "model/profile.h"

struct suppress;

/*
 * @text may be NULL: then only the defaults hold (what runtimes keep for good by design: the table
 * is in suppress.c). -EINVAL with the line's number.
 */
int suppress_new(struct suppress **ret_s, struct arena *a, const struct profile *p,
		 const char *text, struct err *err);
bool suppress_has(const struct suppress *s, stack_id stack);
/* Is the text well-formed? For commands, before anything else is done. */
int suppress_check(const char *text, struct err *err);

#endif
