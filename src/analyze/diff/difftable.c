/* The tables and sentences of a comparison; see diff.h. */
#include "base/base.h"
#include "analyze/diff/diffblocks.h"
#include "analyze/diff/diff.h"

#include <math.h>

#include "analyze/memory/heapweights.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/text/num.h"

/* Bits of columns. */
enum {
	OF_SHARES = 1 << 0,
	OF_AMOUNTS = 1 << 1,
	HAS_RATE = 1 << 2,        /* per minute */
	HAS_SHARE_TOTAL = 1 << 3, /* callees included */
	HAS_AMOUNT_TOTAL = 1 << 4,
	HAS_MODULE = 1 << 5,
	HAS_REASON = 1 << 6,
};

static const struct {
	const char *key;
	const char *title; /* NULL: made of the rest */
	const char *name;
	const char *plural;
	bool has_module;
} kinds[] = {
	[BY_FUNCTION] = {"functions", NULL, "function", "functions", true},
	[BY_MODULE] = {"modules", NULL, "module", "modules", false},
	[BY_CRATE] = {"crates", NULL, "crate", "crates, namespaces and modules", false},
	[BY_FILE] = {"files", NULL, "file", "source files", false},
	[BY_LINE] = {"lines", NULL, "line", "source lines", false},
	[DIFF_BY_STACK] = {"stacks", "stacks by change", "stack", "stacks", false},
	[DIFF_BY_THREAD] = {"threads", "threads by change (digits shown as #)", "thread",
			    "names of threads", false},
	[DIFF_BY_PHASE] = {"phases", "phases by change", "phase", "phases", false},
	[DIFF_BY_REASON] = {"reasons", NULL, "reason", "reasons", false},
	[DIFF_BY_WAIT] = {"waiting_functions", "waiting functions by change, without the run queue",
			  "function", "waiting functions", true},
};

/* For live memory of a running program, the difference per minute is its growth rate. */
static bool has_rate(const struct diff *d)
{
	const struct selection *before = d->spec.runs[DIFF_BEFORE];
	const struct selection *after = d->spec.runs[DIFF_AFTER];
	return d->spec.how == DIFF_AMOUNTS && d->minutes > 0 && !d->has_spread &&
	       heapweights_is_memory(after) && !heapweights_is_flow(after) &&
	       after->id != TABLE_PEAK && !(diff_is_launched(after) && diff_is_launched(before));
}

/* ---- cells --------------------------------------------------------------------------------- */

static union cell amount_cell(const struct diff_value *v, int side)
{
	return (union cell){.estimate = {.value = (uint64_t)llrint(MIN(v->amount[side], 9e18)),
					 .error = (uint64_t)llrint(MIN(v->error[side], 9e18))}};
}

static union cell change_cell(double change, double error)
{
	union cell c = {.estimate = {.change = CELL_NO_CHANGE}};
	if (!isnan(change))
		c.estimate.change = llrint(MAX(MIN(change, 9e18), -9e18));
	c.estimate.error = isfinite(error) ? (uint64_t)llrint(MIN(error, 9e18)) : 0;
	return c;
}

/* Cells of errors that are not known have no number. */
static double known(double error)
{
	return isfinite(error) ? error : (double)NAN;
}

/* How a row is marked: "" unless the interval of its change excludes 0. */
static const char *mark_of(const struct diff_item *it)
{
	bool is_self = diff_is_significant(&it->self);
	if (!is_self && !diff_is_significant(&it->total))
		return "";
	if (!is_self)
		return it->total.change > 0 ? "more (total)" : "less (total)";
	if (!it->is_in[DIFF_BEFORE])
		return "new";
	if (!it->is_in[DIFF_AFTER])
		return "gone";
	return it->self.change > 0 ? "more" : "less";
}

static void add_item(struct report *r, struct report_table *t, const struct diff *d,
		     const struct diff_item *it, const char *name, const char *mark)
{
	const struct diff_value *self = &it->self;
	const struct diff_value *total = &it->total;
	double before = self->amount[DIFF_BEFORE];
	const union cell cells[] = {
		{.d = before},
		{.d = self->amount[DIFF_AFTER]},
		{.d = self->change},
		{.d = known(self->change_error)},
		{.d = total->amount[DIFF_AFTER]},
		{.d = total->change},
		{.d = known(total->change_error)},
		change_cell(self->change, self->change_error),
		{.d = before > 0 ? 100 * self->change / before : (double)NAN},
		change_cell(self->change / d->minutes, self->change_error / d->minutes),
		amount_cell(self, DIFF_BEFORE),
		amount_cell(self, DIFF_AFTER),
		change_cell(total->change, total->change_error),
		{.text = mark},
		{.text = it->reason},
		{.text = name},
		{.text = it->module},
	};
	report_add_row(r, t, cells);
}

