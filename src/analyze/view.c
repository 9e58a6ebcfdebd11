/* Shared parts of all views; see view.h. */
#include "base/base.h"
#include "analyze/view.h"

#include <math.h>

#include "analyze/runtimes.h"
#include "analyze/select/window.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/text/num.h"
#include "base/text/shortname.h"
#include "base/stat.h"
#include "model/tables.h"

#define FEW_PCT 10 /* a part that is smaller, and yet the largest one, is one of more than ten */

double view_pct(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

const char *view_largest(double pct)
{
	return pct < FEW_PCT ? "the largest of many parts" : "the largest part";
}

const char *view_most(double pct)
{
	return pct > 50 ? "most" : view_largest(pct);
}

bool view_is_exact(const struct selection *sel)
{
	if (sel->variance)
		return false;
	return sel->noun || sel->is_counted;
}

static bool is_of_table(const struct selection *sel)
{
	return !sel->noun && sel->table < sel->p->tables.n;
}

bool view_is_cpu_time(const struct selection *sel)
{
	static const char *const names[] = {"cycles", "cpu-clock", "task-clock"};
	size_t n = strcspn(sel->event, ":");
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (n == strlen(names[i]) && !strncmp(sel->event, names[i], n))
			return true;
	return false;
}

/* Samples of an event that is not CPU time or, in text formats, not known. */
static bool is_of_event(const struct selection *sel)
{
	if (!is_of_table(sel) || sel->id != TABLE_SAMPLES || sel->unit != UNIT_COUNT)
		return false;
	bool is_by_sample = !sel->p->tables.p[sel->table].weight_column;
	return !is_by_sample || !view_is_cpu_time(sel);
}

/* The event of such a table, or NULL. */
static const char *counted_event(const struct selection *sel)
{
	static const char *const unknown[] = {"samples", TABLES_BEFORE, TABLES_AFTER, ""};
	for (size_t i = 0; i < ARRAY_LEN(unknown); i++)
		if (!strcmp(sel->event, unknown[i]))
			return NULL;
	return is_of_event(sel) ? sel->event : NULL;
}

const char *view_amount(const struct selection *sel)
{
	if (sel->unit == UNIT_BYTES)
		return "bytes";
	const char *event = counted_event(sel);
	if (event)
		return event;
	if (is_of_event(sel))
		return "samples";
	return sel->unit == UNIT_NS || !view_is_exact(sel) ? "time" : "count";
}

double view_effective(const struct selection *sel, struct weight w)
{
	if (sel->variance && w.variance > 0)
		return (double)w.weight * (double)w.weight / w.variance;
	return (double)w.nr_samples * (sel->effective > 0 ? sel->effective : 1);
}

/*
 * Half width of the interval of part / of, both estimated: an error of the part is one of the whole, too,
 * so that of a part that is nearly all is small (the first-order variance of a ratio). A part and the rest
 * have the same; the smaller of them has the fewer samples.
 */
static double ratio_error(struct weight part, struct weight of)
{
	double share = (double)part.weight / (double)of.weight;
	double rest = MAX(of.variance - part.variance, 0.0);
	double variance = (1 - share) * (1 - share) * part.variance + share * share * rest;
	double smaller = (double)MIN(part.weight, of.weight - part.weight);
	return stat_estimate_error(smaller, variance) / (double)of.weight;
}

/* The share is computed from weights, its error from the number of samples. */
double view_error(const struct selection *sel, struct weight part, struct weight of)
{
	if (view_is_exact(sel))
		return (double)NAN;
	if (!of.weight || !of.nr_samples)
		return 0;
	if (sel->variance)
		return 100 * ratio_error(part, of);
	double share = (double)part.weight / (double)of.weight;
	double n = view_effective(sel, of);
	return stat_share_pct_error(share * n, n);
}

struct weight view_all(const struct selection *sel)
{
	struct weight w = {.weight = sel->weight, .nr_samples = sel->nr_samples};
	for (size_t i = 0; sel->variance && i < sel->nr_rows; i++)
		w.variance += sel->variance[i];
	return w;
}

bool view_is_idle_thread(const struct profile *p, task_id task)
{
	const struct task *t = &p->tasks.p[task];
	return t->tid <= 0 && t->pid <= 0 && !strcmp(profile_text(p, t->comm), "swapper");
}

struct weight view_busy(const struct selection *sel)
{
	struct weight w = {0};
	for (size_t i = 0; i < sel->nr_rows; i++)
		if (!view_is_idle_thread(sel->p, sel->rows[i].task))
			weight_add_row(&w, sel, i);
	return w;
}

bool view_has_shares(const struct selection *sel)
{
	struct weight all = view_all(sel);
	bool is_exact = view_is_exact(sel) || (sel->variance && !(all.variance > 0));
	return is_exact || view_effective(sel, all) >= VIEW_FEW_SAMPLES;
}

uint64_t view_duration_ns(const struct selection *sel)
{
	return window_recorded_ns(sel->p, (struct window){sel->first_ns, sel->last_ns});
}

/* Samples of CPU time that are scaled to the kernel's count (tables_scale_time). */
static double sum_of_times(const struct table *t)
{
	double ns = 0;
	for (size_t i = 0; t->nr_columns > 1 && i < t->n; i++)
		ns += (double)t->values[i * t->nr_columns + 1];
	return ns;
}

double view_cpus(const struct selection *sel, struct weight w)
{
	uint64_t ns = view_duration_ns(sel);
	if (!ns || sel->table >= sel->p->tables.n || sel->p->tables.p[sel->table].has_tags)
		return -1;
	const struct table *t = &sel->p->tables.p[sel->table];
	if (!view_is_cpu_time(sel) && (sel->unit != UNIT_NS || strcmp(sel->event, "cpu") != 0))
		return -1;
	if (sel->unit == UNIT_NS)
		return (double)w.weight / (double)ns;
	if (profile_get_fact_nr(sel->p, FACT_CPU_TIME_NS) && t->n)
		return (double)w.nr_samples * sum_of_times(t) / (double)t->n / (double)ns;
	return t->freq_hz > 0 ? (double)w.nr_samples / t->freq_hz / ((double)ns / 1e9) : -1;
}

/* Whether samples of UNIT_COUNT weigh by their periods: by cycles, page faults. */
static bool is_by_period(const struct selection *sel)
{
	return is_of_table(sel) && sel->id == TABLE_SAMPLES && sel->unit == UNIT_COUNT &&
	       sel->p->tables.p[sel->table].weight_column;
}

const char *view_title(struct arena *a, const struct selection *sel)
{
	if (sel->id == TABLE_THREAD_TIME)
		return "thread time, on-CPU and off-CPU";
	if (sel->id == TABLE_OFF_CPU)
		return "off-CPU time";
	if (view_is_cpu_time(sel))
		return "CPU time";
	const char *event = counted_event(sel);
	if (event)
		return arena_fmt(a, "%s of %s", is_by_period(sel) ? "number" : "samples", event);
	return sel->unit == UNIT_COUNT ? arena_strdup(a, select_noun(sel))
				       : arena_fmt(a, "%s (%s)", sel->event, view_amount(sel));
}

/* Returns what weights count; NULL: samples. */
static const char *count_name(const struct selection *sel)
{
	if (sel->count_name)
		return sel->count_name;
	if (is_by_period(sel))
		return sel->event;
	const struct table *t = is_of_table(sel) ? &sel->p->tables.p[sel->table] : NULL;
	if (!t || !t->has_tags || sel->unit != UNIT_COUNT)
		return NULL;
	return profile_text(sel->p, t->columns[t->weight_column].name);
}

/* ---- tables ---------------------------------------------------------------------------- */

static int by_name(const void *x, const void *y)
{
	const struct view_item *a = x;
	const struct view_item *b = y;
	return strcmp(a->name, b->name) ?: strcmp(a->module, b->module);
}

static int by_self(const void *x, const void *y)
{
	const struct view_item *a = x;
	const struct view_item *b = y;
	return COMPARE(b->self.weight, a->self.weight)
		       ?: COMPARE(b->total.weight, a->total.weight)
		       ?: by_name(a, b);
}

static int by_total(const void *x, const void *y)
{
	const struct view_item *a = x;
	const struct view_item *b = y;
	return COMPARE(b->total.weight, a->total.weight) ?: by_self(a, b);
}

static size_t drop_weightless(struct view_item *items, size_t n)
{
	size_t to = 0;
	for (size_t i = 0; i < n; i++)
		if (items[i].self.weight || items[i].total.weight || items[i].self.nr_samples)
			items[to++] = items[i];
	return to;
}

/* Further bits besides enum view_columns. */
enum { IS_ESTIMATE = 1 << 8, IS_WEIGHED = 1 << 9, HAS_TOTAL_COUNT = 1 << 10 };

enum { COLUMN_SELF = 0, COLUMN_TOTAL = 3 }; /* percentages of begin_table's columns */

static struct report_table *begin_table(struct report *r, const struct selection *sel,
					const struct view_spec *spec)
{
	bool has_total = spec->flags & VIEW_TOTAL;
	bool is_bytes = sel->unit == UNIT_BYTES;
	bool is_ns = sel->unit == UNIT_NS;
	const char *counted = is_by_period(sel) ? count_name(sel) : NULL;
	const char *amount = view_amount(sel);
	const struct report_column columns[] = {
		{"self_pct", has_total ? "self %" : "%", CELL_PERCENT,
		 arena_fmt(&r->arena, "self %s: share %s here, without callees", amount,
			   is_bytes ? "allocated" : "spent")},
		{"self_error_pct", "+-", CELL_PERCENT,
		 "half width of the 95 % confidence interval of that share, in percentage points",
		 IS_ESTIMATE},
		{"all_pct", "% of all", CELL_PERCENT, "as a share of everything shown",
		 VIEW_OF_ALL},
		{"total_pct", "total %", CELL_PERCENT,
		 arena_fmt(&r->arena, "total %s: share %s here, callees included", amount,
			   is_bytes ? "allocated" : "spent"),
		 VIEW_TOTAL},
		{"samples", select_noun(sel), CELL_COUNT, "samples whose leaf is here"},
		{"total_samples", "total", CELL_COUNT, "samples here, callees included",
		 HAS_TOTAL_COUNT},
		{"self",
		 counted ? counted
		 : is_ns ? "time"
			 : "bytes",
		 counted ? CELL_COUNT
		 : is_ns ? CELL_NS
			 : CELL_BYTES,
		 "time, bytes or events that those samples represent", IS_WEIGHED},
		{spec->name_key, spec->name_title ? spec->name_title : spec->name_key, CELL_TEXT},
		{spec->module_key, spec->module_key, CELL_TEXT, NULL, VIEW_MODULE},
	};
	bool has_shares = view_has_shares(sel);
	unsigned bits = spec->flags | (view_is_exact(sel) ? 0 : IS_ESTIMATE) |
			(sel->unit == UNIT_COUNT && !is_by_period(sel) ? 0 : IS_WEIGHED) |
			(has_total && !has_shares ? HAS_TOTAL_COUNT : 0);
	struct report_table *t =
		report_add_table_of(r, spec->key, spec->title, columns, ARRAY_LEN(columns), bits);
	t->has_counts = !has_shares;
	if (bits & IS_ESTIMATE && has_shares && r->tables.n == 1)
		t->note = "+-: half of the 95 % confidence interval, in percentage points";
	return t;
}

static void add_item(struct report *r, struct report_table *t, const struct selection *sel,
		     const struct view_spec *spec, const struct view_item *it)
{
	bool has_total = it->total.weight != UINT64_MAX;
	const union cell cells[] = {
		{.d = view_pct(it->self.weight, spec->of.weight)},
		{.d = view_error(sel, it->self, spec->of)},
		{.d = view_pct(it->self.weight, sel->weight)},
		{.d = has_total ? view_pct(it->total.weight, spec->of.weight) : (double)NAN},
		{.u = it->self.nr_samples},
		{.u = has_total ? it->total.nr_samples : CELL_NO_COUNT},
		{.u = it->self.weight},
		{.text = it->name},
		{.text = it->module},
	};
	report_add_row(r, t, cells);
}

bool view_has_room(const struct view_limits *limits, const struct report_table *t, double pct)
{
	return (!limits->max_rows || t->nr_rows < limits->max_rows) && pct >= limits->min_pct;
}

void view_add_table(struct report *r, const struct selection *sel, const struct view_spec *spec,
		    struct view_item *items, size_t nr_items, const struct view_limits *limits)
{
	size_t n = drop_weightless(items, nr_items);
	qsort(items, n, sizeof(*items),
	      limits->sort == VIEW_BY_SELF    ? by_self
	      : limits->sort == VIEW_BY_TOTAL ? by_total
					      : by_name);
	struct report_table *t = begin_table(r, sel, spec);
	t->is_ranked = limits->sort != VIEW_BY_NAME;
	t->rank_by = limits->sort == VIEW_BY_TOTAL ? COLUMN_TOTAL : COLUMN_SELF;
	struct view_item other = {.name = "<other>", .module = "", .total.weight = UINT64_MAX};
	size_t nr_cut = 0;
	for (size_t i = 0; i < n; i++) {
		const struct view_item *it = &items[i];
		uint64_t ranked =
			limits->sort == VIEW_BY_TOTAL ? it->total.weight : it->self.weight;
		if (view_has_room(limits, t, view_pct(ranked, spec->of.weight))) {
			add_item(r, t, sel, spec, it);
			continue;
		}
		nr_cut++;
		weight_add(&other.self, &it->self);
	}
	t->has_other = nr_cut > 0;
	if (nr_cut)
		add_item(r, t, sel, spec, &other);
	t->nr_rows_total = n;
}

/* ---- frames without a name --------------------------------------------------------------- */

/* Number of frames of a location that texts show as [unknown] or as the start of a function. */
static uint32_t nr_unnamed(const struct profile *p, const struct location *l, uint32_t nr_frames)
{
	if (!l->nr_frames)
		return 1;
	uint32_t n = 0;
	for (uint32_t i = 0; i < nr_frames; i++) {
		const struct function *f = &p->functions.p[p->frames.p[l->first_frame + i].func];
		n += f->flags & FUNC_GUESSED && strstr(profile_text(p, f->name), "!fn_");
	}
	return n;
}

static bool has_unnamed(const struct profile *p)
{
	for (loc_id i = 1; i < p->locations.n; i++) {
		const struct location *l = &p->locations.p[i];
		bool is_pseudo = p->modules.p[l->module].kind == MODULE_PSEUDO;
		if (!is_pseudo && nr_unnamed(p, l, l->nr_frames))
			return true;
	}
	return false;
}

/* The sum over all rows of weight times number of frames; a pass over the stacks, without totals. */
static double weight_of_frames(const struct selection *sel)
{
	const struct profile *p = sel->p;
	CLEANUP(free_p) uint32_t *nr = xcalloc(p->stacks.n, sizeof(*nr)); /* up to the root */
	double sum = 0;
	for (stack_id id = 1; id < p->stacks.n; id++) {
		loc_id loc = p->stacks.p[id].loc;
		bool is_pseudo = p->modules.p[p->locations.p[loc].module].kind == MODULE_PSEUDO;
		nr[id] = nr[p->stacks.p[id].parent] + (is_pseudo ? 0 : select_nr_frames(sel, id));
	}
	for (size_t i = 0; i < sel->nr_rows; i++)
		sum += (double)sel->rows[i].weight * nr[sel->rows[i].stack];
	return sum;
}

void view_add_frames(struct report *r, const struct selection *sel)
{
	CLEANUP(arena_release) struct arena a = {0};
	const struct profile *p = sel->p;
	if (!sel->nr_rows)
		return;
	if (!has_unnamed(p)) {
		r->frames.all += weight_of_frames(sel);
		return;
	}
	uint64_t *total =
		arena_calloc(&a, p->stacks.n, sizeof(*total)); /* weight at or below a node */
	for (size_t i = 0; i < sel->nr_rows; i++)
		total[sel->rows[i].stack] += sel->rows[i].weight;
	for (stack_id id = (stack_id)p->stacks.n - 1; id > 0; id--)
		total[p->stacks.p[id].parent] += total[id];
	double *by_module = arena_calloc(&a, p->modules.n + 1, sizeof(*by_module));
	module_id most = 0;
	for (stack_id id = 1; id < p->stacks.n; id++) {
		const struct location *l = &p->locations.p[p->stacks.p[id].loc];
		uint32_t n = select_nr_frames(sel, id);
		if (!n || !total[id] || p->modules.p[l->module].kind == MODULE_PSEUDO)
			continue;
		double weight = (double)total[id];
		r->frames.all += weight * n;
		by_module[l->module] += weight * nr_unnamed(p, l, n);
		r->frames.unnamed += weight * nr_unnamed(p, l, n);
		if (by_module[l->module] > by_module[most])
			most = l->module;
	}
	const char *module = profile_module_name(p, most);
	if (most && *module)
		r->frames.module = arena_strdup(&r->arena, module);
}

/* ---- what stands above all tables ------------------------------------------------------ */

uint64_t view_nr_out(const struct selection *sel)
{
	uint64_t nr = 0;
	for (enum select_out i = 0; i < SELECT_OUT_NR; i++)
		nr += i == SELECT_OUT_IDLE ? 0 : sel->nr_out[i];
	return nr;
}

const char *view_name(struct report *r, const char *name)
{
	CLEANUP(buf_release) struct buf text = {0};
	shortname_add(&text, sv_from_str(name), 48);
	return arena_strdup(&r->arena, buf_str(&text));
}

const char *view_of_selection(struct report *r, const struct selection *sel, const char *value)
{
	return view_nr_out(sel) ? arena_fmt(&r->arena, "%s (of the selection)", value) : value;
}

void view_note_filtered(struct report *r, const struct selection *sel)
{
	uint64_t nr_out = 0;
	bool is_wait_time =
		(sel->id == TABLE_OFF_CPU || sel->id == TABLE_BLAME) && sel->unit == UNIT_NS;
	CLEANUP(buf_release) struct buf b = {0};
	for (size_t i = 0; i < SELECT_OUT_NR; i++) {
		if (!sel->nr_out[i])
			continue;
		buf_addf(&b, "%s%s %s", b.n ? ", " : "", num_count(sel->nr_out[i]).s,
			 select_out_text((enum select_out)i));
		nr_out += sel->nr_out[i];
	}
	if (!nr_out)
		return;
	const char *by = nr_out > sel->nr_out[SELECT_OUT_IDLE] ? "filters: " : "";
	const char *time = !is_wait_time ? ""
					 : arena_fmt(&r->arena, "%s of %s of wait time, ",
						     num_ns(sel->weight).s,
						     num_ns(sel->weight + sel->weight_out).s);
	report_note(r, "shown: %s%s of %s (%s%s)", time, num_count(sel->nr_samples).s,
		    num_noun(sel->nr_samples + nr_out, select_noun(sel)).s, by, buf_str(&b));
}

static struct num_text seconds_text(uint64_t ns)
{
	return num_double((double)ns / NS_PER_SEC, ns % NS_PER_SEC ? 2 : 0);
}

static void note_window(struct report *r, const struct selection *sel)
{
	uint64_t start_ns = window_of_profile(sel->p).from_ns;
	if (sel->is_widened)
		report_note(
			r,
			"the time window is widened to the whole seconds that it touches, %s..%s: "
			"waits and other sums are stored by second",
			seconds_text(sel->first_ns - start_ns).s,
			seconds_text(sel->last_ns - start_ns).s);
}

void view_note_incomplete(struct report *r, const struct profile *p)
{
	if (!p->is_incomplete)
		return;
	r->is_incomplete = true;
	struct window w = window_of_profile(p);
	const char *to = arena_fmt(&r->arena, "; its data end %s after the start",
				   num_ns(w.to_ns > w.from_ns ? w.to_ns - w.from_ns : 0).s);
	const char *damaged = profile_get_fact(p, FACT_DAMAGED);
	if (damaged) {
		report_note(r, "the recording is damaged: %s", damaged);
		return;
	}
	report_note(r, "the recording is incomplete%s%s%s",
		    p->losses.nr[LOSS_DISK] ? ": the disk was full"
		    : profile_get_fact(p, FACT_PROBLEM)
			    ? ""
			    : ": assay was killed, or the file is truncated or damaged",
		    w.to_ns ? to : "",
		    tables_has_rows(p, TABLE_OFF_CPU) || tables_has_rows(p, TABLE_ON_CPU)
			    ? "; waits that had not ended by then are missing"
			    : "");
}

void view_report_nothing(struct report *r, const struct profile *p)
{
	r->title = "recording without data";
	r->losses = p->losses;
	r->has_no_samples = true;
	report_facts(r, p);
	view_note_incomplete(r, p);
	report_note(r, profile_get_fact(p, FACT_DAMAGED)
			       ? "what is left has no rows: no table can be shown"
			       : "nothing was recorded before that: no table can be shown");
}

/* Numbers in the facts are of the whole recording; said where filters left something out. */
static void mark_whole_facts(struct report *r, const struct selection *sel)
{
	static const enum fact_id numbers[] = {FACT_CPU_TIME, FACT_BLOCK_IN_FLIGHT,
					       FACT_IO_CALLS_AT_START};
	for (size_t i = 0; view_nr_out(sel) && i < ARRAY_LEN(numbers); i++) {
		const char *value = report_get_fact(r, numbers[i]);
		if (value)
			report_fact(r, numbers[i],
				    arena_fmt(&r->arena, "%s (of the whole recording)", value));
	}
}

void view_begin(struct report *r, const struct selection *sel, const char *title)
{
	r->title = arena_strdup(&r->arena, title);
	r->losses = sel->p->losses;
	r->total = sel->weight;
	r->nr_samples = sel->nr_samples;
	r->unit = sel->unit;
	r->noun = arena_strdup(&r->arena, select_noun(sel));
	r->count_name = count_name(sel) ? arena_strdup(&r->arena, count_name(sel)) : NULL;
	report_facts(r, sel->p);
	mark_whole_facts(r, sel);
	report_fact(r, FACT_EVENT, sel->event);
	view_note_incomplete(r, sel->p);
	note_window(r, sel);
	view_note_filtered(r, sel);
	view_add_frames(r, sel);
	runtimes_note_stacks(r, sel);
}
