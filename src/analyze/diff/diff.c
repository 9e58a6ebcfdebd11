/* Comparison of two sides; see diff.h. The tables are in difftable.c. */
#include "base/base.h"
#include "analyze/diff/diff.h"

#include <math.h>
#include <stdlib.h>

#include "analyze/diff/diffblocks.h"
#include "analyze/diff/plainname.h"
#include "analyze/memory/heapweights.h"
#include "analyze/select/weigh.h"
#include "analyze/wait/frames.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/intern.h"
#include "base/mem.h"
#include "base/stat.h"
#include "base/sv.h"
#include "base/vec.h"
#include "model/threadnames.h"

/* ---- how ----------------------------------------------------------------------------------- */

bool diff_is_launched(const struct selection *sel)
{
	const char *attached = profile_get_fact(sel->p, FACT_HEAP_ATTACHED);
	if (heapweights_is_memory(sel))
		return attached && !strncmp(attached, "launch", strlen("launch"));
	return profile_get_fact(sel->p, FACT_COMMAND);
}

enum diff_how diff_how_of(const struct selection *before, const struct selection *after)
{
	uint64_t a_ns = view_duration_ns(before);
	uint64_t b_ns = view_duration_ns(after);
	bool is_memory = heapweights_is_memory(after);
	if (!is_memory && (!view_is_exact(after) || after->id == TABLE_THREAD_TIME))
		return DIFF_SHARES;
	if ((is_memory && !heapweights_is_flow(after)) || !a_ns || !b_ns ||
	    (diff_is_launched(before) && diff_is_launched(after)))
		return DIFF_AMOUNTS;
	double ratio = (double)b_ns / (double)a_ns;
	return ratio > 1.01 || ratio < 0.99 ? DIFF_PER_TIME : DIFF_AMOUNTS;
}

bool diff_is_significant(const struct diff_value *v)
{
	return fabs(v->change) > v->change_error;
}

bool diff_is_of_total(const struct diff *d, const struct diff_item *it)
{
	double change = fabs(it->total.change);
	return !diff_is_significant(&it->self) &&
	       change - fabs(d->marked[it->total.change > 0]) > it->total.change_error;
}

static size_t nr_runs(const struct diff_spec *s)
{
	return s->nr_runs[DIFF_BEFORE] + s->nr_runs[DIFF_AFTER];
}

size_t diff_nr_parts(const struct diff_spec *s)
{
	return nr_runs(s) + s->nr_blocks[DIFF_BEFORE] + s->nr_blocks[DIFF_AFTER];
}

const struct selection *diff_part(const struct diff_spec *s, size_t part)
{
	for (int side = DIFF_BEFORE; side <= DIFF_AFTER; part -= s->nr_runs[side++])
		if (part < s->nr_runs[side])
			return &s->runs[side][part];
	size_t nr_before = s->nr_blocks[DIFF_BEFORE];
	return part < nr_before ? &s->blocks[DIFF_BEFORE][part]
				: &s->blocks[DIFF_AFTER][part - nr_before];
}

static double minutes_between(const struct profile *before, const struct profile *after)
{
	if (!before->wall_start_ns || !after->wall_start_ns)
		return 0;
	double a = (double)before->wall_start_ns + (double)(before->end_ns - before->start_ns);
	double b = (double)after->wall_start_ns + (double)(after->end_ns - after->start_ns);
	return b - a >= NS_PER_SEC ? (b - a) / 60e9 : 0;
}

