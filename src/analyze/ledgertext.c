/* The ledger's tables; see ledger.h. */
#include "base/base.h"
#include "analyze/ledger.h"

#include <stdlib.h>

#include "analyze/threads.h"
#include "base/clock.h"
#include "base/mem.h"

#define CLOSES_PCT     0.5 /* coverage within this of 100 % needs no column */
#define REASON_COLUMNS 5
#define SHORT_NS       (100 * NS_PER_MS) /* threads this young close roughly */

static double nan_cell(void)
{
	return (double)__builtin_nan("");
}

/* ---- all threads, a row a reason ---------------------------------------------------------- */

static const struct report_column columns[] = {
	{"time_ns", "time", CELL_NS, "of all threads together"},
	{"wall_pct", "% of wall", CELL_PERCENT, "share of the threads' wall time"},
	{"threads", "threads", CELL_FLOAT, "threads in this state on average"},
	{"count", "times", CELL_COUNT, "runs, or waits that ended in the window"},
	{"mean_ns", "mean", CELL_NS, NULL},
	{"p50_ns", "p50", CELL_NS, "interpolated within a log2 class of durations"},
	{"p99_ns", "p99", CELL_NS, "interpolated within a log2 class of durations"},
	{"longest_ns", "longest", CELL_NS, NULL},
	{"reason", "reason", CELL_TEXT, "as --reason takes it"},
	{"what", "", CELL_TEXT, "in words"},
};

struct line {
	uint64_t ns;
	uint64_t nr;
	const struct quantile *q; /* NULL: no intervals are known */
	const char *reason;
	const char *prefix; /* before the reason's words */
	const char *what;
};

/* Nothing where the key says it all. */
static const char *what_text(struct report *r, const struct line *line)
{
	bool is_same = !strcmp(line->reason, line->what);
	if (!line->prefix)
		return is_same ? "" : line->what;
	return is_same ? line->prefix : arena_fmt(&r->arena, "%s: %s", line->prefix, line->what);
}

static void add_line(struct report *r, struct report_table *t, const struct ledger *l,
		     const struct line *line)
{
	const struct quantile *q = line->q;
	union cell cells[ARRAY_LEN(columns)] = {
		{.u = line->ns},
		{.d = view_pct(line->ns, l->total.wall_ns)},
		{.d = l->window_ns ? (double)line->ns / (double)l->window_ns : nan_cell()},
		{.u = line->nr},
		{.u = q          ? quantile_mean(q)
		      : line->nr ? line->ns / line->nr
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

/* Reasons that occur, run queue and CPU apart, largest first; returns how many. */
static size_t rank_reasons(const struct ledger *l, bool is_idle, struct ranked *ret_ranked)
{
	size_t n = 0;
	for (enum wait_reason r = WAIT_SYNC; r < WAIT_NR; r++)
		if (wait_is_idle(r) == is_idle && (l->total.ns[r] || l->total.nr_waits[r]))
			ret_ranked[n++] = (struct ranked){r, l->total.ns[r]};
	qsort(ret_ranked, n, sizeof(*ret_ranked), by_time);
	return n;
}

static void add_reasons(struct report *r, struct report_table *t, const struct ledger *l,
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
				 .what = wait_text(reason),
			 });
	}
}

/* What lacks to wall time, or is too much: shown as soon as it is not noise. */
static void add_rest(struct report *r, struct report_table *t, const struct ledger *l)
{
	uint64_t sum = ledger_sum_ns(&l->total);
	double off = ledger_covered_pct(&l->total) - 100;
	if (off < -CLOSES_PCT)
		add_line(r, t, l,
			 &(struct line){.ns = l->total.wall_ns - sum,
					.reason = "-",
					.what = "not accounted for"});
	if (off > CLOSES_PCT)
		report_note(
			r,
			"the ledger sums to %.1f %% of wall time: there were threads that began "
			"before their first record or ended after their last one",
			100 + off);
}

