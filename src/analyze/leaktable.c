/* Leaks by site; see leaktable.h. */
#include "base/base.h"
#include "analyze/leaktable.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analyze/heapweights.h"
#include "analyze/window.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/num.h"
#include "base/stat.h"
#include "model/heap.h"

#define FRAMES_MAX   12
#define SLICES_MAX   100000            /* of a site */
#define CELLS_MAX    ((size_t)1 << 24) /* of all sites */
#define JUDGED_MIN   200u /* sites whose growth is told, also if their rows are not shown */
#define STEADY_SHARE 0.2  /* of what a site holds: growth below it in a whole capture is none */

/* A line through the second half by least squares: does it fall, and what is left at its end? */
static bool is_slowing(const double *v, size_t n, double mean)
{
	double middle = (double)(n - 1) / 2;
	double sxx = 0;
	double sxy = 0;
	double rest = 0;
	for (size_t i = 0; i < n; i++) {
		sxx += ((double)i - middle) * ((double)i - middle);
		sxy += ((double)i - middle) * (v[i] - mean);
	}
	double slope = sxy / sxx;
	for (size_t i = 0; i < n; i++) {
		double d = v[i] - mean - slope * ((double)i - middle);
		rest += d * d;
	}
	double error = stat_t95(n - 2) * sqrt(rest / (double)(n - 2) / sxx);
	return slope + error < 0 && mean + slope * middle < mean / 2;
}

struct leak_growth leak_growth_of(const double *net_bytes, size_t n)
{
	struct stat_run run = {0};
	if (n < LEAK_SLICES_MIN)
		return (struct leak_growth){0};
	for (size_t i = n / 2; i < n; i++)
		stat_add(&run, net_bytes[i]);
	double error = stat_t95((size_t)run.n - 1) * stat_stddev(&run) / sqrt((double)run.n);
	return (struct leak_growth){.is_known = true,
				    .per_min = 60 * run.mean,
				    .per_min_error = 60 * error,
				    .is_slowing = run.n > 2 && is_slowing(&net_bytes[n / 2],
									  (size_t)run.n, run.mean)};
}

const char *leak_verdict(const struct leak_growth *g, int64_t leaked_bytes, uint64_t duration_ns)
{
	if (!g->is_known)
		return "too short to tell";
	double most = fabs(g->per_min) + g->per_min_error;
	double minutes = (double)duration_ns / 60e9;
	if (g->per_min - g->per_min_error > 0) {
		bool is_little = most * minutes < STEADY_SHARE * (double)leaked_bytes;
		return is_little ? "steady" : g->is_slowing ? "slows down" : "grows";
	}
	if (g->per_min + g->per_min_error < 0)
		return "shrinks";
	return most * minutes < STEADY_SHARE * (double)leaked_bytes ? "steady" : "unclear";
}

static const struct report_column columns[] = {
	{"leaked", "leaked", CELL_BYTES_ESTIMATE, "bytes that were not freed and are old enough"},
	{"blocks", "blocks", CELL_COUNT_ESTIMATE, NULL},
	{"oldest_ns", "oldest", CELL_NS, "age at the end of the oldest of them, to the second"},
	{"growth_per_min", "growth/min", CELL_BYTES_CHANGE,
	 "allocated - freed in the second half of the capture"},
	{"verdict", "verdict", CELL_TEXT,
	 "grows, slows down, steady, shrinks, unclear, too short to tell, too few samples; not "
	 "freed: the program has ended"},
	{"function", "allocated by", CELL_TEXT, "the nearest function that is no allocator's"},
	{"stack", "called from", CELL_TEXT, "callers of the function, the nearest first"},
};

static const char *const spare[] = {"oldest_ns", "blocks", "stack", NULL};

/* Net bytes a slice of time, of the sites that are judged. */
struct slices {
	struct map rows; /* by site */
	double *net;     /* nr_rows x n */
	size_t n;
	uint64_t start_ns;
	uint64_t step_ns; /* of a slice: a second, or more where that were too many */
};

static int add_net(struct slices *s, struct heapfigures *f, enum table_id table, double sign,
		   const struct select_spec *spec, struct err *err)
{
	struct heaprows rows;
	struct heaprow row;
	int rc = heaprows_open(&rows, f->arena, f->p, table, spec, err);
	if (rc)
		return rc == -ENOENT && !tables_find_rows(f->p, table) ? 0 : rc;
	while (heaprows_next(&rows, &row)) {
		const uint32_t *at = map_get(
			&s->rows, heapfigures_site_key(heapframes_of(f->frames, row.stack)));
		uint64_t k =
			row.time_ns >= s->start_ns ? (row.time_ns - s->start_ns) / s->step_ns : 0;
		if (at && k < s->n)
			s->net[*at * s->n + k] += sign * (double)row.bytes;
	}
	return 0;
}

