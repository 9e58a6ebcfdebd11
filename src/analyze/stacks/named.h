/*
 * A table with rows defined by the user: "--table FILE". Each line is
 *
 *	name<TAB>regex<TAB>note          (tabs: names may contain spaces)
 *	name regex note                  (spaces: the note is the rest of the line)
 *
 * The note is optional; '#' starts a comment line. A sample belongs to the row whose regex matches
 * the frame nearest to its leaf (or to its root, with NAMED_NEAREST_ROOT). If several match one
 * frame, the first line wins. With "<other>" the rows add up to 100 %. The total column counts
 * every sample with a matching frame on its stack; totals do not add up.
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

/* Parses the file's text. Rules live in the arena. -EINVAL with the line number. */
int named_parse(struct arena *a, struct sv text, struct named_rule **ret_rules, size_t *ret_nr,
		struct err *err);
int named_report(struct report *r, const struct selection *sel, const struct named_rule *rules,
		 size_t nr_rules, enum named_nearest nearest, struct err *err);

#endif
