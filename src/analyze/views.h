/*
 * The registry of views: what questions a profile can answer, and for each of them what it is
 * seen through: rows to select, a first page, groupings of rows, pictures. Commands walk it; no
 * other file asks what a profile is about. To add one: an id and a row in views.c.
 *
 *	spec (names an event, a weight of memory, or nothing) --views_find--> view
 *	view: select (rows for tables and trees), page, groupings, pictures
 */
#ifndef ASSAY_ANALYZE_VIEWS_H
#define ASSAY_ANALYZE_VIEWS_H

#include "analyze/report.h"
#include "analyze/select/select.h"
#include "analyze/view.h"
#include "base/arena.h"
#include "base/base.h"
#include "base/err.h"

/* A profile that names none is seen as the first of these that it has. */
enum view_id {
	VIEW_SPANS,       /* latency of operations, with the waits in them */
	VIEW_THREAD_TIME, /* CPU samples and waits of the same time */
	VIEW_CPU,         /* CPU samples, or any weighted stacks; also a profile of nothing */
	VIEW_WAITS,       /* a ledger and what was waited for */
	VIEW_HEAP,        /* memory: what was allocated, what lives */
	VIEW_IO,          /* reads, writes, syncs, block requests */
	VIEW_FAULTS,      /* page faults and reclaim */
	VIEW_EVENTS,      /* counts of events by name */
	VIEW_MEMORY,      /* what the kernel says of memory, over time, and nothing else */
	VIEW_NR
};

enum view_pictures_flags {
	VIEW_PICTURES_BY_REASON = 1 << 0, /* waits: one for each reason, too */
	VIEW_PICTURES_ALL = 1 << 1,       /* memory: the weights that are rarely asked for, too */
};

/* A flame graph of a profile: a selection, and the name of its file behind the recording's stem. */
struct view_picture {
	const char *suffix; /* "-lock.svg" */
	const char *title;  /* what is drawn, in words; NULL where the suffix needs none */
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
	const char *palette; /* of its flame graphs; NULL: the usual one */
	/* Bits by enum table_id. */
	uint32_t tables;   /* one with rows is something to see; an event of these asks for it */
	uint32_t recorded; /* what a capture for this view records; 0: what there is to see */
	uint32_t drawn;    /* of viewpictures_of_tables */
	bool is_mixed;     /* several tables at once, which no column of one weighs */
	bool has_weights;  /* what it is weighed by is no column (heapweights.h) */
	/* Of views that have groupings of their own (groupings.h): what rows are called, commands that
	 * record them, and whether a selection's are such. */
	const char *rows;
	const char *record;
	bool (*is_of)(const struct selection *sel);
	/* Is there anything to see? NULL: as the tables say. */
	bool (*has)(const struct profile *p);
	/* Asks a spec for it otherwise than by an event of its tables? May be NULL. */
	bool (*is_asked)(const struct profile *p, const struct select_spec *spec);
	/* Errors as select_run. */
	int (*select)(struct arena *a, const struct profile *p, const struct select_spec *spec,
		      struct selection *ret_sel, struct err *err);
	/* @input names the file in hints, NULL: none are given. Errors as select_run. */
	int (*page)(struct report *r, const struct profile *p, const struct select_spec *spec,
		    const char *input, const struct view_limits *limits, struct err *err);
	/*
	 * The flame graphs that a capture leaves, without those that would be empty. The spec tells
	 * idle time and ages of leaks; flags: enum view_pictures_flags. NULL: there are none.
	 */
	struct view_pictures (*pictures)(struct arena *a, const struct view *v,
					 const struct profile *p, const struct select_spec *spec,
					 unsigned flags);
};

const struct view *views_at(enum view_id id);
/* Is there anything to see? */
bool views_has(const struct view *v, const struct profile *p);
/* Did a capture for this view record what it is for? */
bool views_is_recorded(const struct view *v, const struct profile *p);
/* The view that the spec asks for; where it names nothing the profile's first one. Never NULL. */
const struct view *views_find(const struct profile *p, const struct select_spec *spec);
/* The same for a spec that names nothing. */
const struct view *views_default(const struct profile *p);

/* Whose groupings a selection's rows have: waits, heap, else cpu. */
const struct view *views_of_rows(const struct selection *sel);
/* The event that trees and pictures take where none is named; NULL: as it comes. */
const char *views_tree_event(const struct profile *p);

/* The found view's rows, and its page. */
int views_select(struct arena *a, const struct profile *p, const struct select_spec *spec,
		 struct selection *ret_sel, struct err *err);
int views_page(struct report *r, const struct profile *p, const struct select_spec *spec,
	       const char *input, const struct view_limits *limits, struct err *err);

#endif