/* The last slice is rarely a whole one, and counts for none. */
static int fill_slices(struct slices *s, struct heapfigures *f, size_t nr_rows,
		       const struct select_spec *spec, struct err *err)
{
	struct window w = window_of_profile(f->p);
	struct select_spec own = *spec;
	own.event = NULL;
	own.time = NULL;
	s->start_ns = w.from_ns;
	size_t most = MIN((size_t)SLICES_MAX, CELLS_MAX / MAX(nr_rows, (size_t)1));
	s->step_ns = NS_PER_SEC * ((w.to_ns - w.from_ns) / NS_PER_SEC / MAX(most, (size_t)1) + 1);
	s->n = (w.to_ns - w.from_ns) / s->step_ns;
	if (f->leaks.rule == LEAKS_UNKNOWN || s->n < LEAK_SLICES_MIN)
		s->n = 0;
	s->net = arena_calloc(f->arena, nr_rows * s->n + 1, sizeof(*s->net));
	for (size_t i = 0; i < nr_rows; i++)
		*map_put(&s->rows, heapfigures_site_key(&f->sites.rows.p[i].frame), NULL) =
			(uint32_t)i;
	int rc = s->n ? add_net(s, f, TABLE_ALLOCATED, 1, &own, err) : 0;
	return rc || !s->n ? rc : add_net(s, f, TABLE_FREED, -1, &own, err);
}

static struct leak_growth growth_of(const struct slices *s, size_t row)
{
	struct leak_growth g = leak_growth_of(&s->net[row * s->n], s->n);
	double per_second = (double)NS_PER_SEC / (double)s->step_ns;
	g.per_min *= per_second;
	g.per_min_error *= per_second;
	return g;
}

static const struct heap_sum *leaked_of(const struct heap_figures *f)
{
	return &f->leaked;
}

/* Callers without the function itself, which has a column. */
static void add_callers(struct buf *to, const struct profile *p, const struct heapframe *f)
{
	CLEANUP(buf_release) struct buf all = {0};
	heapframe_add_callers(&all, p, f, FRAMES_MAX);
	const char *rest = strstr(buf_str(&all), " < ");
	buf_add_str(to, rest ? rest + strlen(" < ") : "-");
}

/* A site with its verdict; those that grow come first, the fastest before the others. */
struct site {
	struct heap_group group;
	size_t rank; /* by size */
	struct leak_growth growth;
	const char *verdict;
	bool grows;
};

static struct site judge_site(const struct heapfigures *f, const struct heap_group *g,
			      const struct slices *slices, size_t row)
{
	struct window w = window_of_profile(f->p);
	struct site s = {.group = *g, .rank = row, .growth = growth_of(slices, row)};
	double half_s = (double)(slices->n - slices->n / 2) * (double)slices->step_ns / 1e9;
	double error = stat_estimate_error((double)g->f.leaked.bytes, g->f.leaked.variance);
	/* That no sample came in so many seconds: of a Poisson count of 0 the limit is 3. */
	if (s.growth.is_known && g->f.leaked.variance > 0 && !s.growth.per_min &&
	    !s.growth.per_min_error)
		s.growth.per_min_error = 3 * 60 * (double)heap_sampling_bytes(f->p) / half_s;
	s.verdict = leak_verdict(&s.growth, g->f.leaked.bytes, w.to_ns - w.from_ns);
	s.grows = !strcmp(s.verdict, "grows");
	if (error >= (double)g->f.leaked.bytes && !s.grows)
		s.verdict = "too few samples"; /* up to three: that none came since says nothing */
	else if (f->leaks.rule == LEAKS_ALL && !s.grows)
		s.verdict = "not freed"; /* nothing can free it any more */
	return s;
}

