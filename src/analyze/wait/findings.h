/*
 * What a recording of waits comes to: sentences that name what the threads waited for, the largest
 * share first, so that the first one says what slows the program down most. They go to the report's
 * notes; what the data do not show is not claimed.
 */
#ifndef ASSAY_ANALYZE_WAIT_FINDINGS_H
#define ASSAY_ANALYZE_WAIT_FINDINGS_H

#include "analyze/report.h"
#include "analyze/select/select.h"
#include "analyze/wait/breakdown.h"
#include "base/base.h"

/*
 * @r has the tables of waits already, of whose first rows the sentences are made. Findings that it has
 * are taken for those of the CPU time.
 */
int findings_report(struct report *r, const struct selection *sel, const struct breakdown *l,
		    const struct select_spec *spec, struct err *err);

#endif
