/*
 * Page faults and what memory pressure cost: by kind, by what is mapped there and by function, from
 * the tables "faults" and "reclaim". Counts are exact.
 *
 * No hit rate is given: a page that is mapped already faults not at all, one fault maps pages
 * around it, and a major fault reads as much as read-ahead decides.
 */
#ifndef ASSAY_ANALYZE_IO_FAULTSUM_H
#define ASSAY_ANALYZE_IO_FAULTSUM_H

#include "analyze/report.h"
#include "analyze/select/select.h"
#include "analyze/view.h"
#include "base/base.h"
#include "base/err.h"

/*
 * Tables "faults", "fault_objects", "fault_functions", "reclaim", "reclaim_functions". @input names
 * the file in hints, NULL: none are given. Errors as select_run.
 */
int faultsum_report(struct report *r, const struct profile *p, const struct select_spec *spec,
		    const char *input, const struct view_limits *limits, struct err *err);

#endif
