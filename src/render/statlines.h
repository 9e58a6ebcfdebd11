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
	bool has_waits;  /* lines of text have the longest wait */
};

/* A reason of waits, or another state of threads, in which they were for some of their time. */
struct stat_wait {
	const char *key;
	const char *text;
	uint64_t ns;
	uint64_t count;
	double pct; /* of the time of all threads */
	bool is_idle;
	bool is_wait; /* else it ran, or something else on its CPU */
};

struct stat_waits {
	const struct stat_wait *p; /* in the order of the output, the longest first */
	size_t n;                  /* 0: not known */
	double thread_s;           /* all of the threads' time */
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
	struct stat_waits waits;
};

void statlines_add_summary(struct buf *to, const struct statlines *l, const struct stat_summary *s);
/*
 * A line for an interval, or for a thread; of text. @waits: of the interval, NULL: not known; a line has
 * the longest one that is not idle, or if that has less than 5 %, the longest. @is_first: with the heading.
 */
void statlines_add_reading(struct buf *to, const struct statlines *l,
			   const struct counter_reading *r, const struct stat_waits *waits,
			   bool is_first);

#endif
