/*
 * Aggregates rows of waits by the texts of a table's first columns: count, time, duration
 * histogram, number of threads. Used by the tables of waits and of blame.
 */
#ifndef ASSAY_ANALYZE_WAIT_WAITGROUPS_H
#define ASSAY_ANALYZE_WAIT_WAITGROUPS_H

#include "analyze/report.h"
#include "analyze/select/select.h"
#include "analyze/io/taggroups.h"
#include "analyze/view.h"
#include "base/base.h"
#include "base/map.h"

enum waitgroups_columns {
	WAITGROUPS_QUANTILES = 1 << 0, /* p50, p99, longest */
	WAITGROUPS_THREADS = 1 << 1,   /* number of waiting threads */
	WAITGROUPS_MEAN = 1 << 2,      /* of a wait; not if a row has parts of waits */
};

struct waitgroups_table {
	const char *key;
	const char *title;
	const char *note; /* or NULL */
	/* Title of the column of shares; NULL: "% of waits", of the waiting without the run queue. */
	const char *share;
	struct {
		const char *key;
		const char *title;
		bool is_list; /* as report_column.is_list */
	} texts[TAG_TEXTS];   /* columns; the first one without a key ends the list */
	size_t other_at;      /* index of the text that has "<other>" in the last row */
	unsigned flags;       /* enum waitgroups_columns */
};

struct waitgroups {
	const struct waitgroups_table *table;
	struct tag_groups g;
	struct map threads; /* set of group index << 32 | task id */
};

struct waitgroups waitgroups_new(struct arena *a, const struct waitgroups_table *table);
void waitgroups_release(struct waitgroups *w);
/*
 * Finds or adds the group of these texts (a NULL text is the empty text). Counts @waiter in its
 * number of distinct threads. Returns the group's histogram, to which the caller adds the waits.
 */
struct quantile *waitgroups_at(struct waitgroups *w, const char *const *texts, task_id waiter);
/*
 * Adds the table, largest first; rows beyond the limits are summed in "<other>". @of_ns: the time
 * that is 100 % in the column of shares.
 */
void waitgroups_report(struct report *r, struct waitgroups *w, uint64_t of_ns,
		       const struct view_limits *limits);

#endif
