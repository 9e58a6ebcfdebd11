/*
 * Compares two sides, each of one or several selections (runs): which rows weigh more or less than
 * before, and whether the difference is larger than its confidence interval. Rows are aligned by
 * name, without what compilers and linkers add to names (plainname.h), so the profiles may be
 * captures of different builds or machines. What is left on one side only is paired by the name of
 * the function alone, if that is unique: its module may have been renamed.
 *
 * The amount of a side is the mean over its runs: of amounts as they are, of shares of the totals,
 * or of amounts scaled to the mean duration of the runs of "after". A difference is significant if
 * its interval excludes 0; this is the only rule, for every output. The intervals of all rows hold
 * together with 95 % (Bonferroni's correction for the number of rows): of two captures of the same
 * behaviour, 19 of 20 have no significant row. Of amounts that are counted, not sampled, in single
 * runs, the interval is from their variation within the run (diffblocks.h); if the run is too short for
 * that, no difference is significant. With several runs the interval also covers their spread
 * (spread.h). Exact live bytes differ or do not.
 */
#ifndef ASSAY_ANALYZE_DIFF_DIFF_H
#define ASSAY_ANALYZE_DIFF_DIFF_H

#include "analyze/diff/spread.h"
#include "analyze/report.h"
#include "analyze/select/select.h"
#include "analyze/stacks/groups.h"
#include "analyze/view.h"
#include "base/arena.h"
#include "base/base.h"
#include "base/stat.h"

enum diff_how {
	DIFF_AMOUNTS,  /* unscaled */
	DIFF_PER_TIME, /* scaled to the mean duration of the runs of after */
	DIFF_SHARES,   /* of the totals */
};

enum diff_side { DIFF_BEFORE, DIFF_AFTER };

/* Additional values of enum group_by. */
enum diff_by {
	DIFF_BY_STACK = BY_NR, /* whole stacks */
	DIFF_BY_REASON,        /* rows of the thread time breakdown: on_cpu, run_queue, lock ... */
	DIFF_BY_WAIT,          /* waits by reason and the program's innermost function */
	DIFF_BY_THREAD,        /* names of threads, # where they differ */
	DIFF_BY_PHASE,         /* phases of the selection's rules */
};

/* Which changes come first. */
enum diff_sort { DIFF_SORT_SELF, DIFF_SORT_TOTAL };

struct diff_spec {
	const struct selection *runs[2]; /* by enum diff_side; borrowed */
	size_t nr_runs[2];               /* at least 1 */
	const char *const *names[2];     /* of the runs, as they are shown; NULL: none */
	enum diff_how how;
	bool has_default_how; /* nobody chose it: further comparisons have their own default */
	unsigned by;          /* enum group_by or enum diff_by */
	enum diff_sort sort;
	/* Parts of the single runs (diffblocks.h); borrowed. */
	const struct selection *blocks[2];
	size_t nr_blocks[2];
};

/* An amount on both sides, in the unit of the comparison: (scaled) weight or per cent. */
struct diff_value {
	double amount[2];
	double error[2];               /* half widths of their 95 % intervals; 0: exact */
	struct stat_interval range[2]; /* intervals that hold for all rows together */
	double spread;                 /* half width that the spread between runs causes */
	double change;                 /* after - before */
	double change_error; /* half width of its interval, the wider half; INFINITY: not known */
};

struct diff_item {
	const char *reason; /* DIFF_BY_WAIT; else "" */
	const char *name;   /* a stack: leaf first, " < " between */
	const char *module;
	bool is_in[2]; /* has samples on that side */
	struct diff_value self;
	struct diff_value total;
};

struct diff {
	struct diff_spec spec;
	struct diff_item
		*items; /* significant ones first, then by the largest change (spec.sort) */
	size_t n;
	struct diff_item all; /* of everything shown */
	double marked[2]; /* sums of the significant changes of self: of decreases, of increases */
	double *scale[2]; /* by run: the factor applied to its amounts */
	bool has_spread;  /* a side has several runs */
	bool has_blocks;  /* intervals are from the variation within the runs */
	bool is_unknown;  /* nor are they known otherwise: the runs are too short */
	struct spread spread[2]; /* with has_spread: of self, of total */
	double minutes;          /* between the two captures; 0: not known */
};

/* Compares; the result lives in the arena and borrows the selections. */
void diff_make(struct diff *ret_d, struct arena *a, const struct diff_spec *spec);
/* Whether the capture is of a command from its start to its end. */
bool diff_is_launched(const struct selection *sel);
/*
 * Returns the default way to compare the two sides: what was sampled, and thread time, whose total is
 * that of the threads' lives, by share; what is counted and grows with time (waits, I/O, faults,
 * allocated memory) by time, unless the durations are equal or both launched a command, which did the
 * same work; what is live by amount.
 */
enum diff_how diff_how_of(const struct selection *before, const struct selection *after);
/* Returns whether the interval of the change excludes 0. */
bool diff_is_significant(const struct diff_value *v);
/*
 * Returns whether the total changed, self did not, and not only because functions that it may call are
 * marked themselves: the interval excludes the sum of their changes, too.
 */
bool diff_is_of_total(const struct diff *d, const struct diff_item *it);

#define DIFF_DEGREES_MAX 32 /* of blocks */

/* Quantiles for values whose intervals shall hold together. */
struct diff_family {
	size_t nr;
	double z;
	double t[2];                               /* with has_spread: for self, for total */
	double t_of_degrees[DIFF_DEGREES_MAX + 1]; /* with has_blocks */
};
struct diff_family diff_family_of(const struct diff *d, size_t nr);

/*
 * The value of a set of stacks. @weights: by part (diff_part), unscaled. @is_total: which of
 * d->spread is used.
 */
struct diff_value diff_value_of(const struct diff *d, const struct weight *weights, bool is_total,
				const struct diff_family *family);
/* What is weighed: the runs, those of before first, then the blocks, likewise. */
size_t diff_nr_parts(const struct diff_spec *s);
const struct selection *diff_part(const struct diff_spec *s, size_t part);

/*
 * Adds what was found as sentences, tables "total" and "functions" ("modules", ..., "stacks"), and
 * notes on the comparison. The report has been begun (view_begin). @parts: the comparison, and those
 * of the same runs that are shown with it (diffparts.h).
 */
void diff_report(struct report *r, const struct diff *parts, size_t nr,
		 const struct view_limits *limits);

#endif
