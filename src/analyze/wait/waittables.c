/* Tables of waits; see waittables.h. The first page is in page.c. */
#include "base/base.h"
#include "analyze/wait/waittables.h"

#include "analyze/stacks/threads.h"
#include "analyze/wait/frames.h"
#include "analyze/wait/waitgroups.h"
#include "base/buf.h"

#define QUANTILE_NOTE "p50 and p99 are interpolated within power-of-two buckets"

int waits_reasons_shown(const struct profile *p, const struct select_spec *spec, uint32_t *ret_bits,
			struct err *err)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct select_spec own = *spec;
	struct selection sel;
	own.event = table_key(TABLE_OFF_CPU);
	int rc = select_run(&a, p, &own, &sel, err);
	for (size_t i = 0; !rc && i < sel.nr_rows; i++)
		if (sel.rows[i].weight)
			*ret_bits |= 1u << sel.rows[i].synth_leaf;
	return rc;
}

struct maker {
	const struct selection *sel;
	struct waitframes *frames;
	struct buf text; /* scratch */
};

/* ---- what rows go by ----------------------------------------------------------------------- */

/* Sets the texts of a row after its reason key. Returns false to skip the row. */
typedef bool texts_fn(struct maker *m, const struct select_tagged *row, const char **ret_texts);

static bool texts_of_reason(struct maker *m, const struct select_tagged *row,
			    const char **ret_texts)
{
	(void)m;
	ret_texts[0] = wait_text(row->reason);
	return true;
}

static bool texts_of_function(struct maker *m, const struct select_tagged *row,
			      const char **ret_texts)
{
	const struct profile *p = m->sel->p;
	struct waitframe f = waitframe_of(m->frames, row->stack);
	ret_texts[0] = waitframe_name(p, &f);
	ret_texts[1] = profile_text(p, f.via);
	ret_texts[2] = f.module ? profile_module_name(p, f.module) : "";
	return true;
}

/* A runnable thread waits for nothing; time that was taken from a running one is no wait either. */
static bool is_blocked(const struct select_tagged *row)
{
	return row->reason != WAIT_RUN_QUEUE && row->reason != WAIT_STOLEN;
}

static bool texts_of_blocked(struct maker *m, const struct select_tagged *row,
			     const char **ret_texts)
{
	return is_blocked(row) && texts_of_function(m, row, ret_texts);
}

/* Without the reason, which is the same for all. */
static bool texts_of_runnable(struct maker *m, const struct select_tagged *row,
			      const char **ret_texts)
{
	return row->reason == WAIT_RUN_QUEUE && texts_of_function(m, row, ret_texts - 1);
}

/* The reason is that of the call, which is why the task blocks: sleep instead of executor. */
static bool texts_of_executor(struct maker *m, const struct select_tagged *row,
			      const char **ret_texts)
{
	if (!reason_blocks_executor(m->sel->reasons, row->stack, row->reason))
		return false;
	if (row->reason == WAIT_EXECUTOR) {
		uint8_t call = m->sel->p->tags.p[row->tag].reason;
		ret_texts[-1] = wait_key(call == WAIT_SYNC ? WAIT_PARK : (enum wait_reason)call);
	}
	return texts_of_function(m, row, ret_texts);
}

static bool texts_of_stack(struct maker *m, const struct select_tagged *row, const char **ret_texts)
{
	struct waitframe f = waitframe_of(m->frames, row->stack);
	buf_clear(&m->text);
	waitframes_add_stack(&m->text, m->sel->p, row->stack);
	ret_texts[0] = waitframe_name(m->sel->p, &f);
	ret_texts[1] = buf_str(&m->text);
	return true;
}

/* Returns the name of the thread that ended a wait, or what ended it if no thread did. */
static const char *waker_name(struct maker *m, const struct tag *tag)
{
	if (tag->other)
		return threads_name(m->sel->p, tag->other);
	return wait_ended_by(tag);
}

static bool texts_of_waker(struct maker *m, const struct select_tagged *row, const char **ret_texts)
{
	const struct profile *p = m->sel->p;
	const struct tag *tag = &p->tags.p[row->tag];
	struct waitframe f = waitframe_of(m->frames, row->stack);
	struct waitframe waking = waitframe_of(m->frames, tag->other_stack);
	ret_texts[0] = waitframe_name(p, &f);
	if (row->reason == WAIT_RUN_QUEUE || row->reason == WAIT_YIELD) {
		ret_texts[1] = "[runnable]"; /* no thread ended this, the scheduler did */
		ret_texts[2] = "";
		return true;
	}
	ret_texts[1] = waker_name(m, tag);
	ret_texts[2] = tag->other_stack ? waitframe_name(p, &waking) : "";
	return true;
}

static bool texts_of_object(struct maker *m, const struct select_tagged *row,
			    const char **ret_texts)
{
	str_id object = m->sel->p->tags.p[row->tag].object;
	ret_texts[0] = profile_text(m->sel->p, object);
	return object && !wait_is_of_futex(row->reason) && row->reason != WAIT_RUN_QUEUE;
}