/* Sets the factors that bring the amounts of all runs to the mean duration of those of after. */
static void set_scales(struct diff *d, struct arena *a)
{
	const struct diff_spec *s = &d->spec;
	double after_ns = 0;
	bool has_times = s->how == DIFF_PER_TIME;
	for (int side = DIFF_BEFORE; side <= DIFF_AFTER; side++) {
		d->scale[side] = arena_calloc(a, s->nr_runs[side], sizeof(*d->scale[side]));
		for (size_t i = 0; i < s->nr_runs[side]; i++) {
			uint64_t ns = view_duration_ns(&s->runs[side][i]);
			has_times &= ns > 0;
			after_ns += side == DIFF_AFTER ? (double)ns : 0;
		}
	}
	after_ns /= (double)s->nr_runs[DIFF_AFTER];
	for (int side = DIFF_BEFORE; side <= DIFF_AFTER; side++)
		for (size_t i = 0; i < s->nr_runs[side]; i++) {
			double ns = (double)view_duration_ns(&s->runs[side][i]);
			d->scale[side][i] = has_times ? after_ns / ns : 1;
		}
}

/* ---- alignment ----------------------------------------------------------------------------- */

/* A row of both sides, with its weights in each part (diff_part). */
struct aligned {
	const char *reason;
	const char *name;
	const char *module;
	bool is_kernel;
	bool is_merged;       /* into another one */
	struct weight *self;  /* by part */
	struct weight *total; /* likewise */
};

struct aligner {
	struct arena *arena;
	const struct diff_spec *spec;
	size_t nr_parts;
	struct intern keys;
	VEC(struct aligned) rows;
	struct buf key;
	struct threadnames threads; /* DIFF_BY_THREAD */
};

static void aligner_release(struct aligner *al)
{
	vec_release(&al->rows);
	intern_release(&al->keys);
	buf_release(&al->key);
	threadnames_release(&al->threads);
}

static struct aligned *row_at(struct aligner *al, const char *reason, const char *name,
			      const char *module)
{
	buf_clear(&al->key);
	buf_addf(&al->key, "%s\x01%s\x01%s", name, module, reason);
	size_t idx = intern_add(&al->keys, al->key.p, al->key.n) - 1u;
	if (idx < al->rows.n)
		return &al->rows.p[idx];
	vec_push(&al->rows,
		 (struct aligned){
			 .reason = arena_strdup(al->arena, reason),
			 .name = arena_strdup(al->arena, name),
			 .module = arena_strdup(al->arena, module),
			 .self = arena_calloc(al->arena, al->nr_parts, sizeof(struct weight)),
			 .total = arena_calloc(al->arena, al->nr_parts, sizeof(struct weight)),
		 });
	return vec_last(&al->rows);
}

static void add_groups(struct aligner *al, size_t part)
{
	CLEANUP(arena_release) struct arena a = {0};
	const struct selection *sel = diff_part(al->spec, part);
	struct groups g = groups_by_plain_name(&a, sel->p, (enum group_by)al->spec->by);
	struct weighed w = weigh(&a, sel);
	const struct group_weight *gw = weigh_groups(&a, &w, &g);
	for (size_t i = 1; i < g.n; i++) {
		if (!gw[i].total.weight && !gw[i].self.weight)
			continue;
		struct aligned *row = row_at(al, "", g.rows[i].name, g.rows[i].module);
		row->is_kernel = g.rows[i].flags & TREE_KERNEL;
		weight_add(&row->self[part], &gw[i].self);
		weight_add(&row->total[part], &gw[i].total);
	}
}

static void add_name_of_stack(struct buf *to, const struct selection *sel,
			      const struct select_row *row)
{
	const char *synth_leaf = select_leaf_name(row->synth_leaf);
	struct frame_ref f;
	buf_add_str(to, synth_leaf ? synth_leaf : "");
	for (struct frame_it it = select_frames(sel, row->stack); frame_next(&it, &f);) {
		buf_add_str(to, to->n ? " < " : "");
		buf_add_sv(to, plainname_of_function(sv_from_str(frame_name(sel->p, &f))));
		buf_add_str(to, frame_mark(sel->p, &f));
	}
	if (!to->n)
		buf_add_str(to, "[no stack]");
}

