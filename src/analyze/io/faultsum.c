/* Tables of page faults; see faultsum.h. */
#include "base/base.h"

#include "analyze/io/faultsum.h"

#include <errno.h>

#include "analyze/diagnose/diagnose.h"
#include "analyze/io/taggroups.h"
#include "analyze/wait/frames.h"
#include "base/text/num.h"
#include "base/text/shortname.h"

#define NAME_TEXT 48 /* columns, as view_name */

enum { MAJOR = 0, MINOR = 1 };

struct faultsum {
	struct report *r; /* NULL: only the figures */
	const struct profile *p;
	const struct view_limits *limits;
	struct arena *a;
	struct arena *out; /* of texts of the figures */
	struct fault_figures *figures;
	double seconds;
	struct waitframes *frames;
};

/* Sort key: a major fault costs about as much as a hundred minor ones. */
static uint64_t weight_of_faults(const struct tag_group *g)
{
	return g->amounts[MAJOR].nr * 100 + g->amounts[MINOR].nr;
}

static uint64_t weight_of_time(const struct tag_group *g)
{
	return g->amounts[0].ns;
}

/* ---- the tables --------------------------------------------------------------------------- */

static const struct tag_column kind_columns[] = {
	{{"kind", "kind", CELL_TEXT, NULL}, TAG_TEXT, 0},
	{{"count", "count", CELL_COUNT, "exact"}, TAG_NR, 0},
	{{"per_s", "per second", CELL_FLOAT, NULL}, TAG_NR_PER_S, 0},
	{{"time_ns", "time", CELL_NS, "0 if the kernel has no event for the start of a fault"},
	 TAG_NS,
	 0},
	{{"mean_ns", "mean", CELL_NS, NULL}, TAG_MEAN_NS, 0},
	TAG_QUANTILES,
	{{"pages", "pages", CELL_COUNT, "reclaimed"}, TAG_PAGES, 0}, /* only in the reclaim table */
};

#define FAULT_COLUMNS                                                                         \
	{{"major", "major", CELL_COUNT, "page read from disk"}, TAG_NR, MAJOR},               \
		{{"major_ns", "major time", CELL_NS, NULL}, TAG_NS, MAJOR},                   \
		{{"major_p99_ns", "major p99", CELL_NS, NULL}, TAG_P99_NS, MAJOR},            \
		{{"minor", "minor", CELL_COUNT, "page was in memory or new"}, TAG_NR, MINOR}, \
	{                                                                                     \
		{"minor_ns", "minor time", CELL_NS, NULL}, TAG_NS, MINOR                      \
	}

static const struct tag_column object_columns[] = {
	FAULT_COLUMNS,
	{{"object", "mapping", CELL_TEXT, NULL}, TAG_TEXT, 0},
};

static const struct tag_column function_columns[] = {
	FAULT_COLUMNS,
	{{"function", "function", CELL_TEXT, "innermost function of the program"}, TAG_TEXT, 0},
	{{"call", "call", CELL_TEXT, "what it called"}, TAG_TEXT, 1},
};

static const struct tag_column reclaim_columns[] = {
	{{"times", "times", CELL_COUNT, NULL}, TAG_NR, 0},
	{{"time_ns", "time", CELL_NS, NULL}, TAG_NS, 0},
	{{"p99_ns", "p99", CELL_NS, NULL}, TAG_P99_NS, 0},
	{{"pages", "pages", CELL_COUNT, NULL}, TAG_PAGES, 0},
	{{"kind", "kind", CELL_TEXT, NULL}, TAG_TEXT, 0},
	{{"function", "function", CELL_TEXT, NULL}, TAG_TEXT, 1},
};

static const struct tag_table kinds_table = {.key = "faults",
					     .title = "page faults",
					     .columns = kind_columns,
					     .nr_columns = ARRAY_LEN(kind_columns) - 1,
					     .note = TAG_QUANTILE_NOTE,
					     .weight = weight_of_time,
					     .flags = TAG_WHOLE};
static const struct tag_table objects_table = {TAG_TABLE("fault_objects", "page faults by mapping",
							 object_columns),
					       .weight = weight_of_faults};
static const struct tag_table functions_table = {
	TAG_TABLE("fault_functions", "page faults by function", function_columns),
	.weight = weight_of_faults};
static const struct tag_table reclaim_kinds_table = {
	TAG_TABLE("reclaim", "memory reclaim", kind_columns), .note = TAG_QUANTILE_NOTE,
	.weight = weight_of_time, .flags = TAG_WHOLE};
