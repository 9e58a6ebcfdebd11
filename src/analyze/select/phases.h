/*
 * Reports weight by phase. Phases are rules on root frames, time windows (select.h), or the
 * intervals between marks set during the capture. Samples without a phase are "<other>", so phases
 * add up to 100 %.
 */
#ifndef ASSAY_ANALYZE_SELECT_PHASES_H
#define ASSAY_ANALYZE_SELECT_PHASES_H

#include "analyze/view.h"
#include "base/base.h"

/* Adds two tables: the phases in the order of their rules, and the hottest functions of each. */
void phases_report(struct report *r, const struct selection *sel, uint64_t max_functions);

/*
 * Returns one rule per mark, from it to the next mark, named by its text; in the arena. Time before
 * the first mark is "<other>". *ret_nr is 0 for a profile without marks or timestamps.
 */
struct phase_rule *phases_from_marks(struct arena *a, const struct profile *p, size_t *ret_nr);

#endif
