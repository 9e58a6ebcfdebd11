/*
 * Weight by phase: by rules on root frames or windows of time (select.h), or between the marks
 * that were set during the capture. What no rule takes is "<other>", so phases add up to 100 %.
 */
#ifndef ASSAY_ANALYZE_SELECT_PHASES_H
#define ASSAY_ANALYZE_SELECT_PHASES_H

#include "analyze/view.h"
#include "base/base.h"

/* Two tables: the phases in the order of their rules, and the heaviest functions of each. */
void phases_report(struct report *r, const struct selection *sel, uint64_t max_functions);

/*
 * One rule a mark, from it to the next one, named by its text; in the arena. What precedes the
 * first mark stays "<other>". 0 rules for a profile without marks or times.
 */
struct phase_rule *phases_from_marks(struct arena *a, const struct profile *p, size_t *ret_nr);

#endif