static const struct {
	struct waitgroups_table table;
	texts_fn *texts;
} kinds[] = {
	[WAITS_REASONS] = {{.key = "reasons",
			    .title = "wait reasons",
			    .note = QUANTILE_NOTE,
			    .share = "% of all",
			    .texts = {{"reason", "reason"}, {"what", "meaning"}},
			    .flags = WAITGROUPS_MEAN | WAITGROUPS_QUANTILES | WAITGROUPS_THREADS},
			   texts_of_reason},
	[WAITS_FUNCTIONS] = {{.key = "waiting_functions",
			      .title = "waiting functions",
			      .note = QUANTILE_NOTE,
			      .texts = {{"reason", "reason"},
					{"function", "function"},
					{"in", "waiting in"},
					{"module", "module"}},
			      .other_at = 1,
			      .flags = WAITGROUPS_MEAN | WAITGROUPS_QUANTILES},
			     texts_of_blocked},
	[WAITS_RUN_QUEUE] = {{.key = "run_queue",
			      .title = "run queue (runnable, no CPU free)",
			      .note = QUANTILE_NOTE,
			      .share = "% of these",
			      .texts = {{"function", "function"},
					{"in", "switched out in"},
					{"module", "module"}},
			      .flags = WAITGROUPS_MEAN | WAITGROUPS_QUANTILES},
			     texts_of_runnable},
	[WAITS_EXECUTORS] = {{.key = "blocked_executors",
			      .title = "blocked executors (calls that block below the poll of an "
				       "async task)",
			      .texts = {{"reason", "call"},
					{"function", "function"},
					{"in", "waiting in"},
					{"module", "module"}},
			      .other_at = 1,
			      .flags = WAITGROUPS_MEAN | WAITGROUPS_QUANTILES | WAITGROUPS_THREADS},
			     texts_of_executor},
	[WAITS_STACKS] = {{.key = "waiting_stacks",
			   .title = "waiting stacks",
			   .share = "% of all",
			   .texts = {{"reason", "reason"},
				     {"function", "function"},
				     {"stack", "stack, innermost first", .is_list = true}},
			   .other_at = 1,
			   .flags = WAITGROUPS_MEAN | WAITGROUPS_QUANTILES},
			  texts_of_stack},
	[WAITS_WAKERS] =
		{{.key = "wakers",
		  .title = "wakers",
		  .note = "[runnable]: in the run queue, which the scheduler ends; %: of the "
			  "time shown",
		  .share = "% of all",
		  .texts = {{"reason", "reason"},
			    {"function", "waiting function"},
			    {"waker", "woken by"},
			    {"waking_function", "waker function"}},
		  .other_at = 1,
		  .flags = WAITGROUPS_MEAN},
		 texts_of_waker},
	[WAITS_OBJECTS] =
		{{.key = "wait_objects",
		  .title = "blocking files and sockets",
		  .note = "%: of the waiting shown, also of waits without a file or socket, "
			  "without the run queue",
		  .texts = {{"reason", "reason"}, {"object", "file or socket"}},
		  .other_at = 1,
		  .flags = WAITGROUPS_MEAN | WAITGROUPS_QUANTILES | WAITGROUPS_THREADS},
		 texts_of_object},
};

static void add_row(struct quantile *to, const struct selection *sel,
		    const struct select_tagged *row)
{
	const struct table *t = &sel->p->tables.p[sel->table];
	uint64_t longest_ns = 0;
	for (uint32_t c = 1; c < t->nr_columns; c++)
		if (t->columns[c].is_level)
			longest_ns = (uint64_t)MAX(row->values[c], 0);
	quantile_add(to, sel->p->tags.p[row->tag].log2_ns, (uint64_t)MAX(row->values[0], 0),
		     (uint64_t)MAX(row->values[t->weight_column], 0), longest_ns);
}

void waits_table(struct report *r, const struct selection *sel, enum waits_table kind,
		 const struct view_limits *limits)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(waitgroups_release)
	struct waitgroups g = waitgroups_new(&a, &kinds[kind].table);
	struct maker m = {.sel = sel, .frames = waitframes_new(&a, sel->p)};
	static const struct view_limits none;
	uint64_t blocked_ns = 0, table_ns = 0;
	for (size_t i = 0; i < sel->nr_tagged; i++) {
		const struct select_tagged *row = &sel->tagged[i];
		const char *texts[TAG_TEXTS] = {wait_key(row->reason)};
		uint64_t ns =
			(uint64_t)MAX(row->values[sel->p->tables.p[sel->table].weight_column], 0);
		blocked_ns += is_blocked(row) ? ns : 0;
		if (!kinds[kind].texts(&m, row, texts + 1))
			continue;
		add_row(waitgroups_at(&g, texts, row->task), sel, row);
		table_ns += ns;
	}
	buf_release(&m.text);
	bool is_optional = kind == WAITS_OBJECTS || kind == WAITS_EXECUTORS ||
			   kind == WAITS_FUNCTIONS || kind == WAITS_RUN_QUEUE;
	/* An empty selection of waits still has one table that says so. */
	if (is_optional && !g.g.groups.n && (kind != WAITS_FUNCTIONS || sel->nr_tagged))
		return;
	waitgroups_report(r, &g, kinds[kind].table.share ? table_ns : blocked_ns,
			  kind == WAITS_REASONS ? &none : limits);
}
