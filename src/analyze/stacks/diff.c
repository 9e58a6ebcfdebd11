/* Comparison of two selections; see diff.h. */
#include "base/base.h"
#include "analyze/stacks/diff.h"

#include <math.h>
#include <stdlib.h>

#include "analyze/memory/heapweights.h"
#include "analyze/select/weigh.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/intern.h"
#include "base/text/num.h"
#include "base/stat.h"
#include "base/sv.h"
#include "base/vec.h"

enum { BEFORE = 0, AFTER = 1 };

/* ---- how ----------------------------------------------------------------------------------- */

static bool is_launched(const struct profile *p)
{
	const char *attached = profile_get_fact(p, FACT_HEAP_ATTACHED);
	return attached && !strncmp(attached, "launch", strlen("launch"));
}

/* True for amounts that grow with the duration of the capture. */
static bool is_flow(const struct selection *sel)
{
	static const enum heap_weight flows[] = {HEAP_WEIGHT_ALLOCATED, HEAP_WEIGHT_CALLS,
						 HEAP_WEIGHT_TEMPORARY, HEAP_WEIGHT_TEMPORARY_BYTES,
						 HEAP_WEIGHT_FREED};
	enum heap_weight w;
	if (!heap_weight_from_key(sel->event, &w))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(flows); i++)
		if (flows[i] == w)
			return true;
	return false;
}

enum diff_how diff_how_of(const struct selection *before, const struct selection *after)
{
	uint64_t a_ns = view_duration_ns(before);
	uint64_t b_ns = view_duration_ns(after);
	if (!heapweights_is_memory(after))
		return DIFF_SHARES;
	/* True for two launched commands: they did the same work, whatever their duration. */
	if (!is_flow(after) || !a_ns || !b_ns || (is_launched(before->p) && is_launched(after->p)))
		return DIFF_AMOUNTS;
	double ratio = (double)b_ns / (double)a_ns;
	return ratio > 1.01 || ratio < 0.99 ? DIFF_PER_TIME : DIFF_AMOUNTS;
}

bool diff_is_significant(double change, double error)
{
	return fabs(change) > error;
}

static double minutes_between(const struct profile *before, const struct profile *after)
{
	if (!before->wall_start_ns || !after->wall_start_ns)
		return 0;
	double a = (double)before->wall_start_ns + (double)(before->end_ns - before->start_ns);
	double b = (double)after->wall_start_ns + (double)(after->end_ns - after->start_ns);
	return b - a >= NS_PER_SEC ? (b - a) / 60e9 : 0;
}

/* ---- alignment ----------------------------------------------------------------------------- */

struct aligner {
	struct arena *arena;
	struct intern keys;
	VEC(struct diff_item) items;
	struct buf key;
};

static struct diff_item *item_at(struct aligner *al, const char *name, const char *module)
{
	buf_clear(&al->key);
	buf_add_str(&al->key, name);
	buf_add_ch(&al->key, '\x01');
	buf_add_str(&al->key, module);
	size_t idx = intern_add(&al->keys, al->key.p, al->key.n) - 1u;
	if (idx < al->items.n)
		return &al->items.p[idx];
	vec_push(&al->items, (struct diff_item){.name = arena_strdup(al->arena, name),
						.module = arena_strdup(al->arena, module)});
	return vec_last(&al->items);
}

static void add_groups(struct aligner *al, const struct selection *sel, unsigned by, int side)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct groups g = groups_by(&a, sel->p, (enum group_by)by);
	struct weighed w = weigh(&a, sel, WEIGH_ALL_PHASES);
	const struct group_weight *gw = weigh_groups(&a, &w, &g);
	for (size_t i = 1; i < g.n; i++) {
		if (!gw[i].total.weight && !gw[i].self.weight)
			continue;
		struct diff_item *it = item_at(al, g.rows[i].name, g.rows[i].module);
		weight_add(&it->self[side], &gw[i].self);
		weight_add(&it->total[side], &gw[i].total);
	}
}

