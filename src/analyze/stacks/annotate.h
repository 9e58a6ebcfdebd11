/*
 * The tables of `assay report --annotate`: the instructions of the hottest matching functions, in
 * order of their addresses, with the samples at each (stacks/hotcode.h).
 */
#ifndef ASSAY_ANALYZE_STACKS_ANNOTATE_H
#define ASSAY_ANALYZE_STACKS_ANNOTATE_H

#include "analyze/report.h"
#include "analyze/select/select.h"
#include "analyze/view.h"
#include "base/base.h"
#include "base/err.h"
#include "model/code.h"

#define ANNOTATE_FUNCTIONS_MAX 5 /* more are named in a note */

/*
 * Adds a table "instructions" for each function whose name, or that of code inlined into it, matches
 * @pattern. Of each the @limits->max_rows instructions with most samples and some around them; runs
 * of others are one row. 0: all instructions. -EINVAL, -ENOENT as match_functions.
 */
int annotate_report(struct report *r, const struct selection *sel, const char *pattern,
		    const struct code_access *code, const struct view_limits *limits,
		    struct err *err);

/* "dict.c:512", and the inlined function that the line is of: "dict.c:512 siphash"; "" if not known. */
const char *annotate_line(struct arena *a, const struct profile *p, loc_id loc);

#endif
