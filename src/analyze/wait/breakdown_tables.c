/* Tables of the thread time breakdown; see breakdown.h. */
#include "base/base.h"
#include "analyze/wait/breakdown.h"

#include <stdlib.h>

#include "analyze/stacks/threads.h"
#include "base/clock.h"
#include "base/text/num.h"

#define CLOSES_PCT     0.5 /* a sum within this of 100 % needs no column */
#define REASON_COLUMNS 5
#define REASONS_AT     5 /* columns before the reasons */
#define NAMED_PCT      10.0
#define SHORT_NS       (100 * NS_PER_MS) /* threads younger than this are not checked */

static double nan_cell(void)
{
	return (double)__builtin_nan("");
}

/* ---- all threads, a row a reason ---------------------------------------------------------- */

static const struct report_column columns[] = {
	{"time_ns", "time", CELL_NS, "of all threads together"},
	{"pct", "% of time", CELL_PERCENT, "share of the total, the last row"},
	{"threads", "avg threads", CELL_FLOAT, "average number of threads in this state"},
	{"count", "count", CELL_COUNT, "runs, or waits that ended in the window"},
	{"mean_ns", "mean", CELL_NS, NULL},
	{"p50_ns", "p50", CELL_NS, "interpolated within a power-of-two bucket"},
	{"p99_ns", "p99", CELL_NS, "interpolated within a power-of-two bucket"},
	{"longest_ns", "longest", CELL_NS, NULL},
	{"reason", "reason", CELL_TEXT, "as --reason takes it"},
	{"what", "meaning", CELL_TEXT, "the reason in words", .is_prose = true},
};

static const char *const hide_first[] = {"threads", "p50_ns", "mean_ns", NULL};
static const char *const threads_hide_first[] = {"voluntary", "involuntary", NULL};

struct line {
	uint64_t ns;
	uint64_t nr;
	const struct quantile *q; /* NULL: durations of single intervals are not known */
	const char *reason;
	const char *prefix; /* before the reason's text, or NULL */
	const char *what;
};

/* Returns "" if the text equals the key. */
static const char *what_text(struct report *r, const struct line *line)
{
	bool is_same = !strcmp(line->reason, line->what);
	if (!line->prefix)
		return is_same ? "" : line->what;
	return is_same ? line->prefix : arena_fmt(&r->arena, "%s: %s", line->prefix, line->what);
}

static void add_line(struct report *r, struct report_table *t, const struct breakdown *l,
		     const struct line *line)
{
	const struct quantile *q = line->q;
	union cell cells[ARRAY_LEN(columns)] = {
		{.u = line->ns},
		{.d = view_pct(line->ns, l->total.wall_ns)},
		{.d = l->window_ns ? (double)line->ns / (double)l->window_ns : nan_cell()},
		{.u = line->nr},
		{.u = q                                       ? quantile_mean(q)
		      : line->nr && line->nr != CELL_NO_COUNT ? line->ns / line->nr
							      : CELL_NS_NONE},
		{.u = q ? quantile_at(q, 0.5) : CELL_NS_NONE},
		{.u = q ? quantile_at(q, 0.99) : CELL_NS_NONE},
		{.u = q && q->longest_ns ? q->longest_ns : CELL_NS_NONE},
		{.text = line->reason},
		{.text = what_text(r, line)},
	};
	report_add_row(r, t, cells);
}

struct ranked {
	enum wait_reason reason;
	uint64_t ns;
};

static int by_time(const void *x, const void *y)
{
	const struct ranked *a = x;
	const struct ranked *b = y;
	return COMPARE(b->ns, a->ns) ?: COMPARE(a->reason, b->reason);
}

/* Sorts the reasons that occur, except run queue and CPU, largest first; returns how many. */
static size_t rank_reasons(const struct breakdown *l, bool is_idle, struct ranked *ret_ranked)
{
	size_t n = 0;
	for (enum wait_reason r = WAIT_SYNC; r < WAIT_NR; r++)
		if (wait_is_idle(r) == is_idle && (l->total.ns[r] || l->total.nr_waits[r]))
			ret_ranked[n++] = (struct ranked){r, l->total.ns[r]};
	qsort(ret_ranked, n, sizeof(*ret_ranked), by_time);
	return n;
}

