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

/* Sums, for the measures of diagnose/. Texts are in the caller's arena. */
struct io_figures {
	double seconds;
	bool has_syncs_only; /* reads and writes were not recorded */
	uint64_t ns;         /* in all calls */
	const char *blocked; /* "; from call to return: blocked for ..", or "" */
	const char *call;    /* the one with most time; "": none */
	uint64_t call_nr;
	uint64_t call_ns;
	const char *file; /* with most time */
	uint64_t file_ns;
	const char *bytes_file; /* with most bytes */
	uint64_t nr_reads;
	uint64_t read_bytes;
	uint64_t write_bytes;
	uint64_t nr_syncs;
	uint64_t sync_ns;
	uint64_t sync_p99_ns;
	uint64_t nr_requests; /* of block devices */
	uint64_t request_ns;
	uint64_t request_p50_ns;
	uint64_t request_p99_ns;
};

int iosum_figures(struct io_figures *ret_f, struct arena *a, const struct profile *p,
		  const struct select_spec *spec, struct err *err);

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