static void add_stacks(struct aligner *al, size_t part)
{
	CLEANUP(buf_release) struct buf name = {0};
	const struct selection *sel = diff_part(al->spec, part);
	for (size_t i = 0; i < sel->nr_rows; i++) {
		buf_clear(&name);
		add_name_of_stack(&name, sel, &sel->rows[i]);
		struct aligned *row = row_at(al, "", buf_str(&name), "");
		weight_add_row(&row->self[part], sel, i);
		weight_add_row(&row->total[part], sel, i);
	}
}

static void add_row_of(struct aligner *al, size_t part, size_t i, const char *reason,
		       const char *name, const char *module)
{
	struct aligned *row = row_at(al, reason, name, module);
	weight_add_row(&row->self[part], diff_part(al->spec, part), i);
	weight_add_row(&row->total[part], diff_part(al->spec, part), i);
}

/* The key of the breakdown's row that a row of waits or thread time belongs to. */
static const char *reason_of_row(const struct select_row *row)
{
	if (row->synth_leaf == SELECT_LEAF_IDLE)
		return "idle";
	bool is_wait = row->synth_leaf && row->synth_leaf < WAIT_NR;
	return wait_key(is_wait ? (enum wait_reason)row->synth_leaf : WAIT_ON_CPU);
}

static void add_reasons(struct aligner *al, size_t part)
{
	const struct selection *sel = diff_part(al->spec, part);
	for (size_t i = 0; i < sel->nr_rows; i++)
		add_row_of(al, part, i, "", reason_of_row(&sel->rows[i]), "");
}

/* Of all parts together, so that threads of one recording are found in the others. */
static void name_threads(struct aligner *al)
{
	for (size_t part = 0; part < al->nr_parts; part++) {
		const struct selection *sel = diff_part(al->spec, part);
		for (size_t i = 0; i < sel->nr_rows; i++)
			threadnames_add(&al->threads,
					profile_text(sel->p,
						     sel->p->tasks.p[sel->rows[i].task].comm));
	}
}

/* As table "waiting_functions": the run queue is no wait for anything in the program. */
static void add_waits(struct aligner *al, size_t part)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(buf_release) struct buf name = {0};
	const struct selection *sel = diff_part(al->spec, part);
	struct waitframes *frames = waitframes_new(&a, sel->p);
	for (size_t i = 0; i < sel->nr_rows; i++) {
		const struct select_row *row = &sel->rows[i];
		if (!row->synth_leaf || row->synth_leaf == WAIT_RUN_QUEUE)
			continue;
		struct waitframe f = waitframe_of(frames, row->stack);
		const char *module = f.module ? profile_module_name(sel->p, f.module) : "";
		buf_clear(&name);
		f.text = NULL; /* lines differ between versions */
		buf_add_sv(&name, plainname_of_function(sv_from_str(waitframe_name(sel->p, &f))));
		struct sv plain = plainname_of_module(sv_from_str(module));
		add_row_of(al, part, i, reason_of_row(row), buf_str(&name),
			   arena_strndup(&a, plain.p, plain.n));
	}
}

static void add_threads(struct aligner *al, size_t part)
{
	CLEANUP(buf_release) struct buf name = {0};
	const struct selection *sel = diff_part(al->spec, part);
	for (size_t i = 0; i < sel->nr_rows; i++) {
		task_id task = sel->rows[i].task;
		threadnames_get(&al->threads, profile_text(sel->p, sel->p->tasks.p[task].comm),
				&name);
		add_row_of(al, part, i, "", name.n ? buf_str(&name) : "[no name]", "");
	}
}

static void add_phases(struct aligner *al, size_t part)
{
	const struct selection *sel = diff_part(al->spec, part);
	for (size_t i = 0; i < sel->nr_rows; i++) {
		uint32_t phase = sel->rows[i].phase;
		add_row_of(al, part, i, "",
			   phase < sel->nr_rules ? sel->rules[phase].name : "<other>", "");
	}
}

