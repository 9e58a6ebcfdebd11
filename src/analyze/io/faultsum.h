/*
 * Report of page faults and memory reclaim: by kind, by mapping and by function, from the tables
 * "faults" and "reclaim". Counts are exact.
 *
 * The report has no hit rate: mapped pages do not fault, one fault maps the pages around it, and a
 * major fault reads as many pages as read-ahead decides.
 */
#ifndef ASSAY_ANALYZE_IO_FAULTSUM_H
#define ASSAY_ANALYZE_IO_FAULTSUM_H

#include "analyze/report.h"
#include "analyze/select/select.h"
#include "analyze/view.h"
#include "base/base.h"
#include "base/err.h"

/* Sums, for the measures of diagnose/. Texts are in the caller's arena. */
struct fault_figures {
	double seconds;
	bool has_faults; /* faults were recorded, not only reclaim */
	uint64_t nr_major;
	uint64_t major_ns;
	uint64_t nr_major_anon; /* of anonymous memory: read from swap */
	uint64_t nr_minor;
	uint64_t minor_ns;
	const char *major_objects; /* "most (84 %) in data.db" */
	const char *major_functions;
	const char *minor_objects;
	const char *minor_functions;
	uint64_t nr_reclaims; /* by threads of the program */
	uint64_t reclaim_ns;
};

int faultsum_figures(struct fault_figures *ret_f, struct arena *a, const struct profile *p,
		     const struct select_spec *spec, struct err *err);

/*
 * Adds tables "faults", "fault_objects", "fault_functions", "reclaim", "reclaim_functions". @input:
 * file name for hints; NULL: no hints. Errors as select_run.
 */
int faultsum_report(struct report *r, const struct profile *p, const struct select_spec *spec,
		    const char *input, const struct view_limits *limits, struct err *err);
/* Adds the same to a report that has begun. */
int faultsum_add(struct report *r, const struct profile *p, const struct select_spec *spec,
		 const struct view_limits *limits, struct err *err);

#endif