/* Counts have no unit of their own: "change samples". */
static const char *amount_title(struct report *r, const struct diff *d, const char *title)
{
	const char *what = r->count_name ? r->count_name : "samples";
	bool is_count = d->spec.runs[DIFF_AFTER]->unit == UNIT_COUNT;
	return is_count ? arena_fmt(&r->arena, "%s %s", title, what) : title;
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
	/* A row that is marked for its total needs that column to the last. */
	static const char *const hide_first[] = {"module",          "change_pct",
						 "total_after_pct", "total_change_error_points",
						 "before",          "after",
						 "before_pct",      NULL};
	enum unit unit = d->spec.runs[DIFF_AFTER]->unit;
	enum cell_kind change = changes[unit];
	const struct report_column columns[] = {
		{"before_pct", "before %", CELL_PERCENT, "share of all before", OF_SHARES},
		{"after_pct", "after %", CELL_PERCENT, "share of all after", OF_SHARES},
		{"change_points", "self change", CELL_FLOAT, "percentage points", OF_SHARES},
		{"change_error_points", "+-", CELL_FLOAT,
		 "half width of its confidence interval; those of all rows hold together with 95 %",
		 OF_SHARES},
		{"total_after_pct", "total after %", CELL_PERCENT, "with callees", HAS_SHARE_TOTAL},
		{"total_change_points", "total change", CELL_FLOAT, "with callees",
		 HAS_SHARE_TOTAL},
		{"total_change_error_points", "+-", CELL_FLOAT, "of the total's change",
		 HAS_SHARE_TOTAL},
		{"change", amount_title(r, d, "change"), change, "after - before", OF_AMOUNTS},
		{"change_pct", "%", CELL_PERCENT, "of before", OF_AMOUNTS},
		{"per_min", "per minute", change, "over the time between the two", HAS_RATE},
		{"before", amount_title(r, d, "before"), amounts[unit], NULL, OF_AMOUNTS},
		{"after", amount_title(r, d, "after"), amounts[unit], NULL, OF_AMOUNTS},
		{"total_change", amount_title(r, d, "total change"), change,
		 "change with callees included", HAS_AMOUNT_TOTAL},
		{"note", "marked", CELL_TEXT, "more, less, new, gone, more (total), less (total)"},
		{"reason", "reason", CELL_TEXT, "of the wait, as --reason takes it", HAS_REASON},
		{name, strcmp(name, "crate") ? name : "module or crate", CELL_TEXT},
		{"module", "module", CELL_TEXT, NULL, HAS_MODULE},
	};
	struct report_table *t =
		report_add_table_of(r, key, title, columns, ARRAY_LEN(columns), flags);
	t->hide_first = hide_first;
	return t;
}

/* What a comparison of several weighs: "cpu-clock", "thread time", "waits". */
static const char *what_of(const struct diff *d)
{
	const struct selection *after = d->spec.runs[DIFF_AFTER];
	return after->id == TABLE_THREAD_TIME ? "thread time"
	       : after->id == TABLE_OFF_CPU   ? "waits"
					      : after->event;
}

/* ---- the sides ----------------------------------------------------------------------------- */

