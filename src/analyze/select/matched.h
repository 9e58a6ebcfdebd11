/* Which functions the pattern of an option matches, and their share of the rows shown: a note. */
#ifndef ASSAY_ANALYZE_SELECT_MATCHED_H
#define ASSAY_ANALYZE_SELECT_MATCHED_H

#include "analyze/report.h"
#include "analyze/select/select.h"
#include "base/base.h"

/*
 * "--callers 'spin' matches 7 functions: spin_lock (12 %), spin_wait (3 %) and 5 more; one of them is on
 * the stacks of 14 % of what is shown". Nothing if @pattern is NULL, matches none of them, or is the name
 * of the only one. @option: "--callers"
 */
void matched_note(struct report *r, const struct selection *sel, const char *option,
		  const char *pattern);

#endif
