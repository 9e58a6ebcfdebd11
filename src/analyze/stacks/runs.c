/* Comparison of several runs; see runs.h. */
#include "base/base.h"
#include "analyze/stacks/runs.h"

#include <math.h>

#include "analyze/stacks/groups.h"
#include "analyze/select/weigh.h"
#include "base/stat.h"
#include "base/text/num.h"

/* A function that was sampled in at least one run. */
struct run_row {
	const char *name;
	const char *module;
	struct weight *self; /* by run */
	double mean_pct;
};

struct run_rows {
	const struct run_input *runs;
	size_t nr_runs;
	struct intern keys; /* "module\nname" */
	struct arena arena;
	VEC(struct run_row) rows; /* by key; 0 is a dummy */
};

static void rows_release(struct run_rows *t)
{
	intern_release(&t->keys);
	vec_release(&t->rows);
	arena_release(&t->arena);
}

static struct run_row *row_of(struct run_rows *t, const struct group *g)
{
	struct arena_mark m = arena_mark(&t->arena);
	const char *key = arena_fmt(&t->arena, "%s\n%s", g->module, g->name);
	uint32_t id = intern_add_str(&t->keys, key);
	arena_rewind(&t->arena, m);
	while (t->rows.n <= id)
		vec_push(&t->rows, (struct run_row){0});
	struct run_row *row = &t->rows.p[id];
	if (!row->self)
		*row = (struct run_row){
			.name = arena_strdup(&t->arena, g->name),
			.module = arena_strdup(&t->arena, g->module),
			.self = arena_calloc(&t->arena, t->nr_runs, sizeof(*row->self)),
		};
	return row;
}

static void add_run(struct run_rows *t, size_t run)
{
	CLEANUP(arena_release) struct arena a = {0};
	const struct selection *sel = &t->runs[run].sel;
	struct groups g = groups_by(&a, sel->p, BY_FUNCTION);
	struct weighed w = weigh(&a, sel);
	const struct group_weight *gw = weigh_groups(&a, &w, &g);
	for (size_t i = 1; i < g.n; i++) {
		if (!gw[i].self.nr_samples && !gw[i].self.weight)
			continue;
		struct weight *self = &row_of(t, &g.rows[i])->self[run];
		self->weight += gw[i].self.weight;
		self->nr_samples += gw[i].self.nr_samples;
	}
}

/* ---- a row's numbers ----------------------------------------------------------------------- */

struct spread {
	struct stat_run shares; /* per cent */
	double chance_pct;      /* standard deviation that sampling alone causes */
	uint64_t nr_runs_in;
	uint64_t nr_samples;
};

static struct spread spread_of(const struct run_rows *t, const struct weight *self)
{
	struct spread s = {0};
	for (size_t i = 0; i < t->nr_runs; i++) {
		stat_add(&s.shares, view_pct(self[i].weight, t->runs[i].sel.weight));
		s.nr_runs_in += self[i].nr_samples > 0;
		s.nr_samples += self[i].nr_samples;
	}
	double p = s.shares.mean / 100;
	double variance = 0;
	for (size_t i = 0; i < t->nr_runs; i++)
		if (t->runs[i].sel.nr_samples)
			variance += p * (1 - p) /
				    view_effective(&t->runs[i].sel, view_all(&t->runs[i].sel));
	s.chance_pct = variance > 0 ? 100 * sqrt(variance / (double)t->nr_runs) : 0;
	return s;
}

static int by_name(const void *x, const void *y)
{
	const struct run_row *a = x;
	const struct run_row *b = y;
	return strcmp(a->name, b->name) ?: strcmp(a->module, b->module);
}

static int by_mean(const void *x, const void *y)
{
	const struct run_row *a = x;
	const struct run_row *b = y;
	return COMPARE(b->mean_pct, a->mean_pct) ?: by_name(x, y);
}

/* ---- tables -------------------------------------------------------------------------------- */

static void add_runs(struct report *r, const struct run_rows *t)
{
	static const struct report_column columns[] = {
		{"run", "run", CELL_ID, NULL},
		{"samples", "samples", CELL_COUNT, "samples shown"},
		{"duration_ns", "duration", CELL_NS, "of the capture, or of the window of time"},
		{"cpus", "avg CPUs", CELL_FLOAT, "in use on average"},
		{"recording", "recording", CELL_TEXT, NULL},
	};
	struct report_table *table =
		report_add_table(r, "runs", "runs", columns, ARRAY_LEN(columns));
	for (size_t i = 0; i < t->nr_runs; i++) {
		const struct selection *sel = &t->runs[i].sel;
		double cpus = view_cpus(sel, view_busy(sel));
		report_add_row(r, table,
			       (union cell[]){{.u = i + 1},
					      {.u = sel->nr_samples},
					      {.u = view_duration_ns(sel)},
					      {.d = cpus < 0 ? (double)NAN : cpus},
					      {.text = t->runs[i].name}});
	}
}

