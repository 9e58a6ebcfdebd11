/* Tables of spans; see spansum.h. */
#include "base/base.h"

#include "analyze/wait/spansum.h"

#include <errno.h>
#include <stdlib.h>

#include "analyze/io/taggroups.h"
#include "analyze/stacks/threads.h"
#include "analyze/wait/frames.h"
#include "analyze/wait/reason.h"
#include "analyze/wait/spanchain.h"
#include "base/clock.h"
#include "base/text/num.h"

/* Less time in the run queue than this is no shortage of CPUs: share of the calls' time, and time. */
#define STARVED_PCT 10.0
#define STARVED_NS  (50 * NS_PER_MS)

/* The answer names the parts of the calls' time until no more than this is left, but no small ones. */
#define PARTS_REST_PCT 15.0
#define PART_MIN_PCT   5.0

struct spansum {
	struct report *r;
	const struct profile *p;
	const struct view_limits *limits;
	struct arena *a;
	double seconds;
	enum select_scope scope;
	struct tag_groups *spans;
	struct reasons *reasons;
	struct waitframes *frames;
	struct slow_span *slow; /* slowest first */
	size_t nr_slow;
	uint64_t no_stack_ns; /* of waits whose stacks were not kept */
	uint64_t all_ns;      /* of the calls whose time is known by reason */
	uint64_t queue_ns;    /* part of it in the run queue */
};

static enum wait_reason reason_of_row(const struct spansum *s, const struct tag_row *row)
{
	return reason_of(s->reasons, row->stack, row->tag);
}

static uint64_t weight_of_time(const struct tag_group *g)
{
	return g->amounts[0].ns;
}

/* ---- how long ----------------------------------------------------------------------------- */

static const struct tag_column span_columns[] = {
	{{"calls", "calls", CELL_COUNT,
	  "calls that returned; nested calls of the same span are not counted"},
	 TAG_NR,
	 0},
	{{"per_s", "per second", CELL_FLOAT, NULL}, TAG_NR_PER_S, 0},
	{{"time_ns", "time", CELL_NS, "elapsed time, sum over threads"}, TAG_NS, 0},
	{{"mean_ns", "mean", CELL_NS, NULL}, TAG_MEAN_NS, 0},
	{{"p50_ns", "p50", CELL_NS, NULL}, TAG_P50_NS, 0},
	{{"p90_ns", "p90", CELL_NS, NULL}, TAG_P90_NS, 0},
	{{"p99_ns", "p99", CELL_NS, NULL}, TAG_P99_NS, 0},
	{{"longest_ns", "longest", CELL_NS, NULL}, TAG_LONGEST_NS, 0},
	{{"span", "span", CELL_TEXT, NULL}, TAG_TEXT, 0},
};

static const struct tag_table spans_table = {
	TAG_TABLE("spans", "latency", span_columns),
	.note = "p50, p90 and p99 are interpolated within power-of-two buckets",
	.weight = weight_of_time};

#define HISTOGRAM_ROWS 8 /* of a page; with fewer a distribution is not seen */

static const struct report_column histogram_columns[] = {
	{"span", "span", CELL_TEXT, NULL}, {"from_ns", "from", CELL_NS, NULL},
	{"to_ns", "below", CELL_NS, NULL}, {"calls", "calls", CELL_COUNT, NULL},
	{"pct", "%", CELL_PERCENT, NULL},  {"cumulated_pct", "cumulative %", CELL_PERCENT, NULL},
};

static void add_histogram(struct spansum *s)
{
	struct report_table *t = report_add_table(s->r, "span_histogram", "latency histogram",
						  histogram_columns, ARRAY_LEN(histogram_columns));
	vec_foreach(g, &s->spans->groups) {
		const struct quantile *q = &g->amounts->q;
		uint64_t sum = 0;
		for (unsigned k = 0; k < QUANTILE_BUCKETS - 1; k++) {
			if (!q->nr[k])
				continue;
			sum += q->nr[k];
			union cell cells[] = {
				{.text = g->texts[0]},
				{.u = 1ull << k},
				{.u = 2ull << k},
				{.u = q->nr[k]},
				{.d = view_pct(q->nr[k], q->nr_all)},
				{.d = view_pct(sum, q->nr_all)},
			};
			report_add_row(s->r, t, cells);
		}
	}
	t->nr_rows_total = t->nr_rows;
	t->nr_first = HISTOGRAM_ROWS;
	t->cut = CUT_EVERY; /* the tail is what the table is looked at for */
	t->cut_by = 3;      /* calls */
}

