/* Waits under keys; see waitgroups.h. */
#include "base/base.h"
#include "analyze/waitgroups.h"

#include <stdlib.h>

void waitgroups_release(struct waitgroups *g)
{
	intern_release(&g->keys);
	vec_release(&g->groups);
	map_release(&g->threads);
	buf_release(&g->key);
}

struct waitgroup *waitgroups_at(struct waitgroups *g, const char *const *texts, size_t nr_texts)
{
	ASSERT(nr_texts && nr_texts <= WAITGROUP_TEXTS_MAX);
	buf_clear(&g->key);
	for (size_t i = 0; i < nr_texts; i++) {
		buf_add_str(&g->key, texts[i] ? texts[i] : "");
		buf_add_ch(&g->key, '\n');
	}
	uint32_t at = intern_add(&g->keys, g->key.p, g->key.n) - 1; /* id 0 is the empty string */
	if (at < g->groups.n)
		return &g->groups.p[at];
	struct waitgroup *group = vec_add(&g->groups);
	for (size_t i = 0; i < nr_texts; i++)
		group->texts[i] = arena_strdup(g->arena, texts[i] ? texts[i] : "");
	return group;
}

void waitgroups_add(struct waitgroups *g, struct waitgroup *group, const struct selection *sel,
		    const struct select_tagged *row)
{
	const struct table *t = &sel->p->tables.p[sel->table];
	uint64_t nr = (uint64_t)MAX(row->values[0], 0);
	uint64_t ns = (uint64_t)MAX(row->values[t->weight_column], 0);
	uint64_t longest = 0;
	for (uint32_t c = 1; c < t->nr_columns; c++)
		if (t->columns[c].is_level)
			longest = (uint64_t)MAX(row->values[c], 0);
	quantile_add(&group->q, sel->p->tags.p[row->tag].log2_ns, nr, ns, longest);
	bool is_new;
	uint64_t at = (uint64_t)(group - g->groups.p);
	(void)map_put(&g->threads, at << 32 | row->task, &is_new);
	group->nr_threads += is_new;
}

/* ---- the table ---------------------------------------------------------------------------- */

#define COLUMNS_MAX (WAITGROUP_TEXTS_MAX + 8)

struct columns {
	struct report_column c[COLUMNS_MAX];
	size_t n;
};

static void add_column(struct columns *c, const char *key, const char *title, enum cell_kind kind,
		       const char *help)
{
	ASSERT(c->n < COLUMNS_MAX);
	c->c[c->n++] = (struct report_column){key, title, kind, help};
}

static struct columns make_columns(const struct waitgroups_table *spec)
{
	struct columns c = {0};
	add_column(&c, "time_ns", "time", CELL_NS, "time waited");
	add_column(&c, "pct", "%", CELL_PERCENT, "share of the time in view");
	add_column(&c, "waits", "waits", CELL_COUNT, "waits that ended in the window");
	add_column(&c, "mean_ns", "mean", CELL_NS, NULL);
	if (spec->flags & WAITGROUPS_QUANTILES) {
		add_column(&c, "p50_ns", "p50", CELL_NS,
			   "interpolated within a log2 class of durations");
		add_column(&c, "p99_ns", "p99", CELL_NS,
			   "interpolated within a log2 class of durations");
		add_column(&c, "longest_ns", "longest", CELL_NS, NULL);
	}
	if (spec->flags & WAITGROUPS_THREADS)
		add_column(&c, "threads", "threads", CELL_COUNT, "threads that waited");
	for (size_t i = 0; i < spec->nr_texts; i++)
		add_column(&c, spec->text_keys[i], spec->text_titles[i], CELL_TEXT, NULL);
	return c;
}

static uint64_t mean_of(const struct quantile *q)
{
	return q->nr_all ? quantile_mean(q) : CELL_NS_NONE;
}

static void add_group(struct report *r, struct report_table *t, const struct waitgroups_table *spec,
		      const struct waitgroup *g, uint64_t of_ns)
{
	union cell cells[COLUMNS_MAX];
	size_t n = 0;
	cells[n++].u = g->q.ns_all;
	cells[n++].d = view_pct(g->q.ns_all, of_ns);
	cells[n++].u = g->q.nr_all;
	cells[n++].u = mean_of(&g->q);
	if (spec->flags & WAITGROUPS_QUANTILES) {
		bool is_known = g->q.nr_all;
		cells[n++].u = is_known ? quantile_at(&g->q, 0.5) : CELL_NS_NONE;
		cells[n++].u = is_known ? quantile_at(&g->q, 0.99) : CELL_NS_NONE;
		cells[n++].u = g->q.longest_ns ? g->q.longest_ns : CELL_NS_NONE;
	}
	if (spec->flags & WAITGROUPS_THREADS)
		cells[n++].u = g->nr_threads;
	for (size_t i = 0; i < spec->nr_texts; i++)
		cells[n++].text = g->texts[i] ? g->texts[i] : "";
	report_add_row(r, t, cells);
}

static int by_time(const void *x, const void *y)
{
	const struct waitgroup *a = *(const struct waitgroup *const *)x;
	const struct waitgroup *b = *(const struct waitgroup *const *)y;
	int c = COMPARE(b->q.ns_all, a->q.ns_all);
	for (size_t i = 0; !c && i < WAITGROUP_TEXTS_MAX && a->texts[i] && b->texts[i]; i++)
		c = strcmp(a->texts[i], b->texts[i]);
	return c;
}

void waitgroups_report(struct report *r, const struct waitgroups *g,
		       const struct waitgroups_table *spec, uint64_t of_ns,
		       const struct view_limits *limits)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct columns c = make_columns(spec);
	struct report_table *t = report_add_table(r, spec->key, spec->title, c.c, c.n);
	t->note = spec->note ? arena_strdup(&r->arena, spec->note) : NULL;
	struct waitgroup **order = arena_calloc(&a, g->groups.n + 1, sizeof(struct waitgroup *));
	for (size_t i = 0; i < g->groups.n; i++)
		order[i] = &g->groups.p[i];
	qsort(order, g->groups.n, sizeof(struct waitgroup *), by_time);
	struct waitgroup other = {0};
	other.texts[spec->other_at] = "<other>";
	for (size_t i = 0; i < g->groups.n; i++) {
		bool is_in = (!limits->max_rows || t->nr_rows < limits->max_rows) &&
			     view_pct(order[i]->q.ns_all, of_ns) >= limits->min_pct;
		if (is_in) {
			add_group(r, t, spec, order[i], of_ns);
			continue;
		}
		quantile_merge(&other.q, &order[i]->q);
		other.nr_threads = MAX(other.nr_threads, order[i]->nr_threads);
	}
	if (other.q.nr_all || other.q.ns_all)
		add_group(r, t, spec, &other, of_ns);
	t->nr_rows_total = g->groups.n;
}
