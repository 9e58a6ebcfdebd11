/* Waits aggregated by keys; see waitgroups.h. */
#include "base/base.h"
#include "analyze/wait/waitgroups.h"

struct waitgroups waitgroups_new(struct arena *a, const struct waitgroups_table *table)
{
	return (struct waitgroups){.table = table, .g = {.arena = a, .nr_amounts = 1}};
}

void waitgroups_release(struct waitgroups *w)
{
	tag_groups_release(&w->g);
	map_release(&w->threads);
}

static size_t nr_texts_of(const struct waitgroups_table *table)
{
	size_t n = 0;
	while (n < TAG_TEXTS && table->texts[n].key)
		n++;
	return n;
}

struct quantile *waitgroups_at(struct waitgroups *w, const char *const *texts, task_id waiter)
{
	struct tag_group *group = tag_groups_at(&w->g, texts, nr_texts_of(w->table));
	bool is_new;
	uint64_t at = (uint64_t)(group - w->g.groups.p);
	(void)map_put(&w->threads, at << 32 | waiter, &is_new);
	group->nr_threads += is_new;
	return &group->amounts->q;
}

/* ---- the table ---------------------------------------------------------------------------- */

#define NUMBERS     8 /* columns before the texts */
#define COLUMNS_MAX (NUMBERS + TAG_TEXTS)
#define LIST_MIN    32 /* some frames of a stack are worth more than quantiles */

static const char *const hide_first[] = {"p50_ns",  "threads",    "module",
					 "mean_ns", "longest_ns", NULL};

static struct report_table *begin_table(struct report *r, const struct waitgroups_table *table)
{
	struct report_column c[COLUMNS_MAX] = {
		{"time_ns", "time", CELL_NS, "wait time"},
		{"pct", "% of waits", CELL_PERCENT, "share of the waiting shown"},
		{"waits", "waits", CELL_COUNT, "waits that ended in the window"},
		{"mean_ns", "mean", CELL_NS, NULL, WAITGROUPS_MEAN},
		{"p50_ns", "p50", CELL_NS, "interpolated within a power-of-two bucket",
		 WAITGROUPS_QUANTILES},
		{"p99_ns", "p99", CELL_NS, "interpolated within a power-of-two bucket",
		 WAITGROUPS_QUANTILES},
		{"longest_ns", "longest", CELL_NS, NULL, WAITGROUPS_QUANTILES},
		{"threads", "threads", CELL_COUNT, "threads that waited", WAITGROUPS_THREADS},
	};
	if (table->share)
		c[1].title = table->share;
	size_t nr_texts = nr_texts_of(table);
	for (size_t i = 0; i < nr_texts; i++)
		c[NUMBERS + i] =
			(struct report_column){table->texts[i].key, table->texts[i].title,
					       CELL_TEXT, .is_list = table->texts[i].is_list};
	struct report_table *t = report_add_table_of(r, table->key, table->title, c,
						     NUMBERS + nr_texts, table->flags);
	t->note = table->note;
	t->hide_first = hide_first;
	for (size_t i = 0; i < nr_texts; i++)
		t->text_min = table->texts[i].is_list ? LIST_MIN : t->text_min;
	return t;
}

static void add_group(struct report *r, struct report_table *t, const struct tag_group *g,
		      uint64_t of_ns)
{
	const struct quantile *q = &g->amounts->q;
	bool is_known = q->nr_all;
	union cell cells[COLUMNS_MAX] = {
		{.u = q->ns_all},
		{.d = view_pct(q->ns_all, of_ns)},
		{.u = q->nr_all},
		{.u = is_known ? quantile_mean(q) : CELL_NS_NONE},
		{.u = is_known ? quantile_at(q, 0.5) : CELL_NS_NONE},
		{.u = is_known ? quantile_at(q, 0.99) : CELL_NS_NONE},
		{.u = q->longest_ns ? q->longest_ns : CELL_NS_NONE},
		{.u = g->nr_threads},
	};
	for (size_t i = 0; i < TAG_TEXTS; i++)
		cells[NUMBERS + i].text = g->texts[i];
	report_add_row(r, t, cells);
}

static uint64_t time_of(const struct tag_group *g)
{
	return g->amounts->q.ns_all;
}

void waitgroups_report(struct report *r, struct waitgroups *w, uint64_t of_ns,
		       const struct view_limits *limits)
{
	struct report_table *t = begin_table(r, w->table);
	struct amount rest = {0};
	struct tag_group other = {.amounts = &rest};
	other.texts[w->table->other_at] = "<other>";
	tag_groups_sort(&w->g, time_of);
	vec_foreach(g, &w->g.groups) {
		if (view_has_room(limits, t, view_pct(time_of(g), of_ns))) {
			add_group(r, t, g, of_ns);
			continue;
		}
		quantile_merge(&rest.q, &g->amounts->q);
		other.nr_threads = MAX(other.nr_threads, g->nr_threads);
	}
	t->has_other = rest.q.nr_all || rest.q.ns_all;
	if (t->has_other)
		add_group(r, t, &other, of_ns);
	t->nr_rows_total = w->g.groups.n;
}
