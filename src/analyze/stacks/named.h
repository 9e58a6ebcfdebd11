/*
 * A table of the user's own rows: "--table FILE". Each line is
 *
 *	name<TAB>regex<TAB>remark          (tabs, then names may hold blanks)
 *	name regex remark to the end       (blanks)
 *
 * the remark may be missing; '#' starts a comment line. A sample belongs to the row whose regex
 * matches the frame nearest to its leaf (or to its root, with NAMED_NEAREST_ROOT); of several
 * that match one frame the first line wins. With "<other>" the rows add up to 100 %. The total
 * column counts every sample that passes through a frame of the row; it does not add up.
 */
#ifndef ASSAY_ANALYZE_STACKS_NAMED_H
#define ASSAY_ANALYZE_STACKS_NAMED_H

#include "analyze/view.h"
#include "base/base.h"
#include "base/err.h"
#include "base/sv.h"

struct named_rule {
	const char *name;
	const char *pattern;
	const char *note; /* "" when missing */
};

enum named_nearest { NAMED_NEAREST_LEAF, NAMED_NEAREST_ROOT };

/* -EINVAL with the line's number. Rules and their text live in the arena. */
int named_parse(struct arena *a, struct sv text, struct named_rule **ret_rules, size_t *ret_nr,
		struct err *err);
int named_report(struct report *r, const struct selection *sel, const struct named_rule *rules,
		 size_t nr_rules, enum named_nearest nearest, struct err *err);

#endif