static void add_part(struct aligner *al, size_t part)
{
	switch (al->spec->by) {
	case DIFF_BY_STACK:
		add_stacks(al, part);
		break;
	case DIFF_BY_REASON:
		add_reasons(al, part);
		break;
	case DIFF_BY_WAIT:
		add_waits(al, part);
		break;
	case DIFF_BY_THREAD:
		add_threads(al, part);
		break;
	case DIFF_BY_PHASE:
		add_phases(al, part);
		break;
	default:
		add_groups(al, part);
		break;
	}
}

static bool is_weight(const struct weight *w)
{
	return w->weight || w->nr_samples;
}

static bool is_on(const struct aligned *row, const struct diff_spec *s, int side)
{
	size_t first = side == DIFF_BEFORE ? 0 : s->nr_runs[DIFF_BEFORE];
	for (size_t i = 0; i < s->nr_runs[side]; i++)
		if (is_weight(&row->total[first + i]))
			return true;
	return false;
}

/* Rows of one name that are on one side only: their number and the last one, by side. */
struct leftover {
	size_t nr[2];
	struct aligned *row[2];
};

/* Pairs rows that are on one side only, if their name is unique there: modules are renamed. */
static void pair_leftovers(struct aligner *al)
{
	VEC(struct leftover) left = {0};
	vec_push(&left, (struct leftover){0});
	intern_release(&al->keys);
	al->keys = (struct intern){0};
	vec_foreach(row, &al->rows) {
		bool is_before = is_on(row, al->spec, DIFF_BEFORE);
		if (is_before && is_on(row, al->spec, DIFF_AFTER))
			continue;
		buf_clear(&al->key);
		buf_addf(&al->key, "%d%s\x01%s", row->is_kernel, row->name, row->reason);
		uint32_t id = intern_add(&al->keys, al->key.p, al->key.n);
		while (left.n <= id)
			vec_push(&left, (struct leftover){0});
		int side = is_before ? DIFF_BEFORE : DIFF_AFTER;
		left.p[id].nr[side]++;
		left.p[id].row[side] = row;
	}
	vec_foreach(l, &left) {
		if (l->nr[DIFF_BEFORE] != 1 || l->nr[DIFF_AFTER] != 1)
			continue;
		struct aligned *from = l->row[DIFF_BEFORE];
		struct aligned *to = l->row[DIFF_AFTER];
		for (size_t i = 0; i < al->nr_parts; i++) {
			weight_add(&to->self[i], &from->self[i]);
			weight_add(&to->total[i], &from->total[i]);
		}
		from->is_merged = true;
	}
	vec_release(&left);
}

/* ---- amounts ------------------------------------------------------------------------------- */

/*
 * An amount without samples is not necessarily 0: it is below @z's quantile of the exponential
 * distribution of sampling intervals, three of them for 95 %, the limit of a Poisson count of 0.
 */
static double unseen(const struct selection *sel, double z)
{
	const char *sampling = profile_get_fact(sel->p, FACT_HEAP_SAMPLING);
	uint64_t interval;
	if (!sel->variance || sel->unit != UNIT_BYTES || !sampling ||
	    !sv_to_u64(sv_from_str(sampling), &interval))
		return 0;
	return -log(erfc(z / sqrt(2))) * (double)interval;
}

/* An amount in one run, in the unit of the comparison, and the variance that sampling causes. */
struct estimate {
	double amount;
	double variance;
};

static struct estimate estimate_of(const struct diff *d, int side, size_t run,
				   const struct weight *w)
{
	const struct selection *sel = &d->spec.runs[side][run];
	double scale = d->scale[side][run];
	bool is_exact = view_is_exact(sel);
	if (d->spec.how == DIFF_SHARES && !sel->weight)
		return (struct estimate){0, 0};
	if (d->spec.how == DIFF_SHARES)
		scale = 100 / (double)sel->weight;
	struct estimate e = {(double)w->weight * scale, w->variance * scale * scale};
	if (sel->variance || is_exact || !w->nr_samples)
		return e;
	double p = d->spec.how == DIFF_SHARES ? e.amount / 100 : 0;
	e.variance = e.amount * e.amount * (1 - p) / view_effective(sel, *w);
	return e;
}

