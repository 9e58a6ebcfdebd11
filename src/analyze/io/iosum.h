/*
 * Report of I/O: bytes read and written, and fsync calls, by kind of call, by file and by function,
 * from the table "io"; block device requests from the table "block". Bytes are those that calls
 * returned.
 *
 * Quantiles as in quantile.h: within a factor of 2, mostly much closer; means and sums are exact.
 * Latency is the time from entry to exit of the call; of a read from a socket it includes waiting
 * for the other end.
 */
#ifndef ASSAY_ANALYZE_IO_IOSUM_H
#define ASSAY_ANALYZE_IO_IOSUM_H

#include "analyze/report.h"
#include "analyze/select/select.h"
#include "analyze/view.h"
#include "base/base.h"
#include "base/err.h"

/*
 * Adds tables "io_calls", "io_files", "io_functions", "io_syncs", "block". @input: file name for
 * hints; NULL: no hints. Errors as select_run.
 */
int iosum_report(struct report *r, const struct profile *p, const struct select_spec *spec,
		 const char *input, const struct view_limits *limits, struct err *err);
/* Adds the same to a report that has begun. */
int iosum_add(struct report *r, const struct profile *p, const struct select_spec *spec,
	      const struct view_limits *limits, struct err *err);

#endif