void ledger_report(struct report *r, const struct ledger *l)
{
	const struct ledger_row *total = &l->total;
	const char *title = arena_fmt(&r->arena, "where the time of %" PRIu64 " thread%s went",
				      total->nr_threads, total->nr_threads == 1 ? "" : "s");
	struct report_table *t = report_add_table(r, "ledger", title, columns, ARRAY_LEN(columns));
	const struct line ran = {.ns = total->ns[WAIT_ON_CPU],
				 .nr = total->nr_runs,
				 .reason = wait_key(WAIT_ON_CPU),
				 .what = "ran"};
	const struct line preempted = {.ns = total->preempted_ns,
				       .nr = total->nr_involuntary,
				       .q = &l->preempted,
				       .reason = wait_key(WAIT_RUN_QUEUE),
				       .what = "lost the CPU while it could run"};
	const struct line woken = {.ns = total->woken_ns,
				   .nr = l->woken.nr_all,
				   .q = &l->woken,
				   .reason = wait_key(WAIT_RUN_QUEUE),
				   .what = "woken, no CPU yet"};
	const struct line *first[] = {&ran, &preempted, &woken};
	for (size_t i = 0; i < ARRAY_LEN(first); i++)
		if (first[i]->ns || first[i]->nr)
			add_line(r, t, l, first[i]);
	add_reasons(r, t, l, false);
	add_reasons(r, t, l, true);
	add_rest(r, t, l);
	add_line(r, t, l,
		 &(struct line){.ns = total->wall_ns,
				.nr = 0,
				.reason = "wall",
				.what = "time for which threads were watched"});
}

/* ---- a row a thread ------------------------------------------------------------------------ */

#define THREAD_COLUMNS_MAX (REASON_COLUMNS + 14)

struct thread_table {
	struct report_column c[THREAD_COLUMNS_MAX];
	size_t n;
	struct ranked shown[WAIT_NR]; /* reasons with a column of their own */
	size_t nr_shown;
	bool has_other;
	bool has_covered;
	unsigned flags;
};

static void add_column(struct thread_table *tt, const char *key, const char *title,
		       enum cell_kind kind, const char *help)
{
	ASSERT(tt->n < THREAD_COLUMNS_MAX);
	tt->c[tt->n++] = (struct report_column){key, title, kind, help};
}

static bool closes(const struct ledger_row *row)
{
	double pct = ledger_covered_pct(row);
	return pct >= 100 - CLOSES_PCT && pct <= 100 + CLOSES_PCT;
}

static void make_columns(struct report *r, const struct ledger *l, struct thread_table *tt,
			 const struct ledger_row *rows, size_t nr_rows)
{
	size_t nr = rank_reasons(l, false, tt->shown);
	tt->nr_shown = MIN(nr, REASON_COLUMNS);
	tt->has_other = nr > tt->nr_shown;
	for (size_t i = 0; i < nr_rows; i++)
		tt->has_covered |= rows[i].wall_ns >= SHORT_NS && !closes(&rows[i]);
	add_column(tt, "wall_ns", "wall", CELL_NS, "time for which it was watched");
	add_column(tt, "on_cpu_ns", "on CPU", CELL_NS, NULL);
	if (tt->flags & LEDGER_GROUPS) {
		add_column(tt, "run_queue_ns", "run queue", CELL_NS, "could run, had no CPU");
	} else {
		add_column(tt, "preempted_ns", "preempted", CELL_NS, "could run, lost the CPU");
		add_column(tt, "woken_ns", "woken", CELL_NS, "woken, and no CPU yet");
	}
	for (size_t i = 0; i < tt->nr_shown; i++)
		add_column(tt, arena_fmt(&r->arena, "%s_ns", wait_key(tt->shown[i].reason)),
			   wait_key(tt->shown[i].reason), CELL_NS, NULL);
	if (tt->has_other)
		add_column(tt, "other_waits_ns", "other", CELL_NS, "waits for other reasons");
	add_column(tt, "idle_ns", "idle", CELL_NS, "waited for something to do");
	if (tt->has_covered)
		add_column(tt, "covered_pct", "covered %", CELL_PERCENT,
			   "sum of all that, over wall time");
	add_column(tt, "voluntary", "waits", CELL_COUNT, "switches out to wait");
	add_column(tt, "involuntary", "preempts", CELL_COUNT, "switches out while it could run");
	if (tt->flags & LEDGER_GROUPS) {
		add_column(tt, "threads", "threads", CELL_COUNT, NULL);
	} else {
		add_column(tt, "pid", "pid", CELL_ID, NULL);
		add_column(tt, "tid", "tid", CELL_ID, NULL);
	}
	add_column(tt, "thread", "thread", CELL_TEXT, NULL);
}

