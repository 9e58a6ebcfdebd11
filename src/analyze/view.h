/*
 * What the tables of all views share: shares with their uncertainty, ranking, limits, and the
 * row "<other>" that makes a cut table add up again.
 */
#ifndef ASSAY_ANALYZE_VIEW_H
#define ASSAY_ANALYZE_VIEW_H

#include "analyze/report.h"
#include "analyze/select/select.h"
#include "analyze/select/weigh.h"
#include "base/base.h"

enum view_sort { VIEW_BY_SELF, VIEW_BY_TOTAL, VIEW_BY_NAME };

struct view_limits {
	uint64_t max_rows; /* 0 = all */
	double min_pct;    /* rows below this share (of the column sorted by) go to <other> */
	enum view_sort sort;
};

struct view_item {
	const char *name;
	const char *module;
	struct weight self;
	struct weight total;
};

enum view_columns {
	VIEW_TOTAL = 1 << 0,  /* a column with the inclusive share */
	VIEW_MODULE = 1 << 1, /* a column with the module */
	VIEW_OF_ALL = 1 << 2, /* a column with the share of everything in view, beside of->weight */
};

struct view_spec {
	const char *key;
	const char *title;
	const char *name_key;   /* "function" */
	const char *module_key; /* "module" */
	struct weight of;       /* what is 100 % */
	unsigned flags;         /* enum view_columns */
};

/* 0 for an empty whole. */
double view_pct(uint64_t part, uint64_t whole);
/* Whether rows were counted, not sampled, so that shares have no error. */
bool view_is_exact(const struct selection *sel);
/* Half of the 95 % interval of a share, in percentage points; NaN where there is none. */
double view_error(const struct selection *sel, struct weight part, struct weight of);
/* Whether the table shows a row of that share; else it is a part of "<other>". */
bool view_has_room(const struct view_limits *limits, const struct report_table *t, double pct);
/*
 * Adds a table of the items, largest first; items without weight are left out. What the limits
 * cut becomes a last row "<other>". Sorts @items in place.
 */
void view_add_table(struct report *r, const struct selection *sel, const struct view_spec *spec,
		    struct view_item *items, size_t nr_items, const struct view_limits *limits);

/* Title, totals, losses and the facts of the profile; a note on what filters left out. */
void view_begin(struct report *r, const struct selection *sel, const char *title);

/* CPUs in use on average over the window, or a negative number where that is not known. */
double view_cpus(const struct selection *sel, struct weight w);
uint64_t view_duration_ns(const struct selection *sel);
struct weight view_all(const struct selection *sel);

#endif