static const struct tag_table reclaim_functions_table = {
	TAG_TABLE("reclaim_functions", "direct reclaim by function", reclaim_columns),
	.weight = weight_of_time, .flags = TAG_NO_OTHER};

static void add_table(struct faultsum *s, const struct tag_table *table, struct tag_groups *groups)
{
	tag_report(groups, s->r, table, s->limits->max_rows, s->seconds);
}

static uint64_t nr_major(const struct tag_group *g)
{
	return g->amounts[MAJOR].nr;
}

static uint64_t nr_minor(const struct tag_group *g)
{
	return g->amounts[MINOR].nr;
}

/* The first of a ranking by faults: "most (84 %) in X". */
static const char *most_text(struct arena *a, const struct tag_groups *groups, const char *where,
			     uint64_t (*nr)(const struct tag_group *g))
{
	const struct tag_group *most = NULL;
	CLEANUP(buf_release) struct buf name = {0};
	uint64_t all = 0;
	vec_foreach(g, &groups->groups) {
		all += nr(g);
		if (!most || nr(g) > nr(most))
			most = g;
	}
	double pct = all ? 100.0 * (double)nr(most) / (double)all : 0;
	bool has_name = most && most->texts[0] && *most->texts[0];
	shortname_add(&name, sv_from_str(has_name ? most->texts[0] : "[unknown]"), NAME_TEXT);
	return arena_fmt(a, "%s (%s %%) %s %s", view_most(pct), num_double(pct, 0).s, where,
			 buf_str(&name));
}

static void fill_faults(struct fault_figures *f, struct arena *a, const struct tag_groups *objects,
			const struct tag_groups *functions)
{
	struct amount all[2] = {0};
	vec_foreach(g, &objects->groups) {
		const char *name = g->texts[0] ? g->texts[0] : "";
		bool is_anon = !strncmp(name, "[anon", 5) || !strncmp(name, "[heap", 5) ||
			       !strncmp(name, "[stack", 6);
		for (size_t i = 0; i < ARRAY_LEN(all); i++)
			amount_merge(&all[i], &g->amounts[i]);
		f->nr_major_anon += is_anon ? g->amounts[MAJOR].nr : 0;
	}
	f->has_faults = true;
	f->nr_major = all[MAJOR].nr;
	f->major_ns = all[MAJOR].ns;
	f->nr_minor = all[MINOR].nr;
	f->minor_ns = all[MINOR].ns;
	f->major_objects = most_text(a, objects, "in", nr_major);
	f->major_functions = most_text(a, functions, "by", nr_major);
	f->minor_objects = most_text(a, objects, "in", nr_minor);
	f->minor_functions = most_text(a, functions, "by", nr_minor);
}

/* ---- faults ------------------------------------------------------------------------------- */

static int add_faults(struct faultsum *s, const struct select_spec *spec, struct err *err)
{
	struct tag_rows rows;
	struct tag_row row;
	int rc = tag_rows_open(&rows, s->a, s->p, TABLE_FAULTS, spec, err);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	CLEANUP(tag_groups_release) struct tag_groups kinds = {.arena = s->a};
	CLEANUP(tag_groups_release) struct tag_groups objects = {.arena = s->a};
	CLEANUP(tag_groups_release) struct tag_groups functions = {.arena = s->a};
	while (tag_rows_next(&rows, &row)) {
		int which = !strcmp(row.detail, "major") ? MAJOR : MINOR;
		const char *object = profile_text(s->p, row.tag->object);
		struct waitframe f = waitframe_of(s->frames, row.stack);
		const char *texts[] = {waitframe_name(s->p, &f), profile_text(s->p, f.via)};
		amount_add(tag_groups_at(&kinds, &row.detail, 1)->amounts, &row);
		amount_add(&tag_groups_at(&objects, &object, 1)->amounts[which], &row);
		amount_add(&tag_groups_at(&functions, texts, 2)->amounts[which], &row);
	}
	fill_faults(s->figures, s->out, &objects, &functions);
	if (!s->r)
		return 0;
	add_table(s, &kinds_table, &kinds);
	add_table(s, &objects_table, &objects);
	add_table(s, &functions_table, &functions);
	report_detail(s->r, "page faults are not a cache miss rate: mapped pages do not fault, and "
			    "one major fault may read many pages (read-ahead)");
	return 0;
}

/* ---- reclaim ------------------------------------------------------------------------------ */

