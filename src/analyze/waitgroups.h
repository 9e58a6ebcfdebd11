/*
 * Rows of waits added up under keys that a table chooses: count, time, distribution, threads, and
 * what the group shows in its columns of text. Internal to the tables of waits and of blame.
 */
#ifndef ASSAY_ANALYZE_WAITGROUPS_H
#define ASSAY_ANALYZE_WAITGROUPS_H

#include "analyze/quantile.h"
#include "analyze/report.h"
#include "analyze/select.h"
#include "analyze/view.h"
#include "base/arena.h"
#include "base/base.h"
#include "base/buf.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"

#define WAITGROUP_TEXTS_MAX 5

struct waitgroup {
	const char *texts[WAITGROUP_TEXTS_MAX];
	struct quantile q;
	uint64_t nr_threads; /* distinct ones that waited */
};

struct waitgroups {
	struct arena *arena;
	struct intern keys;
	VEC(struct waitgroup) groups;
	struct map threads; /* group << 32 | task */
	struct buf key;     /* scratch: texts joined */
};

void waitgroups_release(struct waitgroups *g);
/* The group of these texts, found or added; NULL texts are empty. Borrowed until the next call. */
struct waitgroup *waitgroups_at(struct waitgroups *g, const char *const *texts, size_t nr_texts);
void waitgroups_add(struct waitgroups *g, struct waitgroup *group, const struct selection *sel,
		    const struct select_tagged *row);

enum waitgroups_columns {
	WAITGROUPS_QUANTILES = 1 << 0, /* p50, p99, longest */
	WAITGROUPS_THREADS = 1 << 1,   /* how many threads waited */
};

struct waitgroups_table {
	const char *key;
	const char *title;
	const char *note; /* or NULL */
	const char *text_keys[WAITGROUP_TEXTS_MAX];
	const char *text_titles[WAITGROUP_TEXTS_MAX];
	size_t nr_texts;
	size_t other_at; /* which text says "<other>" */
	unsigned flags;
};

/* Largest first; what the limits cut becomes "<other>". */
void waitgroups_report(struct report *r, const struct waitgroups *g,
		       const struct waitgroups_table *spec, uint64_t of_ns,
		       const struct view_limits *limits);

#endif