/* True if an interval of shares is that of a binomial proportion. */
static bool is_proportion(const struct diff *d, int side)
{
	const struct selection *sel = &d->spec.runs[side][0];
	return d->spec.how == DIFF_SHARES && !sel->variance && !view_is_exact(sel);
}

/*
 * Sets amount, error and range of one side: the mean of its runs. The variance of a mean of
 * proportions is that of one proportion of as many samples as their harmonic mean, times their
 * number.
 */
static void set_side(const struct diff *d, struct diff_value *v, int side, const struct weight *w,
		     double z)
{
	size_t n = d->spec.nr_runs[side];
	struct estimate sum = {0, 0};
	double inverse = 0;
	double most = 0;
	for (size_t i = 0; i < n; i++) {
		const struct selection *sel = &d->spec.runs[side][i];
		struct estimate e = estimate_of(d, side, i, &w[i]);
		double samples = view_effective(sel, view_all(sel));
		sum.amount += e.amount;
		sum.variance += e.variance;
		inverse += samples > 0 ? 1 / samples : 0;
		most += w[i].weight ? 0 : unseen(sel, z) * d->scale[side][i];
	}
	double mean = sum.amount / (double)n;
	double variance = sum.variance / (double)(n * n);
	double nr_samples = inverse > 0 ? (double)(n * n) / inverse : 0;
	v->amount[side] = mean;
	if (is_proportion(d, side) && nr_samples > 0) {
		struct stat_interval i = stat_wilson_at(mean / 100 * nr_samples, nr_samples, z);
		v->range[side] = (struct stat_interval){i.low * 100, i.high * 100};
		v->error[side] = stat_share_pct_error(mean / 100 * nr_samples, nr_samples);
		return;
	}
	v->range[side] = stat_estimate_at(mean, variance, z);
	v->error[side] = stat_estimate_error(mean, variance);
	if (mean == 0 && d->spec.how != DIFF_SHARES)
		v->range[side].high = most / (double)n;
}

static struct spread_row spread_row_of(const struct diff *d, const struct weight *w)
{
	const struct diff_spec *s = &d->spec;
	struct spread_row row = {0};
	double squares = 0;
	for (int side = DIFF_BEFORE; side <= DIFF_AFTER; side++) {
		struct stat_run runs = {0};
		for (size_t i = 0; i < s->nr_runs[side]; i++, w++) {
			struct estimate e = estimate_of(d, side, i, w);
			stat_add(&runs, e.amount);
			row.sampling += e.variance;
			row.nr_samples += (double)w->nr_samples;
		}
		squares += runs.m2;
	}
	row.sampling /= (double)nr_runs(s);
	row.between = squares / (double)(nr_runs(s) - 2);
	return row;
}

struct diff_family diff_family_of(const struct diff *d, size_t nr)
{
	struct diff_family f = {.nr = nr, .z = stat_z_of_family(nr)};
	for (int i = 0; d->has_spread && i < 2; i++)
		f.t[i] = stat_t_of_family(nr, spread_degrees(&d->spread[i]));
	size_t degrees = d->spec.nr_blocks[DIFF_BEFORE] + d->spec.nr_blocks[DIFF_AFTER];
	for (size_t i = 1; d->has_blocks && i <= MIN(degrees, (size_t)DIFF_DEGREES_MAX); i++)
		f.t_of_degrees[i] = stat_t_of_family(nr, (double)i);
	return f;
}

/*
 * Intervals from the blocks. The variances of the sides may differ, so the degrees of freedom are
 * those of Welch's test.
 */