static const char *reclaim_text(const char *kind)
{
	if (!strcmp(kind, "direct"))
		return "direct: the machine was short of memory";
	if (!strcmp(kind, "memcg"))
		return "memcg: at the limit of its memory cgroup";
	if (!strcmp(kind, "node"))
		return "node: a NUMA node was short of memory";
	return "kswapd wake-ups: whole machine, not necessarily because of this program";
}

static int add_reclaim(struct faultsum *s, const struct select_spec *spec, struct err *err)
{
	struct tag_rows rows;
	struct tag_row row;
	int rc = tag_rows_open(&rows, s->a, s->p, TABLE_RECLAIM, spec, err);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	CLEANUP(tag_groups_release) struct tag_groups kinds = {.arena = s->a};
	CLEANUP(tag_groups_release) struct tag_groups functions = {.arena = s->a};
	while (tag_rows_next(&rows, &row)) {
		const char *kind = reclaim_text(row.detail);
		struct waitframe f = waitframe_of(s->frames, row.stack);
		const char *texts[] = {row.detail, waitframe_name(s->p, &f)};
		amount_add(tag_groups_at(&kinds, &kind, 1)->amounts, &row);
		if (strcmp(row.detail, "kswapd") != 0) {
			s->figures->nr_reclaims += row.nr;
			s->figures->reclaim_ns += row.ns;
			amount_add(tag_groups_at(&functions, texts, 2)->amounts, &row);
		}
	}
	if (!s->r)
		return 0;
	add_table(s, &reclaim_kinds_table, &kinds);
	if (functions.groups.n)
		add_table(s, &reclaim_functions_table, &functions);
	return 0;
}

static int sum_up(struct fault_figures *f, struct arena *out, struct report *r,
		  const struct profile *p, const struct select_spec *spec,
		  const struct selection *sel, const struct view_limits *limits, struct err *err)
{
	CLEANUP(arena_release) struct arena scratch = {0};
	struct faultsum s = {
		.r = r,
		.p = p,
		.limits = limits,
		.a = &scratch,
		.out = out,
		.figures = f,
		.seconds = (double)view_duration_ns(sel) / 1e9,
		.frames = waitframes_new(&scratch, p),
	};
	*f = (struct fault_figures){.seconds = s.seconds};
	TRY(add_faults(&s, spec, err));
	return add_reclaim(&s, spec, err);
}

static int select_faults(struct arena *a, const struct profile *p, struct select_spec *own,
			 struct selection *ret_sel, struct err *err)
{
	own->event = table_key(tables_has_rows(p, TABLE_FAULTS) ? TABLE_FAULTS : TABLE_RECLAIM);
	return select_run(a, p, own, ret_sel, err);
}

int faultsum_figures(struct fault_figures *ret_f, struct arena *a, const struct profile *p,
		     const struct select_spec *spec, struct err *err)
{
	CLEANUP(arena_release) struct arena scratch = {0};
	struct select_spec own = *spec;
	struct selection sel;
	TRY(select_faults(&scratch, p, &own, &sel, err));
	return sum_up(ret_f, a, NULL, p, &own, &sel, NULL, err);
}

static int report_faults(struct report *r, const struct profile *p, const struct select_spec *spec,
			 bool is_part, const char *input, const struct view_limits *limits,
			 struct err *err)
{
	CLEANUP(arena_release) struct arena scratch = {0};
	struct select_spec own = *spec;
	struct selection sel;
	struct fault_figures f;
	TRY(select_faults(&scratch, p, &own, &sel, err));
	if (!is_part)
		view_begin(r, &sel, "page faults");
	TRY(sum_up(&f, &scratch, r, p, &own, &sel, limits, err));
	CLEANUP(measures_free_p) struct measures *m = measures_new(p, &own, input);
	measures_give_faults(m, &f);
	diagnose_page(r, m, 1u << MEASURE_FAULTS, 0, is_part ? DIAGNOSE_PART : 0);
	if (input)
		report_hint(r, &(struct report_hint){
				       HINT_FLAME, input, {{HINT_EVENT, table_key(TABLE_FAULTS)}}});
	return 0;
}

int faultsum_report(struct report *r, const struct profile *p, const struct select_spec *spec,
		    const char *input, const struct view_limits *limits, struct err *err)
{
	return report_faults(r, p, spec, false, input, limits, err);
}

int faultsum_add(struct report *r, const struct profile *p, const struct select_spec *spec,
		 const struct view_limits *limits, struct err *err)
{
	return report_faults(r, p, spec, true, NULL, limits, err);
}
