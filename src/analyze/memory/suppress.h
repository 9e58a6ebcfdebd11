/*
 * Known leaks that the user does not want to see, in the format of LeakSanitizer's suppressions. A
 * line
 *
 *	leak:PATTERN
 *
 * suppresses allocations with a function, module or source file on their stack whose name contains
 * PATTERN; '*' is any text, '^' and '$' at its ends anchor it. Empty lines and lines that begin
 * with '#' are skipped. (Format: LeakSanitizer's documentation, "Suppressions".)
 *
 * Suppressed leaks are shown as one row, not dropped.
 */
#ifndef ASSAY_ANALYZE_MEMORY_SUPPRESS_H
#define ASSAY_ANALYZE_MEMORY_SUPPRESS_H

#include "base/arena.h"
#include "base/base.h"
#include "base/err.h"
#include "model/profile.h"

struct suppress;

/*
 * @text may be NULL: only the defaults apply (memory that runtimes never free by design; table in
 * suppress.c). -EINVAL with the line number.
 */
int suppress_new(struct suppress **ret_s, struct arena *a, const struct profile *p,
		 const char *text, struct err *err);
/* Returns whether allocations with this stack are suppressed. */
bool suppress_has(const struct suppress *s, stack_id stack);
/* Checks the syntax of @text, for commands before they start. */
int suppress_check(const char *text, struct err *err);

#endif
