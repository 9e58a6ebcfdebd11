/* Tables of page faults; see faultsum.h. */
#include "base/base.h"

#include "analyze/io/faultsum.h"

#include <errno.h>

#include "analyze/io/taggroups.h"
#include "analyze/wait/frames.h"
#include "base/text/num.h"

enum { MAJOR = 0, MINOR = 1 };

struct faultsum {
	struct report *r;
	const struct profile *p;
	const struct view_limits *limits;
	struct arena *a;
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
static const char *most_text(struct report *r, const struct tag_groups *groups, const char *where,
			     uint64_t (*nr)(const struct tag_group *g))
{
	const struct tag_group *most = NULL;
	uint64_t all = 0;
	vec_foreach(g, &groups->groups) {
		all += nr(g);
		if (!most || nr(g) > nr(most))
			most = g;
	}
	double pct = all ? 100.0 * (double)nr(most) / (double)all : 0;
	const char *name = most && most->texts[0] && *most->texts[0] ? view_name(r, most->texts[0])
								     : "[unknown]";
	return arena_fmt(&r->arena, "%s (%s %%) %s %s", view_most(pct), num_double(pct, 0).s, where,
			 name);
}

/* Major faults wait for the disk, so they are named first, however few. */
static void add_answer(struct faultsum *s, const struct tag_groups *objects,
		       const struct tag_groups *functions)
{
	struct amount all[2] = {0};
	vec_foreach(g, &objects->groups)
		for (size_t i = 0; i < ARRAY_LEN(all); i++)
			amount_merge(&all[i], &g->amounts[i]);
	if (all[MAJOR].nr)
		report_finding(s->r, "%s read pages from disk and took %s; %s, %s",
			       num_noun(all[MAJOR].nr, "major faults").s, num_ns(all[MAJOR].ns).s,
			       most_text(s->r, objects, "in", nr_major),
			       most_text(s->r, functions, "by", nr_major));
	else
		report_finding(s->r, "no major fault: no page was read from disk");
	if (all[MINOR].nr)
		report_finding(s->r, "%s (page new or in memory) took %s; %s, %s",
			       num_noun(all[MINOR].nr, "minor faults").s, num_ns(all[MINOR].ns).s,
			       most_text(s->r, objects, "in", nr_minor),
			       most_text(s->r, functions, "by", nr_minor));
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
	add_answer(s, &objects, &functions);
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
		if (strcmp(row.detail, "kswapd") != 0)
			amount_add(tag_groups_at(&functions, texts, 2)->amounts, &row);
	}
	add_table(s, &reclaim_kinds_table, &kinds);
	if (functions.groups.n)
		add_table(s, &reclaim_functions_table, &functions);
	return 0;
}

static int report_faults(struct report *r, const struct profile *p, const struct select_spec *spec,
			 bool is_part, const char *input, const struct view_limits *limits,
			 struct err *err)
{
	CLEANUP(arena_release) struct arena scratch = {0};
	struct select_spec own = *spec;
	struct selection sel;
	own.event = table_key(tables_has_rows(p, TABLE_FAULTS) ? TABLE_FAULTS : TABLE_RECLAIM);
	TRY(select_run(&scratch, p, &own, &sel, err));
	struct faultsum s = {
		.r = r,
		.p = p,
		.limits = limits,
		.a = &scratch,
		.seconds = (double)view_duration_ns(&sel) / 1e9,
		.frames = waitframes_new(&scratch, p),
	};
	if (!is_part)
		view_begin(r, &sel, "page faults");
	int rc = add_faults(&s, &own, err);
	rc = rc ? rc : add_reclaim(&s, &own, err);
	if (!rc && input)
		report_hint(r, &(struct report_hint){
				       HINT_FLAME, input, {{HINT_EVENT, table_key(TABLE_FAULTS)}}});
	return rc;
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