static uint64_t id_or_none(int32_t id)
{
	return id > 0 ? (uint64_t)id : CELL_NO_ID;
}

static void add_thread(struct report *r, struct report_table *t, const struct thread_table *tt,
		       const struct ledger_row *row)
{
	union cell cells[THREAD_COLUMNS_MAX];
	size_t n = 0;
	uint64_t shown = row->ns[WAIT_RUN_QUEUE];
	cells[n++].u = row->wall_ns;
	cells[n++].u = row->ns[WAIT_ON_CPU];
	if (tt->flags & LEDGER_GROUPS) {
		cells[n++].u = row->ns[WAIT_RUN_QUEUE];
	} else {
		cells[n++].u = row->preempted_ns;
		cells[n++].u = row->woken_ns;
	}
	for (size_t i = 0; i < tt->nr_shown; i++) {
		shown += row->ns[tt->shown[i].reason];
		cells[n++].u = row->ns[tt->shown[i].reason];
	}
	if (tt->has_other)
		cells[n++].u = ledger_blocked_ns(row) - shown;
	cells[n++].u = ledger_idle_ns(row);
	if (tt->has_covered)
		cells[n++].d = ledger_covered_pct(row);
	cells[n++].u = row->nr_voluntary;
	cells[n++].u = row->nr_involuntary;
	if (tt->flags & LEDGER_GROUPS) {
		cells[n++].u = row->nr_threads;
	} else {
		cells[n++].u = id_or_none(row->pid);
		cells[n++].u = id_or_none(row->tid);
	}
	cells[n++].text = row->name;
	ASSERT(n == tt->n);
	report_add_row(r, t, cells);
}

/* One row a name, numbers folded; a single thread keeps its whole name. */
static size_t group_rows(struct arena *a, const struct ledger *l, struct ledger_row **ret_rows)
{
	CLEANUP(intern_release) struct intern names = {0};
	CLEANUP(buf_release) struct buf folded = {0};
	struct ledger_row *groups = arena_calloc(a, l->nr_rows + 2, sizeof(*groups));
	for (size_t i = 0; i < l->nr_rows; i++) {
		const struct ledger_row *row = &l->rows[i];
		threads_fold_numbers(&folded, row->name);
		struct ledger_row *g = &groups[intern_add(&names, folded.p, folded.n)];
		g->name = g->nr_threads ? arena_strdup(a, folded.p) : row->name;
		ledger_add(g, row);
	}
	size_t n = 0;
	for (size_t i = 0; i < intern_count(&names); i++)
		if (groups[i].nr_threads)
			groups[n++] = groups[i];
	qsort(groups, n, sizeof(*groups), ledger_compare);
	*ret_rows = groups;
	return n;
}

void ledger_threads_report(struct report *r, const struct ledger *l, unsigned flags,
			   const struct view_limits *limits)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct thread_table tt = {.flags = flags};
	bool is_grouped = flags & LEDGER_GROUPS;
	struct ledger_row *rows = l->rows;
	size_t nr = is_grouped ? group_rows(&a, l, &rows) : l->nr_rows;
	make_columns(r, l, &tt, rows, nr);
	struct report_table *t =
		report_add_table(r, is_grouped ? "ledger_groups" : "ledger_threads",
				 is_grouped ? "threads, numbers in their names as #" : "threads",
				 tt.c, tt.n);
	struct ledger_row other = {.name = "<other>"};
	for (size_t i = 0; i < nr; i++) {
		if (!limits->max_rows || i < limits->max_rows)
			add_thread(r, t, &tt, &rows[i]);
		else
			ledger_add(&other, &rows[i]);
	}
	if (other.nr_threads)
		add_thread(r, t, &tt, &other);
	t->nr_rows_total = nr;
}
