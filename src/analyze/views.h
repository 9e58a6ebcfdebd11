/*
 * Registry of views. A view answers one question about a profile: it selects rows and has a first
 * page, groupings and flame graphs. Commands iterate over the registry; no other file checks what a
 * profile contains. To add a view: an id here and a row in views.c.
 *
 *	spec (names an event, a weight of memory, or nothing) --views_find--> view
 *	view: select (rows for tables and trees), page, groupings, pictures (flame graphs)
 */
#ifndef ASSAY_ANALYZE_VIEWS_H
#define ASSAY_ANALYZE_VIEWS_H

#include "analyze/report.h"
#include "analyze/select/select.h"
#include "analyze/view.h"
#include "base/arena.h"
#include "base/base.h"
#include "base/err.h"

/* The default view of a profile is the first of these that it has rows for. */
enum view_id {
	VIEW_ALL,         /* everything that assay all records */
	VIEW_SPANS,       /* latency of operations, with the waits in them */
	VIEW_THREAD_TIME, /* CPU samples and waits of the same time */
	VIEW_CPU,         /* CPU samples or any weighted stacks; also an empty profile */
	VIEW_WAITS,       /* off-CPU time: thread time breakdown, wait reasons, locks, wakers */
	VIEW_HEAP,        /* memory: allocations, live blocks, leaks */
	VIEW_IO,          /* reads, writes, syncs, block requests */
	VIEW_FAULTS,      /* page faults and reclaim */
	VIEW_EVENTS,      /* counts of events by name */
	VIEW_MEMORY,      /* memory readings of the kernel over time, without stacks */
	VIEW_NR
};

enum view_pictures_flags {
	VIEW_PICTURES_BY_REASON = 1 << 0, /* waits: also one per reason */
	VIEW_PICTURES_ALL = 1 << 1,       /* memory: also the rarely used weights */
	VIEW_PICTURES_ROWS = 1 << 2,      /* also of rows that only other columns give a weight */
};

/* A flame graph of a profile: what to select, and the suffix of its file name. */
struct view_picture {
	const char *suffix; /* "-lock.svg" */
	const char *title;  /* what is drawn; NULL: the suffix says it */
	struct select_spec spec;
	unsigned tree_flags; /* enum calltree_flags */
};

struct view_pictures {
	struct view_picture *p; /* in the arena */
	size_t n;
};

struct view {
	const char *key; /* "thread-time" */
	const char *title;
	const char *palette; /* of its flame graphs; NULL: the default */
	/* Bits by enum table_id. */
	uint32_t tables;   /* a profile has the view if one of these has rows; a spec whose event is
			  * one of these selects the view */
	uint32_t recorded; /* what a capture for this view records; 0: as .tables */
	uint32_t drawn;    /* flame graphs that viewpictures_of_tables makes */
	bool is_mixed;     /* selects rows of several tables: --weight needs an event */
	bool has_weights;  /* weights are not columns (heapweights.h) */
	/* For views with groupings of their own (groupings.h): what rows are called, the commands that
	 * record them, and whether a selection has such rows. */
	const char *rows;
	const char *record;
	bool (*is_of)(const struct selection *sel);
	/* True if the profile has rows for it. NULL: decided by .tables. */
	bool (*has)(const struct profile *p);
	/*
	 * True if the spec selects the view by other means than an event of .tables. May be NULL.
	 */
	bool (*is_selected)(const struct profile *p, const struct select_spec *spec);
	/* Errors as select_run. */
	int (*select)(struct arena *a, const struct profile *p, const struct select_spec *spec,
		      struct selection *ret_sel, struct err *err);
	/*
	 * Adds the first page. @input: file name for hints; NULL: no hints. Errors as select_run.
	 */
	int (*page)(struct report *r, const struct profile *p, const struct select_spec *spec,
		    const char *input, const struct view_limits *limits, struct err *err);
	/*
	 * The flame graphs that a capture writes, without empty ones. The spec has the options for
	 * idle time and leak ages; flags: enum view_pictures_flags. NULL: none.
	 */
	struct view_pictures (*pictures)(struct arena *a, const struct view *v,
					 const struct profile *p, const struct select_spec *spec,
					 unsigned flags);
};

const struct view *views_at(enum view_id id);
/* True if the profile has rows for the view. */
bool views_has(const struct view *v, const struct profile *p);
/* True if a capture for this view recorded what it should. */
bool views_is_recorded(const struct view *v, const struct profile *p);
/* The view that the spec selects, by default the profile's first one. Never NULL. */
const struct view *views_find(const struct profile *p, const struct select_spec *spec);
/* The profile's first view. Never NULL. */
const struct view *views_default(const struct profile *p);

/* The view whose groupings apply to the rows of a selection: waits, heap, else cpu. */
const struct view *views_of_rows(const struct selection *sel);
/* The default event of trees and pictures; NULL: that of select_run. */
const char *views_tree_event(const struct profile *p);

/* Select rows and make the page of the view that views_find returns. */
int views_select(struct arena *a, const struct profile *p, const struct select_spec *spec,
		 struct selection *ret_sel, struct err *err);
int views_page(struct report *r, const struct profile *p, const struct select_spec *spec,
	       const char *input, const struct view_limits *limits, struct err *err);

#endif
