/* Page faults in tables; see faultsum.h. */
#include "base/base.h"

#include "analyze/faultsum.h"

#include <errno.h>
#include <string.h>

#include "analyze/tallygroups.h"
#include "analyze/waitframes.h"

enum { MAJOR = 0, MINOR = 1 };

struct faultsum {
	struct report *r;
	const struct profile *p;
	const struct view_limits *limits;
	struct arena *a;
	double seconds;
	struct waitframes *frames;
};

/* Major faults first: one of them costs as much as a hundred minor ones. */
static uint64_t weight_of_faults(const struct tally_group *g)
{
	return g->amounts[MAJOR].nr * 100 + g->amounts[MINOR].nr;
}

static uint64_t weight_of_time(const struct tally_group *g)
{
	return g->amounts[0].ns;
}

/* ---- kinds: faults and reclaim ------------------------------------------------------------ */

static const struct report_column kind_columns[] = {
	{"kind", "kind", CELL_TEXT, NULL},
	{"count", "count", CELL_COUNT, "exact"},
	{"per_s", "per second", CELL_FLOAT, NULL},
	{"time_ns", "time", CELL_NS, "0 where the kernel does not tell where faults begin"},
	{"mean_ns", "mean", CELL_NS, NULL},
	{"p50_ns", "p50", CELL_NS, NULL},
	{"p99_ns", "p99", CELL_NS, NULL},
	{"longest_ns", "longest", CELL_NS, NULL},
	{"pages", "pages", CELL_COUNT, "given back"},
};

static void add_kind_rows(struct faultsum *s, struct tally_groups *kinds, const char *key,
			  const char *title, size_t nr_columns)
{
	struct report_table *t = report_add_table(s->r, key, title, kind_columns, nr_columns);
	t->note = "p50 and p99 are interpolated within classes of durations, powers of two";
	tally_groups_sort(kinds, weight_of_time);
	vec_foreach(g, &kinds->groups) {
		const struct amount *a = g->amounts;
		union cell cells[] = {
			{.text = g->texts[0]},
			{.u = a->nr},
			{.d = s->seconds > 0 ? (double)a->nr / s->seconds : 0},
			{.u = a->ns},
			{.u = a->nr ? a->ns / a->nr : 0},
			{.u = quantile_at(&a->q, 0.5)},
			{.u = quantile_at(&a->q, 0.99)},
			{.u = a->q.longest_ns},
			{.u = a->pages},
		};
		report_add_row(s->r, t, cells);
	}
	t->nr_rows_total = t->nr_rows;
}

/* ---- faults by object and by function ----------------------------------------------------- */

#define FAULT_COLUMNS                                                                              \
	{"major", "major", CELL_COUNT, "a page had to be read"},                                   \
		{"major_ns", "their time", CELL_NS, NULL}, {"major_p99_ns", "p99", CELL_NS, NULL}, \
		{"minor", "minor", CELL_COUNT, "the page was there or new"},                       \
	{                                                                                          \
		"minor_ns", "their time", CELL_NS, NULL                                            \
	}

static const struct report_column object_columns[] = {
	FAULT_COLUMNS,
	{"object", "mapped file or kind of memory", CELL_TEXT, NULL},
};

static const struct report_column function_columns[] = {
	FAULT_COLUMNS,
	{"function", "function", CELL_TEXT, "the nearest one that is the program's own"},
	{"call", "through", CELL_TEXT, "what it called"},
};

#define NR_FAULT_CELLS (ARRAY_LEN(object_columns) - 1)

static void fill_faults(union cell *cells, const struct amount *amounts)
{
	cells[0].u = amounts[MAJOR].nr;
	cells[1].u = amounts[MAJOR].ns;
	cells[2].u = quantile_at(&amounts[MAJOR].q, 0.99);
	cells[3].u = amounts[MINOR].nr;
	cells[4].u = amounts[MINOR].ns;
}

static void add_fault_rows(struct faultsum *s, struct tally_groups *groups, struct report_table *t,
			   size_t nr_texts)
{
	tally_groups_sort(groups, weight_of_faults);
	tally_groups_report(groups, s->r, t,
			    &(struct tally_shape){.nr_cells = NR_FAULT_CELLS,
						  .nr_texts = nr_texts,
						  .fill = fill_faults,
						  .max_rows = s->limits->max_rows});
}

