/* Tables and tree rows of blame; see blame.h. */
#include "base/base.h"
#include "analyze/wait/blame.h"

#include "analyze/stacks/threads.h"
#include "analyze/wait/frames.h"
#include "analyze/wait/waitgroups.h"
#include "base/text/num.h"

#define REST_REASONS 3 /* named in the note of what is not attributed */

static const char *doing_text(struct arena *a, const struct blame_row *row)
{
	if (row->is_convoy && row->doing == WAIT_UNKNOWN)
		return "convoy";
	if (row->is_convoy)
		return arena_fmt(a, "convoy (%s)", wait_key(row->doing));
	if (blame_is_for_work(row))
		return arena_fmt(a, "idle (%s)", wait_key(row->doing));
	return wait_key(row->doing);
}

static const char *name_of(const struct profile *p, task_id task)
{
	return task ? threads_name(p, task) : "[not seen]";
}

void blame_add_chain(struct buf *to, const struct profile *p, struct waitframes *wf,
		     const struct tag *tag, enum wait_reason doing)
{
	if (!tag->other || doing == WAIT_UNKNOWN) {
		buf_add_str(to, "waits for a thread that was not recorded");
		return;
	}
	struct waitframe f = waitframe_of(wf, tag->other_stack);
	buf_addf(to, "waits for %s in %s (%s)", name_of(p, tag->other), waitframe_name(p, &f),
		 doing == WAIT_ON_CPU ? "on CPU" : wait_text(doing));
}

/* By what blamed threads were doing and their function; by waiter and blamed thread. */
static const struct waitgroups_table causes = {
	.key = "blame",
	.title = "wait time attributed to its cause",
	.note = "function, call: of the blamed thread, the lock holder or waker, or whom that waited for in "
		"turn; cause: what it did during the wait; "
		"on_cpu: it ran, the function is that of the wake-up, not what it computed; run_queue: "
		"it waited for a CPU; idle: who waited for its pipe or socket may have waited for work; convoy: several threads take the same lock in turn, and what its holder did meanwhile; %: of the waiting shown; "
		"waits: those of which this was the longest part",
	.texts = {{"doing", "cause"},
		  {"function", "function (on_cpu: released in)"},
		  {"in", "call"},
		  {"culprit", "blamed thread"}},
	.other_at = 1,
	.flags = WAITGROUPS_THREADS,
};
static const struct waitgroups_table pairs = {
	.key = "blame_pairs",
	.title = "waiting threads and the blamed ones",
	.note = "blamed thread: the lock holder or waker, or whom that waited for in turn (--by lock has the "
		"holders)",
	.texts = {{"waiter", "waiter"},
		  {"waits_in", "waiting in"},
		  {"culprit", "blamed thread"},
		  {"function", "which is in"},
		  {"doing", "cause"}},
	.other_at = 1,
};

static void add_row(struct waitgroups *g, const char *const *texts, const struct blame_row *row)
{
	quantile_add(waitgroups_at(g, texts, row->waiter), LOG2_NONE, row->nr_waits, row->ns, 0);
}

/* The largest reasons of what is not attributed: "fsync 12 %, poll 3 %". */
static const char *rest_text(struct report *r, const struct blame *b)
{
	CLEANUP(buf_release) struct buf text = {0};
	bool is_in[WAIT_NR] = {0};
	for (int n = 0; n < REST_REASONS; n++) {
		enum wait_reason best = WAIT_NONE;
		uint64_t best_ns = 0;
		for (enum wait_reason w = WAIT_ON_CPU; w < WAIT_NR; w++)
			if (!is_in[w] && b->reason_ns[w] - b->blamed_ns[w] > best_ns) {
				best = w;
				best_ns = b->reason_ns[w] - b->blamed_ns[w];
			}
		if (view_pct(best_ns, b->of_ns) < 1)
			break;
		is_in[best] = true;
		buf_addf(&text, "%s%s %s %%", text.n ? ", " : "", wait_text(best),
			 num_double(view_pct(best_ns, b->of_ns), 0).s);
	}
	return arena_strdup(&r->arena, buf_str(&text));
}