static void add_function(struct report *r, struct report_table *table, const struct run_rows *t,
			 const struct run_row *row)
{
	struct spread s = spread_of(t, row->self);
	report_add_row(r, table,
		       (union cell[]){{.d = s.shares.mean},
				      {.d = s.shares.min},
				      {.d = s.shares.max},
				      {.d = stat_stddev(&s.shares)},
				      {.d = s.chance_pct},
				      {.u = s.nr_runs_in},
				      {.u = s.nr_samples},
				      {.text = row->name},
				      {.text = row->module}});
}

static void add_functions(struct report *r, struct run_rows *t, const struct view_limits *limits)
{
	static const struct report_column columns[] = {
		{"mean_pct", "mean self %", CELL_PERCENT, "mean self share over the runs"},
		{"min_pct", "min", CELL_PERCENT, "smallest share of a run"},
		{"max_pct", "max", CELL_PERCENT, "largest share of a run"},
		{"stddev_pct", "std dev", CELL_PERCENT,
		 "standard deviation of the shares over the runs (n - 1), in percentage points"},
		{"chance_pct", "sampling sd", CELL_PERCENT,
		 "standard deviation that sampling alone causes, in percentage points"},
		{"runs", "runs", CELL_COUNT, "runs in which it was sampled"},
		{"samples", "samples", CELL_COUNT, "in all runs"},
		{"function", "function", CELL_TEXT, NULL},
		{"module", "module", CELL_TEXT, NULL},
	};
	struct report_table *table =
		report_add_table(r, "run_functions", "hottest functions over the runs (self time)",
				 columns, ARRAY_LEN(columns));
	struct run_row other = {"<other>", "",
				arena_calloc(&t->arena, t->nr_runs, sizeof(*other.self)), 0};
	size_t nr_cut = 0;
	for (size_t i = 1; i < t->rows.n; i++) {
		const struct run_row *row = &t->rows.p[i];
		if ((!limits->max_rows || table->nr_rows < limits->max_rows) &&
		    row->mean_pct >= limits->min_pct) {
			add_function(r, table, t, row);
			continue;
		}
		nr_cut++;
		for (size_t k = 0; k < t->nr_runs; k++) {
			other.self[k].weight += row->self[k].weight;
			other.self[k].nr_samples += row->self[k].nr_samples;
		}
	}
	table->has_other = nr_cut > 0;
	if (nr_cut)
		add_function(r, table, t, &other);
	table->nr_rows_total = t->rows.n - 1;
}

/* ---- what stands above --------------------------------------------------------------------- */

static bool is_same_in_all(const struct run_rows *t, const char *key, const char *value)
{
	for (size_t i = 1; i < t->nr_runs; i++) {
		const char *v = profile_get_fact_text(t->runs[i].sel.p, key);
		if (!v || strcmp(v, value))
			return false;
	}
	return true;
}

static void begin(struct report *r, const struct run_rows *t)
{
	const struct profile *first = t->runs[0].sel.p;
	r->title = arena_fmt(&r->arena, "%s", num_noun(t->nr_runs, "runs").s);
	r->unit = t->runs[0].sel.unit;
	vec_foreach(f, &first->facts) {
		const char *key = profile_text(first, f->key);
		const char *value = profile_text(first, f->value);
		if (is_same_in_all(t, key, value))
			report_fact_text(r, key, value);
	}
	bool has_one_event = true;
	for (size_t i = 0; i < t->nr_runs; i++) {
		const struct selection *sel = &t->runs[i].sel;
		losses_merge(&r->losses, &sel->p->losses);
		r->total += sel->weight;
		r->nr_samples += sel->nr_samples;
		has_one_event &= !strcmp(sel->event, t->runs[0].sel.event);
		if (sel->p->is_incomplete)
			report_note(
				r,
				"run %zu is incomplete: the recorder was killed or the file was "
				"truncated",
				i + 1);
		if (!sel->nr_samples)
			report_note(r,
				    "run %zu has no samples to show: it counts as 0 %% for each "
				    "function",
				    i + 1);
	}
	if (has_one_event)
		report_fact(r, FACT_EVENT, t->runs[0].sel.event);
	else
		report_note(
			r,
			"the runs recorded different events, so their shares may differ for that "
			"reason");
	if (t->nr_runs < 3)
		report_note(r, "%s",
			    t->nr_runs < 2 ? "one run has no spread: record three or more"
					   : "two runs are too few to estimate the "
					     "spread: record three or more");
}

void runs_report(struct report *r, const struct run_input *runs, size_t nr_runs,
		 const struct view_limits *limits)
{
	ASSERT(nr_runs);
	CLEANUP(rows_release) struct run_rows t = {.runs = runs, .nr_runs = nr_runs};
	vec_push(&t.rows, (struct run_row){0});
	for (size_t i = 0; i < nr_runs; i++)
		add_run(&t, i);
	for (size_t i = 1; i < t.rows.n; i++)
		t.rows.p[i].mean_pct = spread_of(&t, t.rows.p[i].self).shares.mean;
	if (t.rows.n > 1)
		qsort(&t.rows.p[1], t.rows.n - 1, sizeof(*t.rows.p),
		      limits->sort == VIEW_BY_NAME ? by_name : by_mean);
	begin(r, &t);
	add_runs(r, &t);
	add_functions(r, &t, limits);
}
