/*
 * Many processes that live for a moment: a sentence for the first page. Much of
 * their time is in fork, exec, the dynamic linker and exit, so no function of theirs is hot.
 */
#ifndef ASSAY_ANALYZE_STACKS_SHORTLIVED_H
#define ASSAY_ANALYZE_STACKS_SHORTLIVED_H

#include "analyze/report.h"
#include "analyze/select/select.h"
#include "base/base.h"

/*
 * Says so in @r if more than 50 processes a second started and ended during the capture, of which
 * half lived for less than 50 ms: a finding if those use half of the CPU time, else a note. It is of
 * all processes: nothing is added to pages with filters.
 */
void shortlived_report(struct report *r, const struct selection *sel);

#endif
