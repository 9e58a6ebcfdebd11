/* Sums of memory; see heapfigures.h. */
#include "base/base.h"
#include "analyze/memory/heapfigures.h"

#include <math.h>
#include <stdlib.h>

#include "analyze/memory/heapweights.h"
#include "analyze/view.h"
#include "base/stat.h"
#include "model/heap.h"
#include "model/heapcalibrate.h"

static int64_t add_i64(int64_t a, int64_t b)
{
	int64_t sum;
	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

void heap_sum_add(struct heap_sum *to, const struct heap_sum *from)
{
	to->nr = add_i64(to->nr, from->nr);
	to->bytes = add_i64(to->bytes, from->bytes);
	to->variance += from->variance;
	to->count_variance += from->count_variance;
}

void heap_figures_add(struct heap_figures *to, const struct heap_figures *from)
{
	for (size_t i = 0; i < HEAP_SUM_NR; i++)
		heap_sum_add(&to->of[i], &from->of[i]);
	if (from->oldest_leak_ns &&
	    (!to->oldest_leak_ns || from->oldest_leak_ns < to->oldest_leak_ns))
		to->oldest_leak_ns = from->oldest_leak_ns;
}

/* ---- what a row counts --------------------------------------------------------------------- */

static struct heap_sum temporary_of(const struct heaprow *r)
{
	double of_bytes = r->bytes > 0 ? (double)r->temporary_bytes / (double)r->bytes : 0;
	double of_nr = r->nr > 0 ? (double)r->nr_temporary / (double)r->nr : 0;
	return (struct heap_sum){r->nr_temporary, r->temporary_bytes, r->variance * of_bytes,
				 r->count_variance * of_nr};
}

static struct heap_figures figures_of(const struct heapfigures *f, const struct heaprow *r,
				      enum heap_sum_id part)
{
	struct heap_figures to = {0};
	struct heap_sum sum = {r->nr, r->bytes, r->variance, r->count_variance};
	to.of[part] = sum;
	if (part == HEAP_SUM_ALLOCATED) {
		to.of[HEAP_SUM_TEMPORARY] = temporary_of(r);
	} else if (part == HEAP_SUM_MAPPED) {
		to.of[HEAP_SUM_MAPPED] = (struct heap_sum){r->bytes ? r->nr : 0, r->bytes};
		to.of[HEAP_SUM_UNMAPPED] =
			(struct heap_sum){r->bytes ? 0 : r->nr, r->unmapped_bytes};
	} else if (part == HEAP_SUM_FREED && heap_is_freed_by_end(f->p, f->freed, r->i)) {
		to.of[HEAP_SUM_FREED] = (struct heap_sum){0};
		to.of[HEAP_SUM_HELD] = sum;
	} else if (part == HEAP_SUM_LIVE && leaks_has(&f->leaks, r->time_ns)) {
		to.of[HEAP_SUM_LEAKED] = sum;
		to.oldest_leak_ns = r->time_ns;
		if (suppress_has(f->suppress, r->stack))
			to.of[HEAP_SUM_SUPPRESSED] = sum;
	}
	return to;
}

/* ---- groups -------------------------------------------------------------------------------- */

static struct heap_group *group_at(struct heap_groups *g, uint64_t key)
{
	bool is_new;
	uint32_t *at = map_put(&g->index, key, &is_new);
	if (!is_new)
		return &g->rows.p[*at];
	*at = (uint32_t)g->rows.n;
	return vec_add(&g->rows);
}

/* Functions of equal name in files of equal name are one function. */
static void add_to_function(struct heapfigures *f, const struct heapframe *frame,
			    const struct heap_figures *fig)
{
	uint64_t key = (uint64_t)frame->function << 32 |
		       (frame->function ? f->p->modules.p[frame->module].path
					: (uint32_t)(frame->node != 0));
	struct heap_group *g = group_at(&f->functions, key + 1);
	g->frame = *frame;
	heap_figures_add(&g->f, fig);
	size_t idx = (size_t)(g - f->functions.rows.p);
	g = group_at(&f->vias, (uint64_t)frame->via << 32 | idx);
	g->frame = *frame;
	g->idx = idx;
	heap_figures_add(&g->f, fig);
}

static unsigned size_log2(uint16_t size_class)
{
	uint64_t min = heap_class_min(size_class);
	if (!size_class)
		return HEAP_SIZE_UNKNOWN;
	unsigned log2 = min ? 63u - (unsigned)__builtin_clzll(min) : 0;
	return log2 < HEAP_SIZE_FIRST ? 0 : log2;
}

static void add_row(struct heapfigures *f, const struct heaprow *r, enum heap_sum_id part)
{
	struct heap_figures fig = figures_of(f, r, part);
	f->is_sampled |= r->variance > 0;
	if (part == HEAP_SUM_ALLOCATED && r->variance > 0)
		f->nr_samples += r->samples;
	heap_figures_add(&f->total, &fig);
	if (part == HEAP_SUM_ALLOCATED && heap_is_not_sampled(f->p, r->stack))
		f->not_sampled_bytes = add_i64(f->not_sampled_bytes, r->bytes);
	if (part == HEAP_SUM_FREED_PREEXISTING)
		return;
	const struct heapframe *frame = heapframes_of(f->frames, r->stack);
	add_to_function(f, frame, &fig);
	struct heap_group *g = group_at(&f->sites, frame->site);
	g->frame = *frame;
	heap_figures_add(&g->f, &fig);
	const struct task *t = &f->p->tasks.p[r->task];
	g = group_at(&f->threads, (uint64_t)(uint32_t)t->pid << 32 | (uint32_t)t->tid);
	g->task = r->task;
	heap_figures_add(&g->f, &fig);
	if (part == HEAP_SUM_MAPPED || part == HEAP_SUM_GROWTH)
		return;
	unsigned log2 = size_log2(r->tag->size_class);
	g = group_at(&f->sizes, log2 + 1);
	g->log2 = log2;
	heap_figures_add(&g->f, &fig);
}

static int64_t bytes_until(const struct table *t, size_t *next, uint64_t time_ns)
{
	int64_t sum = 0;
	for (; t && *next < t->n && t->time_ns[*next] <= time_ns; (*next)++)
		sum = add_i64(sum, MAX(t->values[*next * t->nr_columns + HEAP_BYTES], 0));
	return sum;
}

/* The most bytes live at one time in all processes: at the ends of slices, so possibly more. */
static uint64_t live_together(const struct profile *p)
{
	const struct table *allocated = tables_find_rows(p, TABLE_ALLOCATED);
	const struct table *freed = tables_find_rows(p, TABLE_FREED);
	size_t a = 0;
	size_t f = 0;
	int64_t live = 0;
	int64_t most = 0;
	while (allocated && a < allocated->n) {
		uint64_t now = allocated->time_ns[a];
		live = add_i64(live, bytes_until(allocated, &a, now));
		live = add_i64(live, -bytes_until(freed, &f, now));
		most = MAX(most, live);
	}
	return (uint64_t)most;
}

static int add_table(struct heapfigures *f, enum table_id table, enum heap_sum_id part,
		     const struct select_spec *spec, struct err *err)
{
	struct heaprows rows;
	struct heaprow row;
	struct select_spec own = *spec;
	own.event = NULL;
	TRY(heaprows_open(&rows, f->arena, f->p, table, &own, err));
	CLEANUP(map_release) struct map peaks = {0};
	while (heaprows_next(&rows, &row)) {
		add_row(f, &row, part);
		if (part != HEAP_SUM_PEAK)
			continue;
		f->peak_ns = MAX(f->peak_ns, row.time_ns);
		(void)map_put(&peaks, (uint32_t)f->p->tasks.p[row.task].pid, NULL);
	}
	if (part == HEAP_SUM_PEAK)
		f->nr_peaks = peaks.n;
	if (f->nr_peaks > 1)
		f->together_bytes = live_together(f->p);
	return 0;
}

/* ---- sums scaled to exact counts --------------------------------------------------------------- */

/*
 * Beyond this number of samples a share is taken for as exact as its variance says: Agresti and
 * Coull's two successes and two failures, so that the only sample is not taken for certain.
 */
#define PRIOR_SAMPLES 4

/* The whole table "allocated", without filters. */
static void sum_allocated(const struct profile *p, struct heap_sum *sum, double *ret_samples)
{
	const struct table *t = tables_find_rows(p, TABLE_ALLOCATED);
	struct select_spec none = {0};
	CLEANUP(arena_release) struct arena a = {0};
	struct heaprows rows;
	struct heaprow row;
	*sum = (struct heap_sum){0};
	*ret_samples = 0;
	if (!t || heaprows_open(&rows, &a, p, TABLE_ALLOCATED, &none, NULL))
		return;
	while (heaprows_next(&rows, &row)) {
		struct heap_sum s = {row.nr, row.bytes, row.variance, row.count_variance};
		heap_sum_add(sum, &s);
		*ret_samples += row.variance > 0 ? (double)row.samples : 0;
	}
}

static void shrink(double *variance, double of_all, double certainty)
{
	if (of_all > 0)
		*variance *= 1 - MIN(*variance / of_all, 1) * certainty;
}

/*
 * What is a share of an exact sum has the variance of a share, that is V (1 - V / sum of V), not
 * that of a sum of samples.
 */
static void shrink_sums(struct heap_figures *g, const struct heap_sum *all, double certainty)
{
	for (size_t i = 0; i < HEAP_SUM_MAPPED; i++) {
		g->of[i].most_nr = all->nr;
		g->of[i].most_bytes = all->bytes;
		shrink(&g->of[i].variance, all->variance, certainty);
		shrink(&g->of[i].count_variance, all->count_variance, certainty);
	}
}

static void shrink_groups(struct heap_groups *groups, const struct heap_sum *all, double certainty)
{
	vec_foreach(g, &groups->rows)
		shrink_sums(&g->f, all, certainty);
}

static void set_exact(struct heap_figures *g)
{
	g->of[HEAP_SUM_ALLOCATED].variance = g->of[HEAP_SUM_ALLOCATED].count_variance = 0;
}

static void shrink_all(struct heapfigures *f)
{
	struct heap_sum all;
	double nr_samples;
	if (!heapcalibrate_is_exact(f->p))
		return;
	sum_allocated(f->p, &all, &nr_samples);
	double certainty = nr_samples / (nr_samples + PRIOR_SAMPLES);
	shrink_sums(&f->total, &all, certainty);
	shrink_groups(&f->functions, &all, certainty);
	shrink_groups(&f->sites, &all, certainty);
	shrink_groups(&f->threads, &all, certainty);
	shrink_groups(&f->sizes, &all, certainty);
	const struct heap_sum *shown = &f->total.of[HEAP_SUM_ALLOCATED];
	f->is_exact = shown->nr == all.nr && shown->bytes == all.bytes; /* no filter */
	if (!f->is_exact)
		return;
	set_exact(&f->total);
	vec_foreach(g, &f->sizes.rows)
		set_exact(&g->f);
}

static void groups_release(struct heap_groups *g)
{
	vec_release(&g->rows);
	map_release(&g->index);
}

void heapfigures_release(struct heapfigures *f)
{
	groups_release(&f->functions);
	groups_release(&f->vias);
	groups_release(&f->sites);
	groups_release(&f->threads);
	groups_release(&f->sizes);
}

/* ---- order --------------------------------------------------------------------------------- */

struct order {
	enum heap_sum_id of;
	bool by_number;
};

static int by_sum(const void *x, const void *y, void *ctx)
{
	const struct heap_group *a = x;
	const struct heap_group *b = y;
	const struct order *o = ctx;
	int64_t v = o->by_number ? a->f.of[o->of].nr : a->f.of[o->of].bytes;
	int64_t w = o->by_number ? b->f.of[o->of].nr : b->f.of[o->of].bytes;
	/* Rows of 0 B in this order: by what they allocated. */
	return COMPARE(w, v)
		       ?: COMPARE(b->f.of[HEAP_SUM_ALLOCATED].bytes,
				  a->f.of[HEAP_SUM_ALLOCATED].bytes)
		       ?: COMPARE(a->idx, b->idx);
}

void heap_groups_sort(struct heap_groups *g, enum heap_sum_id of, bool by_number)
{
	size_t n = g->rows.n;
	for (size_t i = 0; i < n; i++)
		g->rows.p[i].idx = i;
	if (n)
		qsort_r(g->rows.p, n, sizeof(*g->rows.p), by_sum, &(struct order){of, by_number});
}

enum heap_sum_id heapfigures_main_sum(const struct heapfigures *f)
{
	enum heap_weight w = heap_weight_default(f->p);
	if (w == HEAP_WEIGHT_PEAK && f->total.of[HEAP_SUM_PEAK].bytes > 0)
		return HEAP_SUM_PEAK;
	if (w == HEAP_WEIGHT_LIVE && f->total.of[HEAP_SUM_LIVE].bytes > 0)
		return HEAP_SUM_LIVE;
	return f->total.of[HEAP_SUM_ALLOCATED].bytes > 0 ? HEAP_SUM_ALLOCATED : HEAP_SUM_LIVE;
}

/* Shares have no intervals of their own. Estimates that are sure for 5 % need no word. */
bool heapfigures_has_shares(const struct heapfigures *f)
{
	const struct heap_sum *main = &f->total.of[heapfigures_main_sum(f)];
	return f->nr_samples <= 0 || f->nr_samples >= VIEW_FEW_SAMPLES ||
	       stat_estimate_error((double)main->bytes, main->variance) * 20 < (double)main->bytes;
}

/* Callees of a function differ: the one of most bytes is shown. */
static void choose_vias(struct heapfigures *f)
{
	const struct order order = {heapfigures_main_sum(f), false};
	const struct heap_group **most =
		arena_calloc(f->arena, f->functions.rows.n + 1, sizeof(const struct heap_group *));
	vec_foreach(v, &f->vias.rows)
		if (!most[v->idx] || by_sum(v, most[v->idx], (void *)&order) < 0)
			most[v->idx] = v;
	for (size_t i = 0; i < f->functions.rows.n; i++)
		f->functions.rows.p[i].frame.via = most[i]->frame.via;
}

/* Whether massif summed up sites, and a function has nothing in a tree that is not empty. */
static bool has_merged(const struct heapfigures *f)
{
	const struct heap_sum *all = f->total.of;
	bool has_below = false;
	bool has_gap = false;
	vec_foreach(g, &f->functions.rows) {
		const struct heap_sum *of = g->f.of;
		has_below |= !strcmp(heapframe_name(f->p, &g->frame), HEAP_BELOW);
		has_gap |= (all[HEAP_SUM_PEAK].bytes && !of[HEAP_SUM_PEAK].bytes) ||
			   (all[HEAP_SUM_LIVE].bytes && !of[HEAP_SUM_LIVE].bytes);
	}
	return has_below && has_gap;
}

/* ---- all ----------------------------------------------------------------------------------- */

int heapfigures_collect(struct heapfigures *f, struct arena *a, const struct profile *p,
			const struct select_spec *spec, struct err *err)
{
	static const struct {
		enum table_id table;
		enum heap_sum_id part;
	} parts[] = {
		{TABLE_ALLOCATED, HEAP_SUM_ALLOCATED},
		{TABLE_FREED, HEAP_SUM_FREED},
		{TABLE_FREED_PREEXISTING, HEAP_SUM_FREED_PREEXISTING},
		{TABLE_LIVE, HEAP_SUM_LIVE},
		{TABLE_PEAK, HEAP_SUM_PEAK},
		{TABLE_MAPPED, HEAP_SUM_MAPPED},
		{TABLE_GROWTH, HEAP_SUM_GROWTH},
	};
	*f = (struct heapfigures){.p = p,
				  .arena = a,
				  .freed = tables_find_rows(p, TABLE_FREED),
				  .frames = heapframes_new(a, p)};
	TRY(leaks_limit(p, spec->heap.older_than, &f->leaks, err));
	TRY(suppress_new(&f->suppress, a, p, spec->heap.suppress, err));
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		TRY(add_table(f, parts[i].table, parts[i].part, spec, err));
	shrink_all(f);
	choose_vias(f);
	f->has_merged = has_merged(f);
	return 0;
}

/* ---- cells --------------------------------------------------------------------------------- */

static union cell cell_of(int64_t value, double variance, int64_t most)
{
	double error = stat_estimate_error((double)value, variance);
	if (most >= value && most > 0)
		error = MIN(error, (double)(most - value));
	union cell c = {.estimate = {.value = (uint64_t)MAX(value, 0)}};
	c.estimate.error =
		error >= (double)(UINT64_MAX / 2) ? UINT64_MAX / 2 : (uint64_t)lrint(error);
	return c;
}

union cell heap_cell_bytes(const struct heap_sum *s)
{
	return cell_of(s->bytes, s->variance, s->most_bytes);
}

bool heap_sum_is_none(const struct heap_sum *s)
{
	return s->nr <= 0 && s->bytes <= 0;
}

union cell heap_cell_count(const struct heap_sum *s)
{
	if (!s->nr && s->bytes > 0) /* a source that knows only bytes */
		return (union cell){.estimate = {.value = CELL_NO_ESTIMATE}};
	return cell_of(s->nr, s->count_variance, s->most_nr);
}