static int collect_spans(struct spansum *s, const struct select_spec *spec, struct err *err)
{
	struct tag_rows rows;
	struct tag_row row;
	int rc = tag_rows_open(&rows, s->a, s->p, TABLE_SPANS, spec, err);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	while (tag_rows_next(&rows, &row)) {
		const char *name = profile_text(s->p, row.tag->object);
		amount_add(tag_groups_at(s->spans, &name, 1)->amounts, &row);
	}
	return 0;
}

/* ---- where the time goes ------------------------------------------------------------------ */

static const struct report_column breakdown_columns[] = {
	{"span", "span", CELL_TEXT, NULL},
	{"reason", "reason", CELL_TEXT, NULL},
	{"time_ns", "time", CELL_NS, NULL},
	{"pct", "%", CELL_PERCENT, "of the span's elapsed time"},
	{"per_call_ns", "per call", CELL_NS, NULL},
	{"what", "meaning", CELL_TEXT, "the reason in words"},
};

static const char *reason_key(enum wait_reason r)
{
	return r == WAIT_ON_CPU ? "on_cpu" : wait_key(r);
}

static void add_breakdown_row(struct spansum *s, struct report_table *t, const struct tag_group *g,
			      const struct tag_group *span, const char *what)
{
	const struct amount *whole = span->amounts;
	union cell cells[] = {
		{.text = g->texts[0]},
		{.text = g->texts[1]},
		{.u = g->amounts->ns},
		{.d = view_pct(g->amounts->ns, whole->ns)},
		{.u = whole->nr ? g->amounts->ns / whole->nr : 0},
		{.text = what},
	};
	report_add_row(s->r, t, cells);
}

/* Collects the times of the calls: by span and reason, and the waits also by stack. */
static int collect_time(struct spansum *s, const struct select_spec *spec,
			struct tag_groups *reasons, struct tag_groups *stacks, struct err *err)
{
	struct tag_rows rows;
	struct tag_row row;
	CLEANUP(buf_release) struct buf stack = {0};
	int rc = tag_rows_open(&rows, s->a, s->p, TABLE_SPAN_TIME, spec, err);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	while (tag_rows_next(&rows, &row)) {
		enum wait_reason reason = reason_of_row(s, &row);
		const char *texts[] = {profile_text(s->p, row.tag->object), reason_key(reason),
				       wait_text(reason)};
		amount_add(tag_groups_at(reasons, texts, 3)->amounts, &row);
		s->all_ns += row.ns;
		s->queue_ns += reason == WAIT_RUN_QUEUE ? row.ns : 0;
		if (reason == WAIT_ON_CPU)
			continue;
		if (!row.nr) {
			s->no_stack_ns += row.ns;
			continue;
		}
		buf_clear(&stack);
		waitframes_add_user_first(&stack, s->p, row.stack);
		texts[2] = buf_str(&stack);
		struct amount *a = tag_groups_at(stacks, texts, 3)->amounts;
		amount_add(a, &row);
		a->q.longest_ns = MAX(a->q.longest_ns, row.longest_ns);
	}
	return 0;
}

static void add_breakdown(struct spansum *s, struct tag_groups *groups)
{
	if (!groups->groups.n)
		return;
	tag_groups_sort(groups, weight_of_time);
	struct report_table *t =
		report_add_table(s->r, "span_breakdown", "time breakdown of the calls",
				 breakdown_columns, ARRAY_LEN(breakdown_columns));
	vec_foreach(span, &s->spans->groups)
		vec_foreach(g, &groups->groups)
			if (!strcmp(span->texts[0], g->texts[0]))
				add_breakdown_row(s, t, g, span, g->texts[2]);
	t->nr_rows_total = t->nr_rows;
}

/* ---- waits within them -------------------------------------------------------------------- */