static void set_errors_of_blocks(const struct diff *d, struct diff_value *v, const struct weight *w,
				 const struct diff_family *family)
{
	const struct diff_spec *s = &d->spec;
	double sum = 0;
	double degrees = 0;
	for (int side = DIFF_BEFORE; side <= DIFF_AFTER; w += s->nr_blocks[side++]) {
		struct block_sum b = {s->runs[side], s->blocks[side], s->nr_blocks[side],
				      d->scale[side][0], s->how == DIFF_SHARES};
		double variance = blocks_variance(&b, w);
		double rest = (double)b.nr_blocks - 1;
		double half = family->t_of_degrees[b.nr_blocks - 1] * sqrt(variance);
		double amount = v->amount[side];
		v->range[side] = (struct stat_interval){MAX(amount - half, 0.0), amount + half};
		v->error[side] = stat_t95(b.nr_blocks - 1) * sqrt(variance);
		sum += variance;
		degrees += variance * variance / rest;
	}
	degrees = sum > 0 ? sum * sum / degrees : 1;
	size_t whole = MIN((size_t)(degrees + 1e-9), (size_t)DIFF_DEGREES_MAX);
	v->change_error = family->t_of_degrees[MAX(whole, (size_t)1)] * sqrt(sum);
}

/*
 * Interval of the difference of two independent amounts from the intervals of both (R. G. Newcombe,
 * Statistics in Medicine 17, 1998, method 10). It is skewed; the wider half is the error, or the
 * spread between runs, if that is wider.
 */
struct diff_value diff_value_of(const struct diff *d, const struct weight *weights, bool is_total,
				const struct diff_family *family)
{
	const struct diff_spec *s = &d->spec;
	struct diff_value v = {0};
	bool is_any = false;
	for (size_t i = 0; i < nr_runs(s); i++)
		is_any |= is_weight(&weights[i]);
	if (!is_any)
		return v;
	set_side(d, &v, DIFF_BEFORE, weights, family->z);
	set_side(d, &v, DIFF_AFTER, weights + s->nr_runs[DIFF_BEFORE], family->z);
	if (d->has_spread) {
		struct spread_row row = spread_row_of(d, weights);
		double parts =
			1 / (double)s->nr_runs[DIFF_BEFORE] + 1 / (double)s->nr_runs[DIFF_AFTER];
		v.spread = family->t[is_total] *
			   sqrt(spread_variance(&d->spread[is_total], &row) * parts);
	}
	double a = v.amount[DIFF_BEFORE];
	double b = v.amount[DIFF_AFTER];
	const struct stat_interval *ia = &v.range[DIFF_BEFORE];
	const struct stat_interval *ib = &v.range[DIFF_AFTER];
	v.change = b - a;
	if (d->is_unknown) {
		v.range[0] = v.range[1] = (struct stat_interval){0, (double)INFINITY};
		v.change_error = (double)INFINITY;
		return v;
	}
	if (d->has_blocks) {
		set_errors_of_blocks(d, &v, weights + nr_runs(s), family);
		return v;
	}
	v.change_error = MAX(hypot(b - ib->low, ia->high - a), hypot(ib->high - b, a - ia->low));
	v.change_error = MAX(v.change_error, v.spread);
	return v;
}

/* ---- the comparison ------------------------------------------------------------------------ */

static int rank_of(const struct diff_item *it)
{
	return diff_is_significant(&it->self) ? 0 : diff_is_significant(&it->total) ? 1 : 2;
}

static int by_self(const void *x, const void *y)
{
	const struct diff_item *a = x;
	const struct diff_item *b = y;
	return COMPARE(rank_of(a), rank_of(b))
		       ?: COMPARE(fabs(b->self.change), fabs(a->self.change))
		       ?: COMPARE(fabs(b->total.change), fabs(a->total.change))
		       ?: strcmp(a->name, b->name)
		       ?: strcmp(a->module, b->module)
		       ?: strcmp(a->reason, b->reason);
}

