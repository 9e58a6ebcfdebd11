/* The list of single intervals off the CPU; see waitlist.h. */
#include "base/base.h"
#include "analyze/wait/waitlist.h"

#include <errno.h>

#include "analyze/select/tags.h"
#include "analyze/wait/frames.h"
#include "analyze/wait/reason.h"

static const struct report_column columns[] = {
	{"at_ns", "at (ns)", CELL_ID, "when it was switched out, since the start of the capture"},
	{"thread", "thread", CELL_TEXT, NULL},
	{"tid", "tid", CELL_ID, NULL},
	{"reason", "reason", CELL_TEXT, NULL},
	{"blocked_ns", "blocked", CELL_NS, "until it was woken; 0: it was preempted or yielded"},
	{"queue_ns", "run queue", CELL_NS, "runnable, until it was switched in"},
	{"cpu_before_ns", "CPU before", CELL_NS, "CPU time of the run before"},
	{"object", "object", CELL_TEXT, "lock, file or socket"},
	{"woken_by", "woken by", CELL_TEXT, "thread and its id, or what else ended the wait"},
	{"function", "waits in", CELL_TEXT, "the program's innermost function"},
	{"waker_function", "waker in", CELL_TEXT, "the same of the thread that woke it"},
};

/* The durations stay on a narrow line. */
static const char *const hide_first[] = {
	"cpu_before_ns", "waker_function", "object", "woken_by", "tid", NULL};

struct list {
	struct report *r;
	struct report_table *out;
	const struct profile *p;
	const struct table *t;
	struct reasons *reasons;
	struct waitframes *frames;
};

static const char *function_of(const struct list *l, stack_id stack)
{
	struct waitframe f = waitframe_of(l->frames, stack);
	return waitframe_name(l->p, &f);
}

static const char *waker_of(const struct list *l, const struct tag *tag, bool has_blocked)
{
	const struct task *by = &l->p->tasks.p[tag->other];
	if (tag->other)
		return arena_fmt(&l->r->arena, "%s %d", profile_text(l->p, by->comm), by->tid);
	return has_blocked ? wait_ended_by(tag) : "";
}

static void add(struct list *l, size_t i)
{
	const struct table *t = l->t;
	const struct tag *tag = &l->p->tags.p[t->tag[i]];
	const struct task *task = &l->p->tasks.p[t->task[i]];
	const int64_t *v = &t->values[i * t->nr_columns];
	uint64_t ns = (uint64_t)MAX(v[INTERVAL_NS], 0);
	uint64_t queue_ns = MIN((uint64_t)MAX(v[INTERVAL_QUEUE_NS], 0), ns);
	union cell cells[] = {
		{.u = t->time_ns[i] - MIN(l->p->start_ns, t->time_ns[i])},
		{.text = profile_text(l->p, task->comm)},
		{.u = task->tid > 0 ? (uint64_t)task->tid : CELL_NO_ID},
		{.text = wait_key(reason_of(l->reasons, t->stack[i], tag))},
		{.u = ns - queue_ns},
		{.u = queue_ns},
		{.u = (uint64_t)MAX(v[INTERVAL_CPU_NS], 0)},
		{.text = profile_text(l->p, tag->object)},
		{.text = waker_of(l, tag, ns > queue_ns)},
		{.text = function_of(l, t->stack[i])},
		{.text = tag->other_stack ? function_of(l, tag->other_stack) : ""},
	};
	report_add_row(l->r, l->out, cells);
}

static int check(const struct table *t, struct err *err)
{
	if (!t || t->nr_columns < INTERVAL_COLUMNS) {
		err_set(err, -ENODATA, "the recording has no single waits");
		return err_hint(err, "assay offcpu, cpu --offcpu and latency keep them, with BPF "
				     "programs and stacks");
	}
	return 0;
}

/* Whether the time off the CPU, in the run queue included, is within the limits. */
static bool is_within(const struct table *t, size_t i, uint64_t min_ns, uint64_t max_ns)
{
	uint64_t ns = (uint64_t)MAX(t->values[i * t->nr_columns + INTERVAL_NS], 0);
	return ns >= min_ns && ns <= max_ns;
}

int waitlist_report(struct report *r, const struct profile *p, const struct select_spec *spec,
		    struct err *err)
{
	CLEANUP(arena_release) struct arena scratch = {0};
	const struct table *t = tables_find_rows(p, TABLE_INTERVALS);
	struct row_filter *filter;
	TRY(check(t, err));
	struct select_spec rows = *spec; /* durations are exact here, in tables powers of two */
	rows.min_duration = rows.max_duration = NULL;
	uint64_t min_ns;
	uint64_t max_ns;
	TRY(selecttags_durations(spec, &min_ns, &max_ns, err));
	TRY(select_compile(&scratch, p, (uint32_t)(t - p->tables.p), &rows, &filter, err));
	struct list l = {.r = r,
			 .p = p,
			 .t = t,
			 .reasons = reasons_new(&scratch, p),
			 .frames = waitframes_new(&scratch, p)};
	r->title = "single waits";
	r->noun = "waits";
	r->losses = p->losses;
	l.out = report_add_table(r, "intervals", "single waits", columns, ARRAY_LEN(columns));
	l.out->hide_first = hide_first;
	for (size_t i = 0; i < t->n; i++)
		if (select_has(filter, i) && is_within(t, i, min_ns, max_ns))
			add(&l, i);
	l.out->nr_rows_total = l.out->nr_rows;
	r->nr_samples = l.out->nr_rows;
	const char *kept = profile_get_fact(p, FACT_INTERVALS);
	if (kept)
		report_note(r, "kept: %s", kept);
	return 0;
}