static void add_name_of_stack(struct buf *to, const struct selection *sel,
			      const struct select_row *row)
{
	const char *synth_leaf = select_leaf_name(row->synth_leaf);
	buf_add_str(to, synth_leaf ? synth_leaf : "");
	frames_add(to, select_frames(sel, row->stack), synth_leaf ? " < " : "");
	if (!to->n)
		buf_add_str(to, "[no stack]");
}

static void add_stacks(struct aligner *al, const struct selection *sel, int side)
{
	CLEANUP(buf_release) struct buf name = {0};
	for (size_t i = 0; i < sel->nr_rows; i++) {
		buf_clear(&name);
		add_name_of_stack(&name, sel, &sel->rows[i]);
		struct diff_item *it = item_at(al, buf_str(&name), "");
		weight_add_row(&it->self[side], sel, i);
		weight_add_row(&it->total[side], sel, i);
	}
}

/* ---- differences --------------------------------------------------------------------------- */

static void scale(struct weight *w, double by)
{
	w->weight = (uint64_t)llrint((double)w->weight * by);
	w->nr_samples = (uint64_t)llrint((double)w->nr_samples * by);
	w->variance *= by * by;
}

/*
 * An amount without samples is not necessarily 0: it is below @z's quantile of the exponential
 * distribution of sampling intervals, three of them for 95 %, the limit of a Poisson count of 0.
 */
static double unseen(const struct selection *sel, double scaled_by, double z)
{
	const char *sampling = profile_get_fact(sel->p, FACT_HEAP_SAMPLING);
	uint64_t interval;
	if (!sel->variance || sel->unit != UNIT_BYTES || !sampling ||
	    !sv_to_u64(sv_from_str(sampling), &interval))
		return 0;
	return -log(erfc(z / sqrt(2))) * (double)interval * scaled_by;
}

static double amount_of(const struct diff_spec *s, const struct selection *sel,
			const struct weight *w)
{
	return s->how == DIFF_SHARES ? view_pct(w->weight, sel->weight) : (double)w->weight;
}

/* The interval of one side, in the unit of the comparison. */
static struct stat_interval interval_of(const struct diff_spec *s, const struct selection *sel,
					const struct weight *w, double scaled_by, double z)
{
	bool is_exact = view_is_exact(sel);
	double amount = (double)w->weight;
	struct stat_interval i = {amount, amount};
	if (sel->variance && s->how != DIFF_SHARES && !w->weight)
		i.high = unseen(sel, scaled_by, z);
	else if (sel->variance)
		i = stat_estimate_at(amount, w->variance, z);
	else if (!is_exact && s->how != DIFF_SHARES && w->nr_samples)
		i = stat_estimate_at(amount, amount * amount / view_effective(sel, *w), z);
	if (s->how != DIFF_SHARES)
		return i;
	if (!sel->weight)
		return (struct stat_interval){0, 0};
	double n = view_effective(sel, view_all(sel));
	if (!sel->variance && !is_exact)
		i = stat_wilson_at(amount / (double)sel->weight * n, n, z);
	double to_pct = sel->variance || is_exact ? 100 / (double)sel->weight : 100;
	return (struct stat_interval){i.low * to_pct, i.high * to_pct};
}

/*
 * Interval of the difference of two independent amounts from the intervals of both (R. G. Newcombe,
 * Statistics in Medicine 17, 1998, method 10). It is skewed; the wider half is the error.
 */
static void compare(const struct diff *d, const struct weight pair[2], double z, double *ret_change,
		    double *ret_error)
{
	const struct diff_spec *s = &d->spec;
	double a = amount_of(s, s->before, &pair[BEFORE]);
	double b = amount_of(s, s->after, &pair[AFTER]);
	struct stat_interval ia = {a, a};
	struct stat_interval ib = {b, b};
	if (pair[BEFORE].weight || pair[AFTER].weight) {
		ia = interval_of(s, s->before, &pair[BEFORE], d->scale, z);
		ib = interval_of(s, s->after, &pair[AFTER], 1, z);
	}
	*ret_change = b - a;
	*ret_error = MAX(hypot(b - ib.low, ia.high - a), hypot(ib.high - b, a - ia.low));
}

