/*
 * Writes the counters of assay stat: a summary as perf stat prints it, a line for each interval or
 * thread, CSV with the fields of perf stat -x, or JSON, an object for each line
 * (docs/formats/stat.md).
 */
#ifndef ASSAY_RENDER_STATLINES_H
#define ASSAY_RENDER_STATLINES_H

#include "base/base.h"
#include "base/buf.h"
#include "model/counter.h"

enum statlines_form { STATLINES_TEXT, STATLINES_CSV, STATLINES_JSON };

struct statlines {
	enum statlines_form form;
	const char *separator; /* of CSV */
	unsigned columns;      /* of a line of text; 0: unlimited */
	bool has_intervals;
	bool has_spread; /* several runs */
};

/* A reason of waits, or another state of threads, in which they were for some of their time. */
struct stat_wait {
	const char *key;
	const char *text;
	uint64_t ns;
	uint64_t count;
	double pct; /* of the time of all threads */
};

struct stat_summary {
	const char *title; /* "'sleep 1' (3 runs)" */
	struct counter_reading reading;
	double elapsed_s;
	double elapsed_spread_pct; /* NAN: one run */
	double user_s;             /* NAN: not known */
	double system_s;
	const char *const *notes; /* sentences below it */
	size_t nr_notes;
	const struct stat_wait *waits; /* in the order of the output */
	size_t nr_waits;               /* 0: not known */
	double thread_s;               /* all of the threads' time */
};

void statlines_add_summary(struct buf *to, const struct statlines *l, const struct stat_summary *s);
/* A line for an interval, or for a thread; of text. @is_first: with the heading. */
void statlines_add_reading(struct buf *to, const struct statlines *l,
			   const struct counter_reading *r, bool is_first);

#endif
