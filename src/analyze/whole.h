/*
 * The first page of a recording of everything (assay all): one page of the parts that other views have a
 * page each for, on one clock: thread time, CPU samples, waits, memory over time, I/O, page faults.
 */
#ifndef ASSAY_ANALYZE_WHOLE_H
#define ASSAY_ANALYZE_WHOLE_H

#include "analyze/report.h"
#include "analyze/select/select.h"
#include "analyze/view.h"
#include "base/base.h"
#include "base/err.h"

/* True if everything was to be recorded and some of it was. */
bool whole_exists(const struct profile *p);
/* Adds the page. @input: file name for hints; NULL: no hints. Errors as select_run. */
int whole_page(struct report *r, const struct profile *p, const struct select_spec *spec,
	       const char *input, const struct view_limits *limits, struct err *err);

#endif