static int by_change(const void *x, const void *y)
{
	const struct diff_item *a = x;
	const struct diff_item *b = y;
	return COMPARE(fabs(b->change), fabs(a->change))
		       ?: COMPARE(fabs(b->total_change), fabs(a->total_change))
		       ?: strcmp(a->name, b->name)
		       ?: strcmp(a->module, b->module);
}

static void finish_item(const struct diff *d, struct diff_item *it, size_t nr_compared)
{
	double z = stat_z_of_family(nr_compared);
	if (d->scale != 1) {
		scale(&it->self[BEFORE], d->scale);
		scale(&it->total[BEFORE], d->scale);
	}
	compare(d, it->self, z, &it->change, &it->error);
	compare(d, it->total, z, &it->total_change, &it->total_error);
}

static struct weight all_of(const struct selection *sel)
{
	struct weight w = view_all(sel);
	for (size_t i = 0; sel->variance && i < sel->nr_rows; i++)
		w.variance += sel->variance[i];
	return w;
}

void diff_make(struct diff *ret_d, struct arena *a, const struct diff_spec *spec)
{
	struct aligner al = {.arena = a};
	struct diff d = {.spec = *spec, .scale = 1};
	const struct selection *sides[] = {spec->before, spec->after};
	uint64_t before_ns = view_duration_ns(spec->before);
	if (spec->how == DIFF_PER_TIME && before_ns)
		d.scale = (double)view_duration_ns(spec->after) / (double)before_ns;
	d.minutes = minutes_between(spec->before->p, spec->after->p);
	for (int side = BEFORE; side <= AFTER; side++) {
		if (spec->by == DIFF_BY_STACK)
			add_stacks(&al, sides[side], side);
		else
			add_groups(&al, sides[side], spec->by, side);
		d.all.self[side] = d.all.total[side] = all_of(sides[side]);
	}
	vec_foreach(it, &al.items)
		finish_item(&d, it, al.items.n);
	d.all.name = "<total>";
	d.all.module = "";
	finish_item(&d, &d.all, 1);
	if (al.items.n)
		qsort(al.items.p, al.items.n, sizeof(*al.items.p), by_change);
	d.n = al.items.n;
	d.items = arena_dup(a, al.items.p, al.items.n * sizeof(*al.items.p));
	vec_release(&al.items);
	intern_release(&al.keys);
	buf_release(&al.key);
	*ret_d = d;
}

/* ---- the report ---------------------------------------------------------------------------- */

/* Bits of columns. */
enum {
	OF_SHARES = 1 << 0,
	OF_AMOUNTS = 1 << 1,
	HAS_RATE = 1 << 2,        /* per minute */
	HAS_SHARE_TOTAL = 1 << 3, /* callees included */
	HAS_AMOUNT_TOTAL = 1 << 4,
	HAS_MODULE = 1 << 5,
};

/* For live memory of a running program, the difference per minute is its growth rate. */
static bool has_rate(const struct diff *d)
{
	const struct selection *after = d->spec.after;
	return d->spec.how == DIFF_AMOUNTS && d->minutes > 0 && heapweights_is_memory(after) &&
	       !is_flow(after) && after->id != TABLE_PEAK &&
	       !(is_launched(after->p) && is_launched(d->spec.before->p));
}

static union cell estimate(const struct weight *w)
{
	return (union cell){
		.estimate = {.value = w->weight,
			     .error = (uint64_t)llrint(MIN(
				     stat_estimate_error((double)w->weight, w->variance), 9e18))}};
}

static union cell change_cell(double change, double error)
{
	union cell c = {.estimate = {.change = llrint(MAX(MIN(change, 9e18), -9e18))}};
	c.estimate.error = (uint64_t)llrint(MIN(error, 9e18));
	return c;
}

