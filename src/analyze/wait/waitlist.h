/*
 * Report of `assay script --waits`: the single intervals off the CPU that a recording has kept (table
 * "intervals"), one row each, in order of time. Idle waits are included.
 */
#ifndef ASSAY_ANALYZE_WAIT_WAITLIST_H
#define ASSAY_ANALYZE_WAIT_WAITLIST_H

#include "analyze/report.h"
#include "analyze/select/select.h"
#include "base/base.h"
#include "base/err.h"

/*
 * Adds the table "intervals". -ENODATA: the recording has none; -EINVAL: a filter by duration, which
 * this table does not have; else errors as select_compile.
 */
int waitlist_report(struct report *r, const struct profile *p, const struct select_spec *spec,
		    struct err *err);

#endif