static const struct tag_column wait_columns[] = {
	{{"time_ns", "time", CELL_NS, "time off the CPU within the calls"}, TAG_NS, 0},
	{{"calls", "calls", CELL_COUNT, "calls of the span"}, TAG_NR, 0},
	{{"mean_ns", "per call", CELL_NS, "of all calls, as in the breakdown"}, TAG_MEAN_NS, 0},
	{{"longest_ns", "longest", CELL_NS, "in one call"}, TAG_LONGEST_NS, 0},
	{{"span", "span", CELL_TEXT, NULL}, TAG_TEXT, 0},
	{{"reason", "reason", CELL_TEXT, NULL}, TAG_TEXT, 1},
	{{"stack", "stack, innermost first", CELL_TEXT, "user frames", .is_list = true},
	 TAG_TEXT,
	 2},
};

static const struct tag_table waits_table = {
	TAG_TABLE("span_waits", "waits within the calls", wait_columns), .weight = weight_of_time};

/*
 * Rows count calls by place, and a call can wait at several places that have one text: their sum can
 * be above the number of calls. The time is per call of the span.
 */
static void count_calls(const struct spansum *s, struct tag_groups *stacks)
{
	vec_foreach(g, &stacks->groups)
		vec_foreach(span, &s->spans->groups)
			if (!strcmp(span->texts[0], g->texts[0]))
				g->amounts->nr = span->amounts->nr;
}

/* ---- the slowest -------------------------------------------------------------------------- */

enum { HAS_TIMES = 1 }; /* the recording knows what the time of calls went to */

static const struct report_column slow_columns[] = {
	{"time_ns", "time", CELL_NS, NULL},
	{"span", "span", CELL_TEXT, NULL},
	{"at_s", "start (s)", CELL_FLOAT, "seconds since the start of the capture"},
	{"thread", "thread", CELL_TEXT, NULL},
	{"tid", "tid", CELL_ID, NULL},
	{"breakdown", "time breakdown", CELL_TEXT, .when = HAS_TIMES, .is_list = true},
	{"longest_wait_ns", "longest wait", CELL_NS,
	 "longest time off the CPU without a break, the run queue included", HAS_TIMES},
	{"woken_by", "woken by", CELL_TEXT, "what ended that wait: thread and its function",
	 HAS_TIMES},
	{"stack", "stack of that wait", CELL_TEXT, "innermost user frame first", .when = HAS_TIMES,
	 .is_list = true},
};
static const char *const slow_hide_first[] = {"tid", "thread", "woken_by", "at_s", NULL};

struct slow_span {
	uint64_t start_ns;
	task_id task;
	const char *name;
	uint64_t ns;
	uint64_t by_reason_ns[WAIT_NR];
	uint64_t longest_ns;
	uint64_t longest_blocked_ns; /* of that; the rest was in the run queue */
	stack_id longest_stack;
	enum wait_reason longest_reason;
	const struct tag *longest_tag; /* NULL: none */
};

static int by_time_and_task(const void *a, const void *b)
{
	const struct slow_span *x = a;
	const struct slow_span *y = b;
	return COMPARE(y->ns, x->ns);
}

static void add_breakdown_text(struct buf *to, const struct slow_span *w)
{
	bool used[WAIT_NR] = {false};
	for (int n = 0; n < 4; n++) {
		int best = -1;
		for (int i = 0; i < WAIT_NR; i++)
			if (!used[i] && w->by_reason_ns[i] &&
			    (best < 0 || w->by_reason_ns[i] > w->by_reason_ns[best]))
				best = i;
		if (best < 0)
			break;
		used[best] = true;
		buf_addf(to, "%s%s %s", n ? ", " : "", reason_key((enum wait_reason)best),
			 num_ns(w->by_reason_ns[best]).s);
	}
}

/* "lock 3.0 ms, run_queue 1.2 ms: pthread_mutex_lock < ..." */
static void add_longest_text(struct buf *to, const struct spansum *s, const struct slow_span *w)
{
	uint64_t queue_ns = w->longest_ns - MIN(w->longest_blocked_ns, w->longest_ns);
	buf_add_str(to, reason_key(w->longest_reason));
	if (queue_ns)
		buf_addf(to, " %s, %s %s", num_ns(w->longest_blocked_ns).s,
			 reason_key(WAIT_RUN_QUEUE), num_ns(queue_ns).s);
	buf_add_str(to, ": ");
	waitframes_add_user_first(to, s->p, w->longest_stack);
}