static int by_total(const void *x, const void *y)
{
	const struct diff_item *a = x;
	const struct diff_item *b = y;
	return COMPARE(!diff_is_significant(&a->total), !diff_is_significant(&b->total))
		       ?: COMPARE(fabs(b->total.change), fabs(a->total.change))
		       ?: by_self(x, y);
}

static struct weight all_of(const struct selection *sel)
{
	struct weight w = view_all(sel);
	for (size_t i = 0; sel->variance && i < sel->nr_rows; i++)
		w.variance += sel->variance[i];
	return w;
}

static void fit_spread(struct diff *d, const struct aligned *rows, size_t n)
{
	size_t degrees = nr_runs(&d->spec) - 2;
	struct spread_row *to = xcalloc(n + 1, sizeof(*to));
	d->has_spread = degrees > 0;
	for (int is_total = 0; d->has_spread && is_total <= 1; is_total++) {
		for (size_t i = 0; i < n; i++)
			to[i] = spread_row_of(d, is_total ? rows[i].total : rows[i].self);
		spread_fit(&d->spread[is_total], to, n, degrees);
	}
	free(to);
}

static void add_items(struct diff *d, struct arena *a, struct aligner *al)
{
	struct diff_item *items = arena_calloc(a, al->rows.n + 1, sizeof(*items));
	size_t nr = 0;
	vec_foreach(row, &al->rows)
		nr += !row->is_merged;
	struct diff_family family = diff_family_of(d, nr);
	vec_foreach(row, &al->rows) {
		if (row->is_merged)
			continue;
		items[d->n++] = (struct diff_item){
			.reason = row->reason,
			.name = row->name,
			.module = row->module,
			.is_in = {is_on(row, al->spec, DIFF_BEFORE),
				  is_on(row, al->spec, DIFF_AFTER)},
			.self = diff_value_of(d, row->self, false, &family),
			.total = diff_value_of(d, row->total, true, &family),
		};
	}
	if (d->n)
		qsort(items, d->n, sizeof(*items),
		      d->spec.sort == DIFF_SORT_TOTAL ? by_total : by_self);
	d->items = items;
	for (size_t i = 0; i < d->n; i++)
		if (diff_is_significant(&items[i].self))
			d->marked[items[i].self.change > 0] += items[i].self.change;
}

static void add_all(struct diff *d, struct arena *a)
{
	size_t n = diff_nr_parts(&d->spec);
	struct weight *w = arena_calloc(a, n, sizeof(*w));
	for (size_t i = 0; i < n; i++)
		w[i] = all_of(diff_part(&d->spec, i));
	d->all = (struct diff_item){
		.reason = "", .name = "<total>", .module = "", .is_in = {true, true}};
	struct diff_family one = diff_family_of(d, 1);
	d->all.self = d->all.total = diff_value_of(d, w, true, &one);
}

void diff_make(struct diff *ret_d, struct arena *a, const struct diff_spec *spec)
{
	CLEANUP(aligner_release)
	struct aligner al = {.arena = a, .spec = spec, .nr_parts = diff_nr_parts(spec)};
	struct diff d = {.spec = *spec};
	d.has_blocks = spec->nr_blocks[DIFF_BEFORE] >= BLOCKS_MIN &&
		       spec->nr_blocks[DIFF_AFTER] >= BLOCKS_MIN;
	d.is_unknown = !d.has_blocks && blocks_are_needed(spec);
	set_scales(&d, a);
	d.minutes = minutes_between(spec->runs[DIFF_BEFORE]->p, spec->runs[DIFF_AFTER]->p);
	if (spec->by == DIFF_BY_THREAD)
		name_threads(&al);
	for (size_t part = 0; part < al.nr_parts; part++)
		add_part(&al, part);
	if (spec->by == BY_FUNCTION || spec->by == DIFF_BY_WAIT)
		pair_leftovers(&al);
	fit_spread(&d, al.rows.p, al.rows.n);
	add_items(&d, a, &al);
	add_all(&d, a);
	*ret_d = d;
}