/* @more: the thread time of the same runs, or NULL. */
static void add_sides(struct report *r, const struct diff *d, const struct diff *more)
{
	enum { HAS_MORE = 1 };
	static const enum cell_kind kinds_of_unit[] = {
		[UNIT_COUNT] = CELL_COUNT, [UNIT_NS] = CELL_NS, [UNIT_BYTES] = CELL_BYTES};
	const struct diff_spec *s = &d->spec;
	const struct report_column columns[] = {
		{"side", "side", CELL_TEXT, NULL},
		{"total", amount_title(r, d, more ? what_of(d) : "total"),
		 kinds_of_unit[s->runs[DIFF_AFTER]->unit], "everything shown", 0},
		{"thread_time_ns", "thread time", CELL_NS, "everything shown", HAS_MORE},
		{"duration_ns", "duration", CELL_NS, "of the capture, or of the window of time", 0},
		{"samples", select_noun(s->runs[DIFF_AFTER]), CELL_COUNT, "shown", 0},
		{"recording", "recording", CELL_TEXT, NULL},
	};
	struct report_table *t = report_add_table_of(r, "sides", "compared", columns,
						     ARRAY_LEN(columns), more ? HAS_MORE : 0);
	for (int side = DIFF_BEFORE; side <= DIFF_AFTER; side++)
		for (size_t i = 0; i < s->nr_runs[side]; i++) {
			const struct selection *sel = &s->runs[side][i];
			uint64_t ns = view_duration_ns(sel);
			const union cell cells[] = {
				{.text = side == DIFF_BEFORE ? "before" : "after"},
				{.u = sel->weight},
				{.u = more ? more->spec.runs[side][i].weight : 0},
				{.u = ns ? ns : CELL_NS_NONE},
				{.u = sel->nr_samples},
				{.text = s->names[side] ? s->names[side][i] : ""},
			};
			report_add_row(r, t, cells);
		}
}

/* ---- sentences ----------------------------------------------------------------------------- */

static void add_change(struct buf *to, const struct report *r, const struct diff *d,
		       const struct diff_value *v)
{
	double change = fabs(v->change);
	buf_add_ch(to, v->change < 0 ? '-' : '+');
	if (d->spec.how == DIFF_SHARES) {
		buf_addf(to, "%s points (%s %% to %s %%)", num_double(change, 2).s,
			 num_pct(v->amount[DIFF_BEFORE]).s, num_pct(v->amount[DIFF_AFTER]).s);
		return;
	}
	uint64_t amount = (uint64_t)llrint(MIN(change, 9e18));
	enum unit unit = d->spec.runs[DIFF_AFTER]->unit;
	if (unit == UNIT_COUNT)
		buf_addf(to, "%s %s", num_count(amount).s,
			 r->count_name ? r->count_name : "samples");
	else
		buf_add_str(to, unit == UNIT_NS ? num_ns(amount).s : num_bytes(amount).s);
}

#define NAMED_MAX 3 /* rows that the sentence names */

static const struct diff_item *largest_total(const struct diff *d, double below)
{
	const struct diff_item *most = NULL;
	for (size_t i = 0; i < d->n; i++) {
		const struct diff_item *it = &d->items[i];
		double change = fabs(it->total.change);
		if (diff_is_of_total(d, it) && change < below &&
		    (!most || change > fabs(most->total.change)))
			most = it;
	}
	return most;
}

/* "; 3 more with callees (total): f +11.20 points (40.8 % to 52.0 %)" */
static void add_totals(struct buf *to, const struct report *r, const struct diff *d, size_t nr_self)
{
	size_t nr = 0;
	for (size_t i = 0; i < d->n; i++)
		nr += diff_is_of_total(d, &d->items[i]);
	if (!nr)
		return;
	buf_addf(to, "; %s%s with callees (total): ", num_count(nr).s, nr_self ? " more" : "");
	double below = (double)INFINITY;
	for (size_t i = 0; i < MIN(nr, (size_t)NAMED_MAX); i++) {
		const struct diff_item *it = largest_total(d, below);
		if (!it) /* others have the same change */
			break;
		buf_addf(to, "%s%s ", i ? ", " : "", it->name);
		add_change(to, r, d, &it->total);
		below = fabs(it->total.change);
	}
	if (nr > NAMED_MAX)
		buf_add_str(to, ", ...");
}

/* "2 of 214 functions changed by more than their intervals: f +3.21 points (12.1 % to 15.3 %), ..." */
static void add_finding(struct report *r, const struct diff *d, const char *what)
{
	CLEANUP(buf_release) struct buf names = {0};
	const char *plural = kinds[d->spec.by].plural;
	size_t nr = 0;
	double widest = 0;
	for (size_t i = 0; i < d->n; i++) {
		const struct diff_item *it = &d->items[i];
		widest = MAX(widest, it->self.change_error);
		if (!diff_is_significant(&it->self))
			continue;
		if (nr++ >= NAMED_MAX)
			continue;
		buf_addf(&names, "%s%s%s%s ", nr > 1 ? ", " : ": ", it->reason,
			 *it->reason ? " in " : "", it->name);
		add_change(&names, r, d, &it->self);
	}
	if (nr > NAMED_MAX)
		buf_add_str(&names, ", ...");
	if (nr) {
		add_totals(&names, r, d, nr);
		report_finding(r,
			       "%s%s of %s changed (self), the interval of the change excludes 0%s",
			       what, num_count(nr).s, num_noun(d->n, plural).s, buf_str(&names));
		return;
	}
	if (d->spec.how == DIFF_SHARES)
		buf_addf(&names, "; the widest interval is +-%s points", num_double(widest, 2).s);
	add_totals(&names, r, d, nr);
	report_finding(r, "%snone of %s changed (self): the interval of each change includes 0%s",
		       what, num_noun(d->n, plural).s, names.n ? buf_str(&names) : "");
}