static void add_waker_text(struct buf *to, const struct spansum *s, const struct tag *tag)
{
	if (tag->other) {
		const struct task *by = &s->p->tasks.p[tag->other];
		buf_addf(to, "%s %d", profile_text(s->p, by->comm), (int)by->tid);
	} else {
		buf_add_str(to, wait_ended_by(tag));
	}
	if (tag->other_stack) {
		struct waitframe f = waitframe_of(s->frames, tag->other_stack);
		buf_addf(to, " in %s", waitframe_name(s->p, &f));
	}
}

static void add_slow_row(struct spansum *s, struct report_table *t, const struct slow_span *w)
{
	CLEANUP(buf_release) struct buf breakdown = {0};
	CLEANUP(buf_release) struct buf waker = {0};
	CLEANUP(buf_release) struct buf stack = {0};
	const struct task *task = &s->p->tasks.p[w->task];
	add_breakdown_text(&breakdown, w);
	if (w->longest_tag) {
		add_longest_text(&stack, s, w);
		if (w->longest_reason != WAIT_RUN_QUEUE)
			add_waker_text(&waker, s, w->longest_tag);
	}
	double at_s =
		w->start_ns > s->p->start_ns ? (double)(w->start_ns - s->p->start_ns) / 1e9 : 0;
	union cell cells[] = {
		{.u = w->ns},
		{.text = w->name},
		{.d = at_s},
		{.text = profile_text(s->p, task->comm)},
		{.u = task->tid > 0 ? (uint64_t)task->tid : CELL_NO_ID},
		{.text = buf_str(&breakdown)},
		{.u = w->longest_ns},
		{.text = buf_str(&waker)},
		{.text = buf_str(&stack)},
	};
	report_add_row(s->r, t, cells);
}

typedef VEC(struct slow_span) slow_list;

static struct slow_span *slow_at(slow_list *list, const struct tag_rows *rows,
				 const struct tag_row *row)
{
	uint64_t start_ns = rows->t->time_ns[row->i];
	vec_foreach(w, list)
		if (w->start_ns == start_ns && w->task == row->task)
			return w;
	vec_push(list, (struct slow_span){.start_ns = start_ns,
					  .task = row->task,
					  .name = profile_text(rows->p, row->tag->object)});
	return vec_last(list);
}

static void add_chains(struct spansum *s, const struct slow_span *list, size_t n)
{
	struct spanchain chain = {.r = s->r,
				  .p = s->p,
				  .reasons = s->reasons,
				  .frames = s->frames,
				  .max_rows = s->limits->max_rows};
	spanchain_begin(&chain, s->a);
	for (size_t i = 0; i < n; i++)
		spanchain_add(&chain, &(struct spanchain_call){list[i].name, list[i].task,
							       list[i].start_ns, list[i].ns});
}

static int add_slowest(struct spansum *s, const struct select_spec *spec, bool has_times,
		       struct err *err)
{
	struct tag_rows rows;
	struct tag_row row;
	int rc = tag_rows_open(&rows, s->a, s->p, TABLE_SLOWEST_SPANS, spec, err);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	slow_list list = {0};
	while (tag_rows_next(&rows, &row)) {
		struct slow_span *w = slow_at(&list, &rows, &row);
		enum wait_reason reason = reason_of_row(s, &row);
		if (row.nr) {
			w->ns = row.ns;
		} else if (row.detail[0]) {
			w->longest_ns = row.ns;
			w->longest_blocked_ns = row.longest_ns;
			w->longest_stack = row.stack;
			w->longest_reason = reason;
			w->longest_tag = row.tag;
		} else {
			w->by_reason_ns[reason] += row.ns;
		}
	}
	if (list.n) {
		qsort(list.p, list.n, sizeof(*list.p), by_time_and_task);
		s->slow = arena_dup(s->a, list.p, list.n * sizeof(*list.p));
		s->nr_slow = list.n;
	}
	struct report_table *t =
		report_add_table_of(s->r, "span_slowest", "slowest calls", slow_columns,
				    ARRAY_LEN(slow_columns), has_times ? HAS_TIMES : 0);
	t->hide_first = slow_hide_first;
	t->text_min = 40; /* of stacks, less says nothing */
	for (size_t i = 0; i < list.n && i < 10; i++)
		add_slow_row(s, t, &list.p[i]);
	t->nr_rows_total = list.n;
	if (has_times)
		add_chains(s, list.p, list.n);
	vec_release(&list);
	return 0;
}