static bool is_none(const struct weight *w)
{
	return !w->weight && !w->nr_samples;
}

/* Of the row's own change; "total only": its own may be random, that with callees is not. */
static const char *note_of(const struct diff_item *it)
{
	if (it->change == 0 && it->total_change == 0)
		return "same";
	if (!diff_is_significant(it->change, it->error))
		return diff_is_significant(it->total_change, it->total_error) ? "total only"
									      : "within noise";
	if (is_none(&it->total[BEFORE]))
		return "new";
	return is_none(&it->total[AFTER]) ? "gone" : "";
}

static void add_item(struct report *r, struct report_table *t, const struct diff *d,
		     const struct diff_item *it, const char *name)
{
	const struct diff_spec *s = &d->spec;
	double before = (double)it->self[BEFORE].weight;
	const union cell cells[] = {
		{.d = view_pct(it->self[BEFORE].weight, s->before->weight)},
		{.d = view_pct(it->self[AFTER].weight, s->after->weight)},
		{.d = it->change},
		{.d = it->error},
		{.d = it->total_change},
		change_cell(it->change, it->error),
		{.d = before > 0 ? 100 * it->change / before : (double)NAN},
		change_cell(it->change / d->minutes, it->error / d->minutes),
		estimate(&it->self[BEFORE]),
		estimate(&it->self[AFTER]),
		change_cell(it->total_change, it->total_error),
		{.text = note_of(it)},
		{.text = name},
		{.text = it->module},
	};
	report_add_row(r, t, cells);
}

static const struct {
	const char *key;
	const char *title;
	const char *name;
	bool has_module;
} kinds[] = {
	[BY_FUNCTION] = {"functions", "functions by change (self)", "function", true},
	[BY_MODULE] = {"modules", "modules by change (self)", "module", false},
	[BY_CRATE] = {"crates", "crates, namespaces and modules by change (self)", "crate", false},
	[BY_FILE] = {"files", "source files by change (self)", "file", false},
	[BY_LINE] = {"lines", "source lines by change (self)", "line", false},
	[DIFF_BY_STACK] = {"stacks", "stacks by change", "stack", false},
};

static void add_into(struct diff_item *to, const struct diff_item *it)
{
	for (int side = BEFORE; side <= AFTER; side++)
		weight_add(&to->self[side], &it->self[side]);
	to->change += it->change;
	to->error = sqrt(to->error * to->error + it->error * it->error);
}

static struct report_table *add_table(struct report *r, const struct diff *d, unsigned flags,
				      const char *key, const char *title, const char *name)
{
	static const enum cell_kind changes[] = {[UNIT_COUNT] = CELL_COUNT_CHANGE,
						 [UNIT_NS] = CELL_NS_CHANGE,
						 [UNIT_BYTES] = CELL_BYTES_CHANGE};
	static const enum cell_kind amounts[] = {[UNIT_COUNT] = CELL_COUNT_ESTIMATE,
						 [UNIT_NS] = CELL_NS_ESTIMATE,
						 [UNIT_BYTES] = CELL_BYTES_ESTIMATE};
	enum cell_kind change = changes[d->spec.after->unit];
	enum cell_kind amount = amounts[d->spec.after->unit];
	const struct report_column columns[] = {
		{"before_pct", "before %", CELL_PERCENT, "share of all before", OF_SHARES},
		{"after_pct", "after %", CELL_PERCENT, "share of all after", OF_SHARES},
		{"change_points", "change", CELL_FLOAT, "percentage points", OF_SHARES},
		{"change_error_points", "+-", CELL_FLOAT,
		 "half width of its confidence interval; those of all rows hold together with 95 %",
		 OF_SHARES},
		{"total_change_points", "total change", CELL_FLOAT, "change with callees included",
		 HAS_SHARE_TOTAL},
		{"change", "change", change, "after - before", OF_AMOUNTS},
		{"change_pct", "%", CELL_PERCENT, "of before", OF_AMOUNTS},
		{"per_min", "per minute", change, "over the time between the two", HAS_RATE},
		{"before", "before", amount, NULL, OF_AMOUNTS},
		{"after", "after", amount, NULL, OF_AMOUNTS},
		{"total_change", "total change", change, "change with callees included",
		 HAS_AMOUNT_TOTAL},
		{"note", "note", CELL_TEXT, "new, gone, same, total only, within noise"},
		{name, strcmp(name, "crate") ? name : "module or crate", CELL_TEXT},
		{"module", "module", CELL_TEXT, NULL, HAS_MODULE},
	};
	return report_add_table_of(r, key, title, columns, ARRAY_LEN(columns), flags);
}