/*
 * What is stolen has a name if the kernel's account of the hypervisor's part, which is of all CPUs, has
 * at least half of it.
 */
static const char *reason_text(const struct breakdown *l, enum wait_reason reason)
{
	if (reason == WAIT_STOLEN && l->steal_ns >= l->total.ns[WAIT_STOLEN] / 2 && l->steal_ns)
		return "stolen by the hypervisor";
	return wait_text(reason);
}

static void add_reasons(struct report *r, struct report_table *t, const struct breakdown *l,
			bool is_idle)
{
	struct ranked ranked[WAIT_NR];
	size_t n = rank_reasons(l, is_idle, ranked);
	for (size_t i = 0; i < n; i++) {
		enum wait_reason reason = ranked[i].reason;
		add_line(r, t, l,
			 &(struct line){
				 .ns = ranked[i].ns,
				 .nr = l->total.nr_waits[reason],
				 .q = &l->waits[reason],
				 .reason = wait_key(reason),
				 .prefix = is_idle ? "idle" : NULL,
				 .what = reason_text(l, reason),
			 });
	}
}

/*
 * Adds a row for time without events, or a note if the rows exceed total thread time, by more than
 * rounding.
 */
static void add_rest(struct report *r, struct report_table *t, const struct breakdown *l)
{
	uint64_t sum = breakdown_sum_ns(&l->total);
	double off = breakdown_covered_pct(&l->total) - 100;
	if (off < -CLOSES_PCT)
		add_line(r, t, l,
			 &(struct line){.ns = l->total.wall_ns - sum,
					.nr = CELL_NO_COUNT,
					.reason = "-",
					.what = "not accounted for"});
	if (off > CLOSES_PCT)
		report_detail(
			r,
			"the rows add up to %.1f %% of total thread time: some threads started "
			"before their first event or ended after their last one",
			100 + off);
}

/*
 * Findings name reasons of 10 % of non-idle thread time or more, of which the run queue has two rows, and
 * compare them with the time on CPU. The rows are those before the idle waits.
 */
static void keep_named(struct report_table *t, bool has_on_cpu, const struct breakdown *l)
{
	double least_ns = NAMED_PCT / 2 / 100 *
			  (double)(breakdown_sum_ns(&l->total) - breakdown_idle_ns(&l->total));
	for (size_t i = 0; i < t->nr_rows; i++) {
		double ns = (double)t->cells[i * t->nr_columns].u;
		if ((!i && has_on_cpu) || ns >= least_ns)
			t->kept |= 1ull << i;
	}
}

void breakdown_report(struct report *r, const struct breakdown *l)
{
	const struct breakdown_row *total = &l->total;
	const char *title = arena_fmt(&r->arena, "%s (%s)",
				      l->is_of_waits ? "breakdown of the selected waits"
						     : "thread time breakdown",
				      num_noun(total->nr_threads, "threads").s);
	struct report_table *t =
		report_add_table(r, "breakdown", title, columns, ARRAY_LEN(columns));
	t->hide_first = hide_first;
	t->nr_first = 8;
	t->cut = CUT_LEAST; /* by the first column, the time */
	const struct line ran = {.ns = total->ns[WAIT_ON_CPU],
				 .nr = total->nr_runs,
				 .reason = wait_key(WAIT_ON_CPU),
				 .what = "on CPU"};
	const struct line preempted = {.ns = total->preempted_ns,
				       .nr = l->preempted.nr_all,
				       .q = &l->preempted,
				       .reason = wait_key(WAIT_RUN_QUEUE),
				       .what = "preempted"};
	const struct line woken = {.ns = total->woken_ns,
				   .nr = l->woken.nr_all,
				   .q = &l->woken,
				   .reason = wait_key(WAIT_RUN_QUEUE),
				   .what = "wake-up latency"};
	const struct line *first[] = {&ran, &preempted, &woken};
	for (size_t i = 0; i < ARRAY_LEN(first); i++)
		if (first[i]->ns || first[i]->nr)
			add_line(r, t, l, first[i]);
	add_reasons(r, t, l, false);
	keep_named(t, ran.ns || ran.nr, l);
	add_reasons(r, t, l, true);
	add_rest(r, t, l);
	t->has_total = true;
	add_line(r, t, l,
		 &(struct line){.ns = total->wall_ns,
				.nr = CELL_NO_COUNT,
				.reason = "total",
				.what = l->is_of_waits ? "total time of the selected waits"
						       : "total thread time"});
	t->nr_rows_total = t->nr_rows - 1; /* without the total */
}