/* ---- all ---------------------------------------------------------------------------------- */

/* How many of the calls that began during the capture are in the tables, and where the others are. */
static void add_coverage(struct spansum *s)
{
	const uint64_t *lost = s->p->losses.nr;
	const struct table *t = tables_find_rows(s->p, TABLE_SPANS);
	/* of an incomplete recording it is not known how many began */
	if (!t || !losses_has_samples(&s->p->losses) || s->p->is_incomplete)
		return;
	uint64_t nr = 0;
	for (size_t i = 0; i < t->n; i++)
		nr += (uint64_t)MAX(t->values[i * t->nr_columns], (int64_t)0);
	uint64_t nr_all = nr + lost[LOSS_SPANS_UNFINISHED] + lost[LOSS_SPANS_NO_ROW];
	CLEANUP(buf_release) struct buf text = {0};
	buf_addf(&text, "%s of %s that began during the capture%s", num_count(nr).s,
		 num_noun(nr_all, "calls").s,
		 s->scope == SELECT_ALL ? "" : " (of the whole recording)");
	/* entries before were not seen: how many is not known, but which calls cannot be in the tables is */
	if (!profile_get_fact(s->p, FACT_COMMAND))
		buf_add_str(&text, "; none that began before, so none longer than the capture");
	if (lost[LOSS_SPANS_INSIDE])
		buf_addf(&text, "; %s more, made inside of a measured call, are part of its time",
			 num_count(lost[LOSS_SPANS_INSIDE]).s);
	report_fact_text(s->r, "measured", buf_str(&text));
}

static void add_notes(struct spansum *s, const char *input)
{
	vec_foreach(g, &s->spans->groups) {
		if (!strstr(g->texts[0], "{{closure}}") && !strstr(g->texts[0], "::poll"))
			continue;
		report_note(
			s->r,
			"'%s' looks like an async function: each call is one poll of the future "
			"on one thread, not the whole operation",
			g->texts[0]);
		break;
	}
	double queue_pct = view_pct(s->queue_ns, s->all_ns);
	if (queue_pct >= STARVED_PCT && s->queue_ns >= STARVED_NS)
		report_finding(
			s->r,
			"CPU shortage: %s %% of the time of the calls was spent runnable in the "
			"run queue",
			num_double(queue_pct, 0).s);
	uint64_t nr_inside = s->p->losses.nr[LOSS_SPANS_INSIDE];
	if (nr_inside)
		report_note(
			s->r,
			"%s were made inside of a measured call of another span: they "
			"are part of its time and not in the row of their own span, whose numbers "
			"are of its other calls; measure such a function alone",
			num_noun(nr_inside, "calls").s);
	if (s->no_stack_ns)
		report_note(s->r, "stacks are not known for %s of the waits within the calls",
			    num_ns(s->no_stack_ns).s);
	if (input)
		report_hint(s->r,
			    &(struct report_hint){
				    HINT_FLAME, input, {{HINT_EVENT, table_key(TABLE_SPAN_TIME)}}});
}

static const struct report_table *table_of(const struct report *r, const char *key)
{
	vec_foreach(t, &r->tables)
		if (!strcmp(t->key, key))
			return t;
	return NULL;
}

static const union cell *cell_of(const struct report_table *t, size_t row, const char *key)
{
	size_t c = 0;
	while (c + 1 < t->nr_columns && strcmp(t->columns[c].key, key) != 0)
		c++;
	return &t->cells[row * t->nr_columns + c];
}