/* Of several comparisons each sentence begins with what it is of. */
static void add_findings(struct report *r, const struct diff *parts, size_t nr)
{
	bool is_unknown = false;
	for (size_t i = 0; i < nr; i++) {
		const char *what = nr > 1 ? arena_fmt(&r->arena, "%s: ", what_of(&parts[i])) : "";
		if (!parts[i].is_unknown) {
			if (parts[i].n)
				add_finding(r, &parts[i], what);
			continue;
		}
		if (!is_unknown)
			report_finding(
				r,
				"%sthese two captures cannot tell a change from noise: the "
				"amounts are counted, and their variation is not known from "
				"less than %d whole seconds of a capture; longer captures or "
				"--runs tell",
				what, BLOCKS_MIN);
		is_unknown = true;
	}
}

static bool any_of(const struct diff *parts, size_t nr, bool (*is)(const struct diff *d))
{
	for (size_t i = 0; i < nr; i++)
		if (is(&parts[i]))
			return true;
	return false;
}

static bool has_blocks(const struct diff *d)
{
	return d->has_blocks;
}

static bool has_intervals(const struct diff *d)
{
	return !d->is_unknown &&
	       (d->spec.runs[DIFF_BEFORE]->variance || d->spec.runs[DIFF_AFTER]->variance ||
		d->spec.how == DIFF_SHARES || d->has_spread);
}

/* "compared: cpu-clock by function, thread time by wait reason, waits by waiting function" */
static void add_compared(struct report *r, const struct diff *parts, size_t nr)
{
	CLEANUP(buf_release) struct buf text = {0};
	for (size_t i = 0; i < nr; i++) {
		unsigned by = parts[i].spec.by;
		buf_addf(&text, "%s%s by %s%s", i ? ", " : "", what_of(&parts[i]),
			 by == DIFF_BY_REASON ? "wait "
			 : by == DIFF_BY_WAIT ? "waiting "
					      : "",
			 kinds[by].name);
	}
	report_note(r, "compared: %s", buf_str(&text));
}

/* @what: "waits ", or "" of the first comparison. */
static void add_how(struct report *r, const struct diff *d, const char *what)
{
	switch (d->spec.how) {
	case DIFF_AMOUNTS:
		report_note(r, "%scompared by amount, not scaled to the durations", what);
		break;
	case DIFF_SHARES:
		report_note(r,
			    "%scompared by share of each total: change and +- are in percentage "
			    "points; --absolute compares amounts, --per-time amounts by time",
			    what);
		break;
	case DIFF_PER_TIME:
		report_note(
			r,
			"%scompared by time: amounts of BEFORE are scaled by %s to the duration "
			"of AFTER; --absolute compares unscaled amounts",
			what, num_double(d->scale[DIFF_BEFORE][0], 3).s);
		break;
	}
}

static void add_notes(struct report *r, const struct diff *d, size_t nr)
{
	if (nr > 1)
		add_compared(r, d, nr);
	add_how(r, d, "");
	for (size_t i = 1; i < nr; i++)
		if (d[i].spec.how != d->spec.how)
			add_how(r, &d[i], arena_fmt(&r->arena, "%s ", what_of(&d[i])));
	if (d->has_spread)
		report_note(r,
			    "amounts are means of the runs; +- covers the spread between runs "
			    "(%s of freedom) and sampling",
			    num_noun((uint64_t)spread_degrees(&d->spread[0]), "degrees").s);
	if (any_of(d, nr, has_blocks))
		report_note(r,
			    "%s counted, not sampled; +- is from their variation from second to "
			    "second within both captures; --runs compares captures",
			    d->has_blocks ? "amounts are" : "thread time and waits are");
	if (!any_of(d, nr, has_intervals))
		return;
	if (nr > 1)
		report_note(r,
			    "+-: half width of the confidence interval of the change, so wide that "
			    "all rows of a table together hold with 95 %%; marked: the interval "
			    "excludes 0");
	else
		report_note(r,
			    "+-: half width of the confidence interval of the change, so wide that "
			    "all %s together hold with 95 %%; marked: the interval excludes 0",
			    num_noun(d->n, "rows").s);
}