/* ---- a row a thread ------------------------------------------------------------------------ */

/* Bits of columns; from SHOWN on one bit per reason shown. */
enum {
	OF_THREADS = 1 << 0,
	OF_GROUPS = 1 << 1,
	HAS_OTHER = 1 << 2,
	HAS_COVERED = 1 << 3,
	HAS_ON_CPU = 1 << 4,
	HAS_IDLE = 1 << 5,
	SHOWN = 6
};

static bool closes(const struct breakdown_row *row)
{
	double pct = breakdown_covered_pct(row);
	return pct >= 100 - CLOSES_PCT && pct <= 100 + CLOSES_PCT;
}

/* @shown: the reasons with a column. */
static struct report_table *begin_threads(struct report *r, unsigned bits,
					  const enum wait_reason shown[REASON_COLUMNS])
{
	bool is_grouped = bits & OF_GROUPS;
	struct report_column c[] = {
		{"total_ns", "total", CELL_NS,
		 bits & HAS_ON_CPU ? "total thread time: from its first to its last event"
				   : "of the selected waits"},
		{"on_cpu_ns", "on CPU", CELL_NS, NULL, HAS_ON_CPU},
		{"run_queue_ns", "run queue", CELL_NS, "runnable, waiting for a CPU", OF_GROUPS},
		{"preempted_ns", "preempted", CELL_NS, "preempted, waiting for a CPU", OF_THREADS},
		{"woken_ns", "wake-up", CELL_NS, "wake-up latency: woken, waiting for a CPU",
		 OF_THREADS},
		[REASONS_AT + REASON_COLUMNS] = {"other_waits_ns", "other", CELL_NS,
						 "waits for other reasons", HAS_OTHER},
		{"idle_ns", "idle", CELL_NS, "idle waits: park, poll, sleep ...", HAS_IDLE},
		{"covered_pct", "covered %", CELL_PERCENT,
		 "sum of these columns as a share of total thread time", HAS_COVERED},
		{"voluntary", "times blocked", CELL_COUNT, "voluntary context switches"},
		{"involuntary", "preempts", CELL_COUNT, "involuntary context switches"},
		{"threads", "threads", CELL_COUNT, NULL, OF_GROUPS},
		{"pid", "pid", CELL_ID, NULL, OF_THREADS},
		{"tid", "tid", CELL_ID, NULL, OF_THREADS},
		{"thread", "thread", CELL_TEXT},
	};
	for (unsigned i = 0; i < REASON_COLUMNS; i++)
		c[REASONS_AT + i] =
			(struct report_column){arena_fmt(&r->arena, "%s_ns", wait_key(shown[i])),
					       wait_key(shown[i]), CELL_NS, NULL,
					       1u << (SHOWN + i)};
	return report_add_table_of(r, is_grouped ? "breakdown_groups" : "breakdown_threads",
				   is_grouped ? "thread time by name (digits shown as #)"
					      : "thread time",
				   c, ARRAY_LEN(c), bits);
}

static uint64_t id_or_none(int32_t id)
{
	return id > 0 ? (uint64_t)id : CELL_NO_ID;
}

