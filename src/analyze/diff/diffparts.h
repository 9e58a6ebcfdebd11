/*
 * Comparisons that are shown with another one, of the same runs:
 *
 *	rows of a comparison        shown with it
 *	CPU samples, with waits     thread time by reason, waits by reason and waiting function
 *	waits, thread time          that by reason, waits by reason and waiting function
 *
 * So a change of waits is not missed in recordings of both, and CPU samples, whose shares have
 * narrower intervals than what is counted, are still compared as samples.
 */
#ifndef ASSAY_ANALYZE_DIFF_DIFFPARTS_H
#define ASSAY_ANALYZE_DIFF_DIFFPARTS_H

#include "analyze/diff/diff.h"
#include "analyze/select/select.h"
#include "base/arena.h"
#include "base/base.h"
#include "base/err.h"

#define DIFF_PARTS_MAX 3

/*
 * Adds the further comparisons behind ret_parts[0], which was made with @spec, and sets *ret_nr to
 * the number of all. Errors as views_select.
 */
int diffparts_add(struct diff *ret_parts, size_t *ret_nr, struct arena *a,
		  const struct select_spec *spec, struct err *err);
/* Whether the recordings have no process name in common: their call stacks are compared without these names. */
bool diffparts_are_different_programs(const struct diff_spec *d);
/*
 * Adds a warning as a sentence, if the recordings have no process name in common: what is aligned by name are then
 * different programs, most likely. Programs are named as the user named them.
 */
void diffparts_note_programs(struct report *r, const struct diff_spec *d);

#endif