static const char *same_text(struct report *r, size_t nr, size_t nr_callers)
{
	const char *callers =
		nr_callers ? arena_fmt(&r->arena, ", %s of them with a change in callees",
				       num_count(nr_callers).s)
			   : "";
	return arena_fmt(&r->arena, "left out: %s row%s without a change of self%s",
			 num_count(nr).s, nr == 1 ? "" : "s", callers);
}

static void add_items(struct report *r, const struct diff *d, unsigned flags,
		      const struct view_limits *limits)
{
	unsigned by = d->spec.by;
	struct diff_item other = {.module = ""};
	struct report_table *t =
		add_table(r, d, flags, kinds[by].key, kinds[by].title, kinds[by].name);
	size_t nr_left = 0;
	size_t nr_callers = 0;
	for (size_t i = 0; i < d->n; i++) {
		const struct diff_item *it = &d->items[i];
		if (it->change == 0) {
			nr_callers += it->total_change != 0;
			continue;
		}
		t->nr_rows_total++;
		if (!limits->max_rows || t->nr_rows < limits->max_rows) {
			add_item(r, t, d, it, it->name);
			continue;
		}
		add_into(&other, it);
		nr_left++;
	}
	if (t->nr_rows_total < d->n)
		t->note = same_text(r, d->n - t->nr_rows_total, nr_callers);
	if (!nr_left)
		return;
	for (int side = BEFORE; side <= AFTER; side++)
		other.total[side] = other.self[side];
	other.total_change = other.change; /* total amounts of several rows overlap */
	other.total_error = other.error;
	add_item(r, t, d, &other, "<other>");
}

static void add_notes(struct report *r, const struct diff *d)
{
	switch (d->spec.how) {
	case DIFF_AMOUNTS:
		break;
	case DIFF_SHARES:
		report_note(
			r,
			"compared by share of the totals: change and +- are in percentage points; "
			"--absolute compares amounts");
		break;
	case DIFF_PER_TIME:
		report_note(
			r,
			"amounts of BEFORE are scaled by %s to the duration of AFTER; --absolute "
			"compares unscaled amounts",
			num_double(d->scale, 3).s);
		break;
	}
	if (d->spec.before->variance || d->spec.after->variance || d->spec.how == DIFF_SHARES)
		report_note(r,
			    "+-: half width of the confidence interval of the change, so wide that "
			    "all %s rows together hold with 95 %%; a smaller change is marked "
			    "'within noise': it may be random",
			    num_count(d->n).s);
}

void diff_report(struct report *r, const struct diff *d, const struct view_limits *limits)
{
	bool is_shares = d->spec.how == DIFF_SHARES;
	unsigned flags = (is_shares ? OF_SHARES : OF_AMOUNTS) | (has_rate(d) ? HAS_RATE : 0);
	add_notes(r, d);
	if (!is_shares) {
		struct report_table *t = add_table(r, d, flags, "total", "total", "what");
		add_item(r, t, d, &d->all, d->spec.after->event);
	}
	if (d->spec.by != DIFF_BY_STACK)
		flags |= is_shares ? HAS_SHARE_TOTAL : HAS_AMOUNT_TOTAL;
	if (kinds[d->spec.by].has_module)
		flags |= HAS_MODULE;
	add_items(r, d, flags, limits);
}