/* ---- the table of rows --------------------------------------------------------------------- */

static void add_into(struct diff_value *to, const struct diff_value *v)
{
	for (int side = DIFF_BEFORE; side <= DIFF_AFTER; side++)
		to->amount[side] += v->amount[side];
	to->change += v->change;
}

/* Changes that would be printed as 0, but for those of total that are none by chance. */
static bool is_zero(const struct diff *d, const struct diff_item *it)
{
	double least = d->spec.how == DIFF_SHARES ? 0.005 : 0.5;
	if (d->spec.sort == DIFF_SORT_TOTAL)
		return fabs(it->total.change) < least;
	return fabs(it->self.change) < least && !diff_is_of_total(d, it);
}

static const char *title_of(struct report *r, const struct diff *d)
{
	if (d->spec.by == DIFF_BY_REASON)
		return arena_fmt(&r->arena, "%s by reason, by change", what_of(d));
	if (kinds[d->spec.by].title)
		return kinds[d->spec.by].title;
	return arena_fmt(&r->arena, "%s by change (%s)", kinds[d->spec.by].plural,
			 d->spec.sort == DIFF_SORT_TOTAL ? "total" : "self");
}

static void add_items(struct report *r, const struct diff *d, unsigned flags,
		      const struct view_limits *limits)
{
	unsigned by = d->spec.by;
	struct diff_item other = {.reason = "", .module = "", .is_in = {true, true}};
	struct report_table *t =
		add_table(r, d, flags, kinds[by].key, title_of(r, d), kinds[by].name);
	size_t nr_left = 0;
	for (size_t i = 0; i < d->n; i++) {
		const struct diff_item *it = &d->items[i];
		if (is_zero(d, it))
			continue;
		t->nr_rows_total++;
		if (!limits->max_rows || t->nr_rows < limits->max_rows) {
			add_item(r, t, d, it, it->name, mark_of(it));
			continue;
		}
		add_into(&other.self, &it->self);
		nr_left++;
	}
	size_t nr_zero = d->n - t->nr_rows_total;
	if (nr_zero)
		t->note = arena_fmt(&r->arena, "left out: %s without a change of %s",
				    num_noun(nr_zero, "rows").s,
				    d->spec.sort == DIFF_SORT_TOTAL ? "total" : "self");
	if (!nr_left)
		return;
	/* the interval of a sum of rows is not known from theirs, and their totals overlap */
	other.self.change_error = other.total.change_error = (double)INFINITY;
	other.total.amount[DIFF_AFTER] = other.total.change = (double)NAN;
	/* not one of the compared rows: not marked */
	t->has_other = true;
	add_item(r, t, d, &other, "<other>", "");
}

static unsigned flags_of(const struct diff *d)
{
	bool is_shares = d->spec.how == DIFF_SHARES;
	unsigned flags = (is_shares ? OF_SHARES : OF_AMOUNTS) | (has_rate(d) ? HAS_RATE : 0);
	if (d->spec.by < BY_NR)
		flags |= is_shares ? HAS_SHARE_TOTAL : HAS_AMOUNT_TOTAL;
	if (kinds[d->spec.by].has_module)
		flags |= HAS_MODULE;
	return flags | (d->spec.by == DIFF_BY_WAIT ? HAS_REASON : 0);
}

void diff_report(struct report *r, const struct diff *parts, size_t nr,
		 const struct view_limits *limits)
{
	const struct diff *d = &parts[0];
	bool is_more = nr > 1 && parts[1].spec.runs[DIFF_AFTER]->id != d->spec.runs[DIFF_AFTER]->id;
	add_findings(r, parts, nr);
	add_notes(r, parts, nr);
	add_sides(r, d, is_more ? &parts[1] : NULL);
	if (d->spec.how != DIFF_SHARES) {
		unsigned flags = OF_AMOUNTS | (has_rate(d) ? HAS_RATE : 0);
		struct report_table *t = add_table(r, d, flags, "total", "total", "what");
		add_item(r, t, d, &d->all, d->spec.runs[DIFF_AFTER]->event, mark_of(&d->all));
	}
	for (size_t i = 0; i < nr; i++)
		add_items(r, &parts[i], flags_of(&parts[i]), limits);
}
