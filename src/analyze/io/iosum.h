/*
 * Input and output: what was read, written and synced, by kind of call, by file and by function,
 * from the table "io"; requests of block devices from "block". Bytes are those that calls returned.
 *
 * Quantiles as in quantile.h: right to a factor of 2, mostly much better; means and sums are exact.
 * Latency is the time from entering the call to leaving it: of a read from a peer, that includes
 * waiting for the peer.
 */
#ifndef ASSAY_ANALYZE_IO_IOSUM_H
#define ASSAY_ANALYZE_IO_IOSUM_H

#include "analyze/report.h"
#include "analyze/select/select.h"
#include "analyze/view.h"
#include "base/base.h"
#include "base/err.h"

/*
 * Tables "io_calls", "io_files", "io_functions", "io_syncs", "block". @input names the file in
 * hints, NULL: none are given. Errors as select_run.
 */
int iosum_report(struct report *r, const struct profile *p, const struct select_spec *spec,
		 const char *input, const struct view_limits *limits, struct err *err);

#endif