static int by_growth(const void *x, const void *y)
{
	const struct site *a = x;
	const struct site *b = y;
	if (a->grows != b->grows)
		return a->grows ? -1 : 1;
	if (a->grows && a->growth.per_min != b->growth.per_min)
		return a->growth.per_min > b->growth.per_min ? -1 : 1;
	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* The first thing that somebody who looks for a leak wants to read. */
static void note_leak(struct report *r, const struct heapfigures *f, const struct site *s,
		      size_t nr_growing)
{
	CLEANUP(buf_release) struct buf b = {0};
	buf_addf(&b, "%s grows by ", heapframe_name(f->p, &s->group.frame));
	num_add_bytes(&b, (uint64_t)s->growth.per_min);
	buf_add_str(&b, "/min (95 %: ");
	num_add_bytes(&b, (uint64_t)MAX(s->growth.per_min - s->growth.per_min_error, 0.0));
	buf_add_str(&b, " to ");
	num_add_bytes(&b, (uint64_t)MIN(s->growth.per_min + s->growth.per_min_error, 9e18));
	buf_add_str(&b, "): a leak, or a cache without a limit");
	if (nr_growing > 1)
		buf_addf(&b, "; %zu more sites grow", nr_growing - 1);
	report_note(r, "%s", buf_str(&b));
}

static void add_site(struct report *r, struct report_table *t, const struct heapfigures *f,
		     const struct site *s)
{
	const struct heap_group *g = &s->group;
	CLEANUP(buf_release) struct buf callers = {0};
	add_callers(&callers, f->p, &g->frame);
	union cell change = {.estimate = {.change = CELL_NO_CHANGE}};
	if (s->growth.is_known) {
		change.estimate.change = llrint(s->growth.per_min);
		change.estimate.error = (uint64_t)llrint(MIN(s->growth.per_min_error, 9e18));
	}
	union cell cells[] = {
		heap_cell_bytes(&g->f.leaked),
		heap_cell_count(&g->f.leaked),
		{.u = leaks_age_ns(&f->leaks, g->f.oldest_leak_ns)},
		change,
		{.text = s->verdict},
		{.text = heapframe_name(f->p, &g->frame)},
		{.text = buf_str(&callers)},
	};
	report_add_row(r, t, cells);
}

static void add_sum_row(struct report *r, struct report_table *t, const struct heap_sum *s,
			const char *name)
{
	if (s->nr <= 0 && s->bytes <= 0)
		return;
	union cell cells[] = {
		heap_cell_bytes(s),  heap_cell_count(s),
		{.u = CELL_NS_NONE}, {.estimate = {.change = CELL_NO_CHANGE}},
		{.text = "-"},       {.text = name},
		{.text = "-"},
	};
	report_add_row(r, t, cells);
}

static const char *title_of(struct heapfigures *f)
{
	CLEANUP(buf_release) struct buf age = {0};
	if (f->leaks.rule == LEAKS_ALL)
		return "leaked: not freed when the program ended, by site";
	num_add_ns(&age, f->leaks.min_age_ns);
	return arena_fmt(f->arena, "leaked: alive at the end and older than %s, by site",
			 buf_str(&age));
}

/* Of a site some stacks may be known leaks, which have a row of their own, and others not. */
static struct heap_sum unknown_of(const struct heap_group *g)
{
	const struct heap_sum *all = &g->f.leaked;
	const struct heap_sum *known = &g->f.suppressed;
	return (struct heap_sum){.nr = MAX(all->nr - known->nr, 0),
				 .bytes = MAX(all->bytes - known->bytes, 0),
				 .variance = MAX(all->variance - known->variance, 0),
				 .count_variance =
					 MAX(all->count_variance - known->count_variance, 0)};
}

/* The site without its known leaks; false: nothing is left. */
static bool unknown_part(struct heap_group *ret_g, const struct heap_group *g)
{
	*ret_g = *g;
	ret_g->f.leaked = unknown_of(g);
	return !heap_sum_is_none(&ret_g->f.leaked);
}

/* Verdicts of the @nr_judged largest sites, those that grow first. */
static struct site *judge_sites(struct heapfigures *f, const struct slices *s, size_t nr_judged,
				size_t *ret_n)
{
	struct site *sites = arena_calloc(f->arena, nr_judged + 1, sizeof(*sites));
	struct heap_group g;
	size_t n = 0;
	for (size_t i = 0; i < nr_judged; i++)
		if (unknown_part(&g, &f->sites.rows.p[i]))
			sites[n++] = judge_site(f, &g, s, i);
	if (n)
		qsort(sites, n, sizeof(*sites), by_growth);
	*ret_n = n;
	return sites;
}

static void add_rows(struct report *r, struct report_table *t, struct heapfigures *f,
		     const struct slices *s, size_t nr_judged, size_t nr_rows)
{
	struct heap_sum other = {0};
	struct heap_group g;
	size_t n;
	const struct site *sites = judge_sites(f, s, nr_judged, &n);
	size_t nr_growing = 0;
	while (nr_growing < n && sites[nr_growing].grows)
		nr_growing++;
	if (nr_growing)
		note_leak(r, f, sites, nr_growing);
	for (size_t i = 0; i < MIN(n, nr_rows); i++)
		add_site(r, t, f, &sites[i]);
	for (size_t i = nr_rows; i < n; i++)
		heap_sum_add(&other, &sites[i].group.f.leaked);
	for (size_t i = nr_judged; i < f->sites.rows.n; i++)
		if (unknown_part(&g, &f->sites.rows.p[i]))
			heap_sum_add(&other, &g.f.leaked);
	add_sum_row(r, t, &other, "<other>");
	add_sum_row(r, t, &f->total.suppressed, "<suppressed>");
}

int leaktable_add(struct report *r, struct heapfigures *f, const struct select_spec *spec,
		  const struct view_limits *limits, struct err *err)
{
	struct slices s = {0};
	size_t nr_sites = 0;
	heap_groups_sort(&f->sites, leaked_of, false);
	while (nr_sites < f->sites.rows.n && !heap_sum_is_none(&f->sites.rows.p[nr_sites].f.leaked))
		nr_sites++;
	struct report_table *t =
		report_add_table(r, "leaks", title_of(f), columns, ARRAY_LEN(columns));
	t->spare = spare;
	size_t nr_rows = limits->max_rows ? MIN(limits->max_rows, nr_sites) : nr_sites;
	size_t nr_judged = MIN(MAX(nr_rows, (size_t)JUDGED_MIN), nr_sites);
	int rc = fill_slices(&s, f, nr_judged, spec, err);
	if (!rc) {
		add_rows(r, t, f, &s, nr_judged, nr_rows);
		t->nr_rows_total = nr_sites;
	}
	map_release(&s.rows);
	return rc;
}
