/*
 * Functions shared by the tables of all views: shares with their confidence interval, sorting,
 * limits, and the row "<other>" with the sum of the rows that a limit cut.
 */
#ifndef ASSAY_ANALYZE_VIEW_H
#define ASSAY_ANALYZE_VIEW_H

#include "analyze/report.h"
#include "analyze/select/select.h"
#include "analyze/select/weigh.h"
#include "base/base.h"

/*
 * With fewer samples (of equal weight) the 95 % interval of a share of 50 % is wider than +-10
 * points: tables then have counts and no percentages.
 */
#define VIEW_FEW_SAMPLES 100

enum view_sort { VIEW_BY_SELF, VIEW_BY_TOTAL, VIEW_BY_NAME };

struct view_limits {
	uint64_t max_rows; /* 0 = all */
	double min_pct;    /* rows below this share (of the sort column) go to <other> */
	enum view_sort sort;
};

/* A row of view_add_table. */
struct view_item {
	const char *name;
	const char *module;  /* "": none */
	struct weight self;  /* in the item itself */
	struct weight total; /* in it and its callees */
};

enum view_columns {
	VIEW_TOTAL = 1 << 0,  /* a column with the inclusive share */
	VIEW_MODULE = 1 << 1, /* a column with the module */
	VIEW_OF_ALL = 1 << 2, /* a further column: the share of view_all */
};

struct view_spec {
	const char *key;        /* of the table in JSON */
	const char *title;      /* of the table in text */
	const char *name_key;   /* key of the column with item names: "function" */
	const char *name_title; /* its head; NULL: name_key */
	const char *module_key; /* key of the column with modules: "module" */
	struct weight of;       /* what is 100 % */
	unsigned flags;         /* enum view_columns */
};

/* @part as per cent of @whole; 0 if @whole is 0. */
double view_pct(uint64_t part, uint64_t whole);
/* What a share is called that is the largest one: "the largest part", or "the largest of many parts". */
const char *view_largest(double pct);
/* The same: "most" above a half. */
const char *view_most(double pct);
/* True if the rows are samples of CPU time: of a clock or of cycles, also with modifiers. */
bool view_is_cpu_time(const struct selection *sel);
/*
 * Returns what the weights are, for titles: "time", "bytes", "count", or the event that is counted:
 * "page-faults". Lives as long as the profile.
 */
const char *view_amount(const struct selection *sel);
/* Title of a page of these rows: "CPU time", "number of page-faults", "samples of sched:sched_switch". */
const char *view_title(struct arena *a, const struct selection *sel);
/* True if rows were counted, not sampled: shares have no sampling error. */
bool view_is_exact(const struct selection *sel);
/*
 * Half width of the 95 % confidence interval of a share, in percentage points; NaN if exact. Of sums
 * that were estimated with a variance v, part p of the whole: (1 - p)^2 v(part) + p^2 v(rest).
 */
double view_error(const struct selection *sel, struct weight part, struct weight of);
/* True unless the selection is sampled and has too few samples for percentages. */
bool view_has_shares(const struct selection *sel);
/* True if table @t gets a row of share @pct under the limits; else it is summed in "<other>". */
bool view_has_room(const struct view_limits *limits, const struct report_table *t, double pct);
/*
 * Adds a table of the items, largest first, without items of weight 0. Rows that the limits cut are
 * summed in a last row "<other>". Sorts @items in place.
 */
void view_add_table(struct report *r, const struct selection *sel, const struct view_spec *spec,
		    struct view_item *items, size_t nr_items, const struct view_limits *limits);

/*
 * Sets title, totals, losses and facts of the report (facts: key/value metadata of the recording,
 * model/facts.h). Adds a note on what the filters excluded.
 */
void view_begin(struct report *r, const struct selection *sel, const char *title);
/* Adds a note to what moment the data of an incomplete recording reach; nothing if it is complete. */
void view_note_incomplete(struct report *r, const struct profile *p);
/* The report of an incomplete recording that has no rows. */
void view_report_nothing(struct report *r, const struct profile *p);

/* Adds up the frames of the selection, and those without a name, in r->frames. */
void view_add_frames(struct report *r, const struct selection *sel);
/* Adds a note: what of the selection's table is shown, and what each filter left out. */
void view_note_filtered(struct report *r, const struct selection *sel);

/* Returns a name as sentences have it: shortened to 48 columns (base/text/shortname.h). */
const char *view_name(struct report *r, const char *name);
/* Marks the value of a fact as one of the selection, if filters left something out. */
const char *view_of_selection(struct report *r, const struct selection *sel, const char *value);
/* Samples that filters left out; idle waits, which are hidden by default, are not counted. */
uint64_t view_nr_out(const struct selection *sel);

/* True for the idle thread of a CPU (swapper), which perf samples with -a. */
bool view_is_idle_thread(const struct profile *p, task_id task);
/* The selection without idle threads. */
struct weight view_busy(const struct selection *sel);
/* Average number of CPUs in use over the time window; negative: not known. */
double view_cpus(const struct selection *sel, struct weight w);
/* Returns the length of the time window; 0: the profile has no timestamps. */
uint64_t view_duration_ns(const struct selection *sel);
/* Number of samples of equal weight that would be as exact as those of @w. */
double view_effective(const struct selection *sel, struct weight w);
/* Returns the weight and samples of the whole selection. */
struct weight view_all(const struct selection *sel);

#endif