static int add_faults(struct faultsum *s, const struct select_spec *spec, struct err *err)
{
	struct tally_rows rows;
	struct tally_row row;
	int rc = tally_rows_open(&rows, s->a, s->p, TABLE_FAULTS, spec, err);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	CLEANUP(tally_groups_release) struct tally_groups kinds = {.arena = s->a};
	CLEANUP(tally_groups_release) struct tally_groups objects = {.arena = s->a};
	CLEANUP(tally_groups_release) struct tally_groups functions = {.arena = s->a};
	while (tally_rows_next(&rows, &row)) {
		int which = !strcmp(row.detail, "major") ? MAJOR : MINOR;
		const char *object = profile_text(s->p, row.tag->object);
		struct waitframe f = waitframe_of(s->frames, row.stack);
		const char *texts[] = {waitframe_name(s->p, &f), profile_text(s->p, f.via)};
		amount_add(tally_groups_at(&kinds, &row.detail, 1)->amounts, &row);
		amount_add(&tally_groups_at(&objects, &object, 1)->amounts[which], &row);
		amount_add(&tally_groups_at(&functions, texts, 2)->amounts[which], &row);
	}
	add_kind_rows(s, &kinds, "faults", "page faults", ARRAY_LEN(kind_columns) - 1);
	add_fault_rows(s, &objects,
		       report_add_table(s->r, "fault_objects", "by what is mapped there",
					object_columns, ARRAY_LEN(object_columns)),
		       1);
	add_fault_rows(s, &functions,
		       report_add_table(s->r, "fault_functions", "by function", function_columns,
					ARRAY_LEN(function_columns)),
		       2);
	report_note(s->r, "faults are no hit rate: a page that is mapped already does not fault, "
			  "and a major fault reads as much as read-ahead decides");
	return 0;
}

/* ---- reclaim ------------------------------------------------------------------------------ */

static const struct report_column reclaim_columns[] = {
	{"times", "times", CELL_COUNT, NULL}, {"time_ns", "time", CELL_NS, NULL},
	{"p99_ns", "p99", CELL_NS, NULL},     {"pages", "pages", CELL_COUNT, NULL},
	{"kind", "kind", CELL_TEXT, NULL},    {"function", "function", CELL_TEXT, NULL},
};

static const char *reclaim_text(const char *kind)
{
	if (!strcmp(kind, "direct"))
		return "direct: the machine was short of memory";
	if (!strcmp(kind, "memcg"))
		return "memcg: at the limit of its memory cgroup";
	if (!strcmp(kind, "node"))
		return "node: a NUMA node was short of memory";
	return "kswapd wake-ups: the machine's, whoever it was for";
}

static void add_reclaim_functions(struct faultsum *s, struct tally_groups *g)
{
	if (!g->groups.n)
		return;
	struct report_table *t =
		report_add_table(s->r, "reclaim_functions", "who had to free memory first",
				 reclaim_columns, ARRAY_LEN(reclaim_columns));
	tally_groups_sort(g, weight_of_time);
	t->nr_rows_total = g->groups.n;
	for (size_t i = 0; i < g->groups.n; i++) {
		if (s->limits->max_rows && i >= s->limits->max_rows)
			break;
		const struct amount *a = g->groups.p[i].amounts;
		union cell cells[] = {
			{.u = a->nr},
			{.u = a->ns},
			{.u = quantile_at(&a->q, 0.99)},
			{.u = a->pages},
			{.text = g->groups.p[i].texts[0]},
			{.text = g->groups.p[i].texts[1]},
		};
		report_add_row(s->r, t, cells);
	}
}

static int add_reclaim(struct faultsum *s, const struct select_spec *spec, struct err *err)
{
	struct tally_rows rows;
	struct tally_row row;
	int rc = tally_rows_open(&rows, s->a, s->p, TABLE_RECLAIM, spec, err);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	CLEANUP(tally_groups_release) struct tally_groups kinds = {.arena = s->a};
	CLEANUP(tally_groups_release) struct tally_groups functions = {.arena = s->a};
	while (tally_rows_next(&rows, &row)) {
		const char *kind = reclaim_text(row.detail);
		struct waitframe f = waitframe_of(s->frames, row.stack);
		const char *texts[] = {row.detail, waitframe_name(s->p, &f)};
		amount_add(tally_groups_at(&kinds, &kind, 1)->amounts, &row);
		if (strcmp(row.detail, "kswapd") != 0)
			amount_add(tally_groups_at(&functions, texts, 2)->amounts, &row);
	}
	add_kind_rows(s, &kinds, "reclaim", "memory that had to be freed first",
		      ARRAY_LEN(kind_columns));
	add_reclaim_functions(s, &functions);
	return 0;
}

int faultsum_report(struct report *r, const struct profile *p, const struct select_spec *spec,
		    const char *input, const struct view_limits *limits, struct err *err)
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
	view_begin(r, &sel, "page faults");
	int rc = add_faults(&s, &own, err);
	rc = rc ? rc : add_reclaim(&s, &own, err);
	if (!rc && input)
		report_hint(r, "assay flame %s --event faults", input);
	return rc;
}
