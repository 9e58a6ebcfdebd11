/* Tables of spans; see spansum.h. */
#include "base/base.h"

#include "analyze/wait/spansum.h"

#include <errno.h>
#include <stdlib.h>

#include "analyze/io/taggroups.h"
#include "analyze/wait/frames.h"
#include "analyze/wait/waittables.h"
#include "base/text/num.h"

struct spansum {
	struct report *r;
	const struct profile *p;
	const struct view_limits *limits;
	struct arena *a;
	double seconds;
	struct tag_groups *spans;
};

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

static int add_breakdown(struct spansum *s, const struct select_spec *spec, struct err *err)
{
	struct tag_rows rows;
	struct tag_row row;
	struct select_spec own = *spec;
	int rc = tag_rows_open(&rows, s->a, s->p, TABLE_SPAN_TIME, &own, err);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	CLEANUP(tag_groups_release) struct tag_groups groups = {.arena = s->a};
	while (tag_rows_next(&rows, &row)) {
		enum wait_reason reason = (enum wait_reason)row.tag->reason;
		const char *texts[] = {profile_text(s->p, row.tag->object), reason_key(reason),
				       wait_text(reason)};
		amount_add(tag_groups_at(&groups, texts, 3)->amounts, &row);
	}
	tag_groups_sort(&groups, weight_of_time);
	struct report_table *t =
		report_add_table(s->r, "span_breakdown", "time breakdown of the calls",
				 breakdown_columns, ARRAY_LEN(breakdown_columns));
	vec_foreach(span, &s->spans->groups)
		vec_foreach(g, &groups.groups)
			if (!strcmp(span->texts[0], g->texts[0]))
				add_breakdown_row(s, t, g, span, g->texts[2]);
	t->nr_rows_total = t->nr_rows;
	return 0;
}

/* ---- the slowest -------------------------------------------------------------------------- */

static const struct report_column slow_columns[] = {
	{"time_ns", "time", CELL_NS, NULL},
	{"span", "span", CELL_TEXT, NULL},
	{"at_s", "start (s)", CELL_FLOAT, "seconds since the start of the capture"},
	{"thread", "thread", CELL_TEXT, NULL},
	{"tid", "tid", CELL_ID, NULL},
	{"breakdown", "time breakdown", CELL_TEXT, NULL},
	{"longest_wait_ns", "longest wait", CELL_NS, NULL},
	{"stack", "stack of the longest wait, innermost first", CELL_TEXT, NULL},
};

struct slow_span {
	uint64_t start_ns;
	task_id task;
	const char *name;
	uint64_t ns;
	uint64_t by_reason_ns[WAIT_NR];
	uint64_t longest_ns;
	stack_id longest_stack;
	enum wait_reason longest_reason;
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

static void add_slow_row(struct spansum *s, struct report_table *t, const struct slow_span *w)
{
	CLEANUP(buf_release) struct buf breakdown = {0};
	CLEANUP(buf_release) struct buf stack = {0};
	const struct task *task = &s->p->tasks.p[w->task];
	add_breakdown_text(&breakdown, w);
	if (w->longest_ns) {
		buf_addf(&stack, "%s: ", reason_key(w->longest_reason));
		waitframes_add_stack(&stack, s->p, w->longest_stack);
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

static int add_slowest(struct spansum *s, const struct select_spec *spec, struct err *err)
{
	struct tag_rows rows;
	struct tag_row row;
	int rc = tag_rows_open(&rows, s->a, s->p, TABLE_SLOWEST_SPANS, spec, err);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	slow_list list = {0};
	while (tag_rows_next(&rows, &row)) {
		struct slow_span *w = slow_at(&list, &rows, &row);
		enum wait_reason reason = (enum wait_reason)MIN(row.tag->reason, WAIT_NR - 1);
		if (row.nr) {
			w->ns = row.ns;
		} else if (row.detail[0]) {
			w->longest_ns = row.ns;
			w->longest_stack = row.stack;
			w->longest_reason = reason;
		} else {
			w->by_reason_ns[reason] += row.ns;
		}
	}
	if (list.n)
		qsort(list.p, list.n, sizeof(*list.p), by_time_and_task);
	struct report_table *t = report_add_table(s->r, "span_slowest", "slowest calls",
						  slow_columns, ARRAY_LEN(slow_columns));
	for (size_t i = 0; i < list.n && i < 10; i++)
		add_slow_row(s, t, &list.p[i]);
	t->nr_rows_total = list.n;
	vec_release(&list);
	return 0;
}

/* ---- waits within them -------------------------------------------------------------------- */

static void add_escaped(struct buf *to, const char *name)
{
	for (const char *c = name; *c; c++) {
		if (strchr("\\^$.|?*+()[]{}", *c))
			buf_add_ch(to, '\\');
		buf_add_ch(to, *c);
	}
}

/* Selected by the frames of stacks, so waits in calls that have not returned are included. */
static int add_waits_within(struct spansum *s, const struct select_spec *spec, struct err *err)
{
	if (!tables_has_rows(s->p, TABLE_OFF_CPU) || !s->spans->groups.n)
		return 0;
	CLEANUP(buf_release) struct buf regex = {0};
	vec_foreach(g, &s->spans->groups) {
		buf_add_str(&regex, regex.n ? "|^" : "^");
		add_escaped(&regex, g->texts[0]);
	}
	struct select_spec own = *spec;
	struct selection sel;
	own.event = table_key(TABLE_OFF_CPU);
	own.within = buf_str(&regex);
	int rc = select_run(s->a, s->p, &own, &sel, err);
	if (rc == -ENOENT)
		return 0;
	if (!rc && sel.nr_rows)
		waits_table(s->r, &sel, WAITS_STACKS, s->limits);
	return rc;
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
	if (input)
		report_hint(s->r,
			    &(struct report_hint){
				    HINT_FLAME, input, {{HINT_EVENT, table_key(TABLE_SPAN_TIME)}}});
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
		.spans = &spans,
	};
	view_begin(r, &sel, "latency of calls and spans");
	TRY(collect_spans(&s, &own, err));
	tag_report(&spans, r, &spans_table, 0, s.seconds);
	TRY(add_breakdown(&s, &own, err));
	TRY(add_slowest(&s, &own, err));
	add_histogram(&s);
	TRY(add_waits_within(&s, &own, err));
	add_notes(&s, input);
	return 0;
}