static void add_thread(struct report *r, struct report_table *t,
		       const enum wait_reason shown[REASON_COLUMNS],
		       const struct breakdown_row *row)
{
	uint64_t rest_ns = breakdown_blocked_ns(row) - row->ns[WAIT_RUN_QUEUE];
	union cell cells[] = {
		{.u = row->wall_ns},
		{.u = row->ns[WAIT_ON_CPU]},
		{.u = row->ns[WAIT_RUN_QUEUE]},
		{.u = row->preempted_ns},
		{.u = row->woken_ns},
		[REASONS_AT + REASON_COLUMNS] = {.u = 0},
		{.u = breakdown_idle_ns(row)},
		{.d = breakdown_covered_pct(row)},
		{.u = row->nr_voluntary},
		{.u = row->nr_involuntary},
		{.u = row->nr_threads},
		{.u = id_or_none(row->pid)},
		{.u = id_or_none(row->tid)},
		{.text = row->name},
	};
	for (size_t i = 0; i < REASON_COLUMNS; i++) {
		cells[REASONS_AT + i].u = row->ns[shown[i]];
		rest_ns -= row->ns[shown[i]];
	}
	cells[REASONS_AT + REASON_COLUMNS].u = rest_ns;
	report_add_row(r, t, cells);
}

/* Threads that differ in numbers alone are one row; a single thread keeps its name. */
static size_t group_rows(struct arena *a, const struct breakdown *l,
			 struct breakdown_row **ret_rows)
{
	CLEANUP(intern_release) struct intern names = {0};
	struct breakdown_row *groups = arena_calloc(a, l->nr_rows + 2, sizeof(*groups));
	for (size_t i = 0; i < l->nr_rows; i++) {
		const struct breakdown_row *row = &l->rows[i];
		struct breakdown_row *g = &groups[intern_add_str(&names, row->group)];
		g->name = g->nr_threads ? row->group : row->name;
		breakdown_add(g, row);
	}
	size_t n = 0;
	for (size_t i = 0; i < intern_count(&names); i++)
		if (groups[i].nr_threads)
			groups[n++] = groups[i];
	qsort(groups, n, sizeof(*groups), breakdown_compare);
	*ret_rows = groups;
	return n;
}

void breakdown_threads_report(struct report *r, const struct breakdown *l, unsigned flags,
			      const struct view_limits *limits)
{
	CLEANUP(arena_release) struct arena a = {0};
	bool is_grouped = flags & BREAKDOWN_GROUPS;
	struct breakdown_row *rows = l->rows;
	size_t nr = is_grouped ? group_rows(&a, l, &rows) : l->nr_rows;
	struct ranked ranked[WAIT_NR];
	enum wait_reason shown[REASON_COLUMNS] = {WAIT_NONE};
	size_t nr_reasons = rank_reasons(l, false, ranked);
	unsigned bits = is_grouped ? OF_GROUPS : OF_THREADS;
	bits |= nr_reasons > REASON_COLUMNS ? HAS_OTHER : 0;
	bits |= l->is_of_waits ? 0 : HAS_ON_CPU;
	bits |= l->is_of_waits && !breakdown_idle_ns(&l->total) ? 0 : HAS_IDLE;
	for (size_t i = 0; i < nr_reasons && i < REASON_COLUMNS; i++) {
		shown[i] = ranked[i].reason;
		bits |= 1u << (SHOWN + i);
	}
	for (size_t i = 0; i < nr; i++)
		bits |= rows[i].wall_ns >= SHORT_NS && !closes(&rows[i]) ? HAS_COVERED : 0;
	struct report_table *t = begin_threads(r, bits, shown);
	struct breakdown_row other = {.name = "<other>"};
	t->hide_first = threads_hide_first;
	for (size_t i = 0; i < nr; i++) {
		if (!limits->max_rows || i < limits->max_rows)
			add_thread(r, t, shown, &rows[i]);
		else
			breakdown_add(&other, &rows[i]);
	}
	t->has_other = other.nr_threads > 0;
	if (other.nr_threads)
		add_thread(r, t, shown, &other);
	t->nr_rows_total = nr;
}