/* "; 61 % of the time: sleep, 30 %: on CPU": what most of a span's time is. */
static const char *largest_parts(const struct spansum *s, const char *span)
{
	const struct report_table *t = table_of(s->r, "span_breakdown");
	CLEANUP(buf_release) struct buf text = {0};
	double left_pct = 100;
	/* the rows of a span are sorted by time */
	for (size_t i = 0; t && i < t->nr_rows && left_pct > PARTS_REST_PCT; i++) {
		double pct = cell_of(t, i, "pct")->d;
		if (strcmp(cell_of(t, i, "span")->text, span) != 0)
			continue;
		if (pct < PART_MIN_PCT)
			break;
		left_pct -= pct;
		buf_addf(&text, "%s%s %%%s %s", text.n ? ", " : "; ", num_double(pct, 0).s,
			 text.n ? ":" : " of the time:", cell_of(t, i, "what")->text);
	}
	return arena_strdup(&s->r->arena, buf_str(&text));
}

/* " (run_queue 51.6 ms, sleep 20.1 ms)": the longest call; pages have few rows of slow ones, and cut them. */
static const char *longest_parts(const struct spansum *s, const char *span, uint64_t longest_ns)
{
	CLEANUP(buf_release) struct buf parts = {0};
	for (size_t i = 0; i < s->nr_slow && !parts.n; i++)
		if (s->slow[i].ns == longest_ns && !strcmp(s->slow[i].name, span))
			add_breakdown_text(&parts, &s->slow[i]);
	return parts.n ? arena_fmt(&s->r->arena, " (%s)", buf_str(&parts)) : "";
}

/* The spans with most time, and what it is. */
static void add_answer(struct spansum *s)
{
	const struct report_table *t = table_of(s->r, "spans");
	for (size_t i = 0; t && i < MIN(t->nr_rows, (size_t)2); i++) {
		const char *span = cell_of(t, i, "span")->text;
		uint64_t nr = cell_of(t, i, "calls")->u;
		uint64_t longest_ns = cell_of(t, i, "longest_ns")->u;
		if (nr == 1) {
			report_finding(s->r, "%s: 1 call, of %s%s", view_name(s->r, span),
				       num_ns(longest_ns).s, largest_parts(s, span));
			continue;
		}
		report_finding(
			s->r,
			"%s: %s calls, half of them within %s, 99 %% within %s, longest %s%s%s",
			view_name(s->r, span), num_count(nr).s,
			num_ns(cell_of(t, i, "p50_ns")->u).s, num_ns(cell_of(t, i, "p99_ns")->u).s,
			num_ns(longest_ns).s, longest_parts(s, span, longest_ns),
			largest_parts(s, span));
	}
}

int spansum_report(struct report *r, const struct profile *p, const struct select_spec *spec,
		   const char *input, const struct view_limits *limits, struct err *err)
{
	CLEANUP(arena_release) struct arena scratch = {0};
	struct select_spec own = *spec;
	struct selection sel;
	own.event = table_key(TABLE_SPANS);
	TRY(select_run(&scratch, p, &own, &sel, err));
	CLEANUP(tag_groups_release) struct tag_groups spans = {.arena = &scratch};
	struct spansum s = {
		.r = r,
		.p = p,
		.limits = limits,
		.a = &scratch,
		.seconds = (double)view_duration_ns(&sel) / 1e9,
		.scope = select_scope(spec),
		.spans = &spans,
		.reasons = reasons_new(&scratch, p),
		.frames = waitframes_new(&scratch, p),
	};
	CLEANUP(tag_groups_release) struct tag_groups reasons = {.arena = &scratch};
	CLEANUP(tag_groups_release) struct tag_groups stacks = {.arena = &scratch};
	view_begin(r, &sel, "latency of calls and spans");
	TRY(collect_spans(&s, &own, err));
	tag_report(&spans, r, &spans_table, 0, s.seconds);
	add_coverage(&s);
	TRY(collect_time(&s, &own, &reasons, &stacks, err));
	add_breakdown(&s, &reasons);
	TRY(add_slowest(&s, &own, reasons.groups.n > 0, err));
	count_calls(&s, &stacks);
	if (stacks.groups.n)
		tag_report(&stacks, r, &waits_table, limits->max_rows, s.seconds);
	add_histogram(&s);
	add_answer(&s);
	add_notes(&s, input);
	return 0;
}