/* Says how much of the waiting the tables explain. */
static void note_share(struct report *r, const struct blame *b)
{
	const char *rest = rest_text(r, b);
	uint64_t known_ns = b->ns - b->unknown_ns;
	double pct = view_pct(known_ns, b->of_ns);
	double unknown_pct = view_pct(b->unknown_ns, b->of_ns);
	if (!b->of_ns) {
		report_note(r,
			    "nothing to attribute: no waiting passes the filters (the run queue is "
			    "not attributed)");
		return;
	}
	if (!b->ns) {
		report_note(
			r,
			"nothing to attribute: no thread ended the %s of waiting shown; ended by "
			"devices, timers or unknown threads: %s",
			num_ns(b->of_ns).s, rest);
		return;
	}
	report_note(r,
		    "attributed to other threads: %s of %s waiting (%s %%; without the run "
		    "queue)%s%s",
		    num_ns(known_ns).s, num_ns(b->of_ns).s, num_double(pct, pct < 10 ? 1 : 0).s,
		    rest[0] ? "; ended by devices, timers or unknown threads: " : "", rest);
	if (view_pct(b->unknown_ns, b->ns) >= 1)
		report_note(r,
			    "not attributed: %s %% of the waiting (%s) was for threads that were "
			    "not recorded, so what they did is not known",
			    num_double(unknown_pct, unknown_pct < 10 ? 1 : 0).s,
			    num_ns(b->unknown_ns).s);
}

/* Names the thread as in another process if it has the waiter's name. */
static const char *other_name(struct arena *a, const struct profile *p, task_id task,
			      const struct blame_row *row, const char *waiter)
{
	const char *name = name_of(p, task);
	if (p->tasks.p[task].pid != p->tasks.p[row->waiter].pid && !strcmp(waiter, name))
		return arena_fmt(a, "another %s", name);
	return name;
}

/* Who waits, and who is blamed for it. */
static void add_pair(struct arena *a, struct waitgroups *g, const struct profile *p,
		     struct waitframes *wf, const struct blame_row *row, const char *doing)
{
	const char *waiter = name_of(p, row->waiter);
	struct waitframe waits = waitframe_of(wf, row->waiter_stack);
	struct waitframe does = waitframe_of(wf, row->blocker_stack);
	add_row(g,
		(const char *[]){waiter, waitframe_name(p, &waits),
				 other_name(a, p, row->blocker, row, waiter),
				 waitframe_name(p, &does), doing},
		row);
}

void blame_report(struct report *r, const struct blame *b, const struct view_limits *limits)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(waitgroups_release) struct waitgroups of_causes = waitgroups_new(&a, &causes);
	CLEANUP(waitgroups_release) struct waitgroups of_pairs = waitgroups_new(&a, &pairs);
	const struct profile *p = b->sel.p;
	struct waitframes *wf = waitframes_new(&a, p);
	for (size_t i = 0; i < b->nr_rows; i++) {
		const struct blame_row *row = &b->rows[i];
		struct waitframe does = waitframe_of(wf, row->blocker_stack);
		const char *doing = doing_text(&a, row);
		add_row(&of_causes,
			(const char *[]){doing, waitframe_name(p, &does), profile_text(p, does.via),
					 name_of(p, row->blocker)},
			row);
		add_pair(&a, &of_pairs, p, wf, row, doing);
	}
	waitgroups_report(r, &of_causes, b->of_ns, limits);
	waitgroups_report(r, &of_pairs, b->of_ns, limits);
	note_share(r, b);
}

/* ---- trees --------------------------------------------------------------------------------- */

#define PARTS_MAX 5

void blame_add_to_tree(struct calltree *ct, const struct blame *b)
{
	CLEANUP(arena_release) struct arena a = {0};
	const struct profile *p = b->sel.p;
	struct calltree_row *rows = arena_calloc(&a, b->nr_rows + 1, sizeof(*rows));
	for (size_t i = 0; i < b->nr_rows; i++) {
		const struct blame_row *row = &b->rows[i];
		struct calltree_part *parts = arena_calloc(&a, PARTS_MAX, sizeof(*parts));
		size_t n = 0;
		parts[n++].stack = waitframes_user_part(p, row->waiter_stack);
		parts[n++].text = arena_fmt(&a, "[blamed on] %s", name_of(p, row->blocker));
		if (row->is_convoy)
			parts[n++].text = "[convoy]";
		parts[n].is_whole = true;
		parts[n++].stack = waitframes_user_part(p, row->blocker_stack);
		const char *synth_leaf =
			row->doing == WAIT_ON_CPU ? "[on CPU]" : wait_frame(row->doing);
		if (synth_leaf)
			parts[n++].text = synth_leaf;
		ASSERT(n <= PARTS_MAX);
		rows[i] = (struct calltree_row){row->waiter, parts, n, row->ns};
	}
	calltree_add_parts(ct, &b->sel, rows, b->nr_rows);
}
