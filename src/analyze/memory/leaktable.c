/* Leaks by site; see leaktable.h. */
#include "base/base.h"
#include "analyze/memory/leaktable.h"

#include <math.h>
#include <stdlib.h>

#include "analyze/memory/heapweights.h"
#include "analyze/select/window.h"
#include "base/clock.h"
#include "base/text/num.h"
#include "base/stat.h"
#include "model/heap.h"

#define FRAMES_MAX     12
#define SLICES_MAX     100000            /* of a site */
#define CELLS_MAX      ((size_t)1 << 24) /* of all sites */
#define JUDGED_MIN     200u /* sites with a verdict, even if their rows are not shown */
#define REPLACED_SHARE 0.25 /* less of a site's growth than that is no growth of the process */
#define STEADY_SHARE \
	0.2 /* share of the live bytes of a site: less growth in a whole capture is none */

/* Fits a line to the second half by least squares: whether it falls, and its value at the end. */
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
	size_t half = (n + 1) / 2; /* the slice in the middle is not of the second half */
	for (size_t i = half; i < n; i++)
		stat_add(&run, net_bytes[i]);
	double error = stat_t95((size_t)run.n - 1) * stat_stddev(&run) / sqrt((double)run.n);
	return (struct leak_growth){.is_known = true,
				    .per_min = 60 * run.mean,
				    .per_min_error = 60 * error,
				    .is_slowing = run.n > 2 && is_slowing(&net_bytes[half],
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
	{"leaked", "leaked", CELL_BYTES_ESTIMATE, "bytes not freed and old enough"},
	{"blocks", "blocks", CELL_COUNT_ESTIMATE, NULL},
	{"oldest_ns", "oldest", CELL_NS, "age of the oldest block at the end, at most"},
	{"growth_per_min", "growth/min", CELL_BYTES_CHANGE,
	 "allocated - freed in the second half of the capture"},
	{"verdict", "verdict", CELL_TEXT,
	 "grows, slows down, steady, shrinks, unclear, too short to tell, too few samples; not "
	 "freed: the program has ended"},
	{"function", "allocated by", CELL_TEXT, "innermost function outside allocators"},
	{"stack", "called from", CELL_TEXT, "callers of the function, innermost first",
	 .is_list = true},
};

static const char *const hide_first[] = {"oldest_ns", "blocks", "stack", NULL};

/* Net bytes per slice of time, of the sites that get a verdict. */
struct slices {
	struct map rows; /* by site */
	double *net;     /* nr_rows x n */
	size_t n;
	uint64_t start_ns;
	uint64_t step_ns; /* length of a slice; more for long captures */
	int64_t rss_rise; /* how much RSS rose in the second half, of one process; < 0: not known */
};

static int add_net(struct slices *s, struct heapfigures *f, enum table_id table, double sign,
		   const struct select_spec *spec, struct err *err)
{
	struct heaprows rows;
	struct heaprow row;
	TRY(heaprows_open(&rows, f->arena, f->p, table, spec, err));
	while (heaprows_next(&rows, &row)) {
		const uint32_t *at = map_get(&s->rows, heapframes_of(f->frames, row.stack)->site);
		uint64_t k =
			row.time_ns >= s->start_ns ? (row.time_ns - s->start_ns) / s->step_ns : 0;
		if (at && k < s->n)
			s->net[*at * s->n + k] += sign * (double)row.bytes;
	}
	return 0;
}

static int64_t rise_of_rss(const struct profile *p)
{
	const struct table *t = tables_find_rows(p, TABLE_MEMORY);
	struct window w = window_of_profile(p);
	uint64_t middle_ns = w.from_ns + (w.to_ns - w.from_ns) / 2;
	int64_t first = -1;
	int64_t most = 0;
	for (size_t i = 0; t && i < t->n; i++) {
		int64_t rss = t->values[i * t->nr_columns + HEAP_MEMORY_RSS];
		if (p->tasks.p[t->task[i]].pid != p->tasks.p[t->task[0]].pid)
			return -1;
		if (t->time_ns[i] < middle_ns)
			continue;
		first = first < 0 ? rss : first;
		most = MAX(most, rss);
	}
	return first > 0 ? most - first : -1;
}

/* The last slice is rarely complete, and is not used. */
static int fill_slices(struct slices *s, struct heapfigures *f, size_t nr_rows,
		       const struct select_spec *spec, struct err *err)
{
	struct window w = window_of_profile(f->p);
	struct select_spec own = *spec;
	own.event = NULL;
	own.time = NULL;
	/* Rows have the start of a slice of half a second or less, or of a second: see heap.h. */
	uint64_t first_ns = heap_slices_of(f->p).first_ns;
	uint64_t shortest_ns = first_ns ? NS_PER_SEC / 2 : NS_PER_SEC;
	s->start_ns = MIN(MAX(w.from_ns, first_ns), w.to_ns);
	uint64_t length_ns = w.to_ns - s->start_ns;
	size_t most = MIN((size_t)SLICES_MAX, CELLS_MAX / MAX(nr_rows, (size_t)1));
	s->step_ns = shortest_ns * (length_ns / shortest_ns / MAX(most, (size_t)1) + 1);
	s->n = length_ns / s->step_ns;
	s->rss_rise = rise_of_rss(f->p);
	if (f->leaks.rule == LEAKS_UNKNOWN || w.to_ns - w.from_ns < LEAK_SLICES_MIN * NS_PER_SEC)
		s->n = 0;
	s->net = arena_calloc(f->arena, nr_rows * s->n + 1, sizeof(*s->net));
	for (size_t i = 0; i < nr_rows; i++)
		*map_put(&s->rows, f->sites.rows.p[i].frame.site, NULL) = (uint32_t)i;
	if (!s->n)
		return 0;
	TRY(add_net(s, f, TABLE_ALLOCATED, 1, &own, err));
	return add_net(s, f, TABLE_FREED, -1, &own, err);
}

static struct leak_growth growth_of(const struct slices *s, size_t row)
{
	struct leak_growth g = leak_growth_of(&s->net[row * s->n], s->n);
	double per_second = (double)NS_PER_SEC / (double)s->step_ns;
	g.per_min *= per_second;
	g.per_min_error *= per_second;
	return g;
}

/*
 * Right after attaching, the blocks of a pool of constant size are older ones, whose frees have no site,
 * and are replaced by blocks of the capture: these increase until all are replaced. True if neither of two
 * exact figures has an increase like that of the site: the blocks of the process (allocations less
 * frees), and its RSS. Memory that the allocator had free hides a leak from RSS, not from the blocks.
 */
static bool is_replacement(const struct profile *p, const struct slices *s,
			   const struct leak_growth *g, const struct heap_sum *leaked)
{
	struct window w = window_of_profile(p);
	double half_minutes = (double)(w.to_ns - w.from_ns) / 2 / 60e9;
	double bytes = (g->per_min - g->per_min_error) * half_minutes;
	uint64_t frees = profile_get_fact_nr(p, FACT_HEAP_FREES);
	if (!frees || s->rss_rise < 0 || leaked->bytes <= 0 || leaked->nr <= 0)
		return false;
	double blocks = bytes * (double)leaked->nr / (double)leaked->bytes;
	double net = (double)profile_get_fact_nr(p, FACT_HEAP_ALLOCATIONS) - (double)frees;
	return net < blocks * REPLACED_SHARE && (double)s->rss_rise < bytes * REPLACED_SHARE;
}

/* A site with its verdict. Growing sites come first, fastest first. */
struct site {
	struct heapframe frame;
	struct heap_sum leaked; /* without known leaks, which have a row of their own */
	uint64_t oldest_ns;
	size_t rank; /* rank by size */
	struct leak_growth growth;
	const char *verdict;
	bool grows;
};

static void judge(struct site *s, const struct heapfigures *f, const struct slices *slices)
{
	struct window w = window_of_profile(f->p);
	double half_s = (double)(slices->n / 2) * (double)slices->step_ns / 1e9;
	double bytes = (double)s->leaked.bytes;
	s->growth = growth_of(slices, s->rank);
	/*
	 * Probability limit for no sample in that many seconds: for a Poisson count of 0 the limit
	 * is 3.
	 */
	if (s->growth.is_known && s->leaked.variance > 0 && !s->growth.per_min &&
	    !s->growth.per_min_error)
		s->growth.per_min_error = 3 * 60 * (double)heap_sampling_bytes(f->p) / half_s;
	s->verdict = leak_verdict(&s->growth, s->leaked.bytes, w.to_ns - w.from_ns);
	s->grows = !strcmp(s->verdict, "grows");
	if (s->grows && is_replacement(f->p, slices, &s->growth, &s->leaked)) {
		s->verdict = "unclear";
		s->grows = false;
	}
	if (stat_estimate_error(bytes, s->leaked.variance) >= bytes && !s->grows)
		s->verdict = "too few samples"; /* up to 3: that none came since is no evidence */
	else if (f->leaks.rule == LEAKS_ALL && !s->grows)
		s->verdict = "not freed"; /* the process has exited */
}

static int by_growth(const void *x, const void *y)
{
	const struct site *a = x;
	const struct site *b = y;
	double x_min = a->grows ? a->growth.per_min : 0;
	double y_min = b->grows ? b->growth.per_min : 0;
	return COMPARE(b->grows, a->grows) ?: COMPARE(y_min, x_min) ?: COMPARE(a->rank, b->rank);
}

static void add_row(struct report *r, struct report_table *t, const struct heap_sum *s,
		    uint64_t age_ns, const struct leak_growth *g, const char *verdict,
		    const char *name, const char *callers)
{
	union cell change = {.estimate = {.change = CELL_NO_CHANGE}};
	if (g->is_known) {
		change.estimate.change = llrint(g->per_min);
		change.estimate.error = (uint64_t)llrint(MIN(g->per_min_error, 9e18));
	}
	union cell cells[] = {
		heap_cell_bytes(s), heap_cell_count(s), {.u = age_ns},     change,
		{.text = verdict},  {.text = name},     {.text = callers},
	};
	report_add_row(r, t, cells);
}

static void add_sum_row(struct report *r, struct report_table *t, const struct heap_sum *s,
			const char *name)
{
	if (!heap_sum_is_none(s))
		add_row(r, t, s, CELL_NS_NONE, &(struct leak_growth){0}, "-", name, "-");
}

static const char *title_of(struct heapfigures *f)
{
	if (f->leaks.rule == LEAKS_ALL)
		return "leaks by site: not freed at program exit";
	return arena_fmt(f->arena, "possible leaks by site: live at the end, older than %s",
			 num_ns(f->leaks.min_age_ns).s);
}

/* Some stacks of a site may be known leaks, which have a row of their own. */
static struct heap_sum unknown_of(const struct heap_group *g)
{
	const struct heap_sum *all = &g->f.of[HEAP_SUM_LEAKED];
	const struct heap_sum *known = &g->f.of[HEAP_SUM_SUPPRESSED];
	return (struct heap_sum){.nr = MAX(all->nr - known->nr, 0),
				 .bytes = MAX(all->bytes - known->bytes, 0),
				 .variance = MAX(all->variance - known->variance, 0),
				 .count_variance =
					 MAX(all->count_variance - known->count_variance, 0)};
}

/* Makes the verdicts of the @nr_judged largest sites; growing sites first. */
static struct site *judge_sites(struct heapfigures *f, const struct slices *slices,
				size_t nr_judged, size_t *ret_n)
{
	struct site *sites = arena_calloc(f->arena, nr_judged + 1, sizeof(*sites));
	size_t n = 0;
	for (size_t i = 0; i < nr_judged; i++) {
		const struct heap_group *g = &f->sites.rows.p[i];
		struct site *s = &sites[n];
		*s = (struct site){.frame = g->frame,
				   .leaked = unknown_of(g),
				   .oldest_ns = g->f.oldest_leak_ns,
				   .rank = i};
		if (heap_sum_is_none(&s->leaked))
			continue;
		judge(s, f, slices);
		n++;
	}
	if (n)
		qsort(sites, n, sizeof(*sites), by_growth);
	*ret_n = n;
	return sites;
}

static void add_rows(struct report *r, struct report_table *t, struct heapfigures *f,
		     const struct slices *slices, size_t nr_judged, size_t nr_rows)
{
	struct heap_sum other = {0};
	size_t n;
	const struct site *sites = judge_sites(f, slices, nr_judged, &n);
	size_t nr_growing = 0;
	while (nr_growing < n && sites[nr_growing].grows)
		nr_growing++;
	if (nr_growing)
		f->growing = (struct heap_growing){heapframe_name(f->p, &sites->frame),
						   sites->growth.per_min,
						   sites->growth.per_min_error, nr_growing - 1};
	for (size_t i = 0; i < n; i++) {
		const struct site *s = &sites[i];
		if (i < nr_rows)
			add_row(r, t, &s->leaked, leaks_age_ns(&f->leaks, s->oldest_ns), &s->growth,
				s->verdict, heapframe_name(f->p, &s->frame),
				heapframe_callers(f->arena, f->p, &s->frame, FRAMES_MAX));
		else
			heap_sum_add(&other, &s->leaked);
	}
	for (size_t i = nr_judged; i < f->sites.rows.n; i++) {
		struct heap_sum unknown = unknown_of(&f->sites.rows.p[i]);
		if (!heap_sum_is_none(&unknown))
			heap_sum_add(&other, &unknown);
	}
	add_sum_row(r, t, &other, "<other>");
	add_sum_row(r, t, &f->total.of[HEAP_SUM_SUPPRESSED], "<suppressed>");
}

int leaktable_add(struct report *r, struct heapfigures *f, const struct select_spec *spec,
		  const struct view_limits *limits, struct err *err)
{
	struct slices s = {0};
	size_t nr_sites = 0;
	heap_groups_sort(&f->sites, HEAP_SUM_LEAKED, false);
	while (nr_sites < f->sites.rows.n &&
	       !heap_sum_is_none(&f->sites.rows.p[nr_sites].f.of[HEAP_SUM_LEAKED]))
		nr_sites++;
	struct report_table *t =
		report_add_table(r, "leaks", title_of(f), columns, ARRAY_LEN(columns));
	t->hide_first = hide_first;
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
