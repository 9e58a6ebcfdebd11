/*
 * Measures of the causes of waits: permits, blocked executors, and the threads that others wait for; see
 * measures.h. Those of locks: lockmeasures.c.
 */
#include "base/base.h"
#include "analyze/diagnose/measurebase.h"

#include <math.h>

#include "analyze/stacks/threads.h"
#include "analyze/wait/deadlock.h"
#include "analyze/wait/frames.h"
#include "analyze/wait/waittables.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text/num.h"

#define NUMBER(name) static double name(struct measures *m)
#define TEXT(name)   static const char *name(struct measures *m)

/* ---- permits -------------------------------------------------------------------------------- */

/*
 * Who takes a permit returns it, so threads that wait for permits also end such waits. A semaphore
 * whose waiters never post it passes on work or results. Where each waiter sleeps on a word of its own
 * (Python's Semaphore), the object is not the semaphore: there who posts waits at the
 * same function, or posts from within it (it may never wait, while others do).
 */
#define ENDED_BY_WAITER 1u
#define ENDED_BY_OTHER  2u

static bool is_permit(const struct select_tagged *row, const struct tag *tag)
{
	return row->reason == WAIT_PERMIT && tag->object;
}

static uint64_t key_of(const struct tag *tag, task_id task)
{
	return (uint64_t)tag->object << 32 | task;
}

/* Whether the program's function that waits is on the stack of who ended the wait. */
static bool is_within(const struct profile *p, struct waitframes *wf, stack_id waiter,
		      stack_id other)
{
	str_id own = waitframe_of(wf, waiter).own;
	for (stack_id s = own ? other : 0; s; s = p->stacks.p[s].parent) {
		const struct location *l = &p->locations.p[p->stacks.p[s].loc];
		for (uint32_t i = 0; i < l->nr_frames; i++) {
			const struct frame *f = &p->frames.p[l->first_frame + i];
			if (p->functions.p[f->func].name == own)
				return true;
		}
	}
	return false;
}

/* Threads that wait for permits, by the function of the program that waits. */
static uint64_t key_at(struct waitframes *wf, stack_id stack, task_id task)
{
	return (uint64_t)waitframe_of(wf, stack).own << 32 | task;
}

/* By object: who ended the waits for it. */
static void fill_ended(const struct measures *m, struct map *ended)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(map_release) struct map waiters = {0};
	CLEANUP(map_release) struct map waiters_at = {0};
	struct waitframes *wf = waitframes_new(&a, m->p);
	for (size_t i = 0; i < m->waits->sel->nr_tagged; i++) {
		const struct select_tagged *row = &m->waits->sel->tagged[i];
		const struct tag *tag = &m->p->tags.p[row->tag];
		if (!is_permit(row, tag))
			continue;
		(void)map_put(&waiters, key_of(tag, row->task), NULL);
		(void)map_put(&waiters_at, key_at(wf, row->stack, row->task), NULL);
	}
	for (size_t i = 0; i < m->waits->sel->nr_tagged; i++) {
		const struct select_tagged *row = &m->waits->sel->tagged[i];
		const struct tag *tag = &m->p->tags.p[row->tag];
		if (!is_permit(row, tag) || !tag->other)
			continue;
		bool is_waiter = map_get(&waiters, key_of(tag, tag->other)) ||
				 map_get(&waiters_at, key_at(wf, row->stack, tag->other)) ||
				 is_within(m->p, wf, row->stack, tag->other_stack);
		*map_put(ended, tag->object, NULL) |= is_waiter ? ENDED_BY_WAITER : ENDED_BY_OTHER;
	}
}

/* Of the time spent waiting for permits: for semaphores that others post. */
NUMBER(permit_passed_pct)
{
	CLEANUP(map_release) struct map ended = {0};
	const struct waitmeasures *w = measured_waits(m);
	uint64_t passed_ns = 0;
	if (!w || !w->l->total.ns[WAIT_PERMIT])
		return w ? 0 : (double)NAN;
	fill_ended(m, &ended);
	for (size_t i = 0; i < w->sel->nr_tagged; i++) {
		const struct select_tagged *row = &w->sel->tagged[i];
		const struct tag *tag = &m->p->tags.p[row->tag];
		const uint32_t *who = is_permit(row, tag) ? map_get(&ended, tag->object) : NULL;
		if (who && *who == ENDED_BY_OTHER)
			passed_ns += (uint64_t)MAX(row->values[1], 0);
	}
	return view_pct(passed_ns, w->l->total.ns[WAIT_PERMIT]);
}

/* ---- blocked executors ----------------------------------------------------------------------- */

/* Waits below the poll functions of futures, whatever their reasons. */
static const struct waitmeasures *executors_of(struct measures *m)
{
	struct waitmeasures *w = measured_waits(m);
	for (size_t i = 0; w && !w->has_executors && i < w->sel->nr_tagged; i++) {
		const struct select_tagged *row = &w->sel->tagged[i];
		if (!reason_blocks_executor(w->sel->reasons, row->stack, row->reason))
			continue;
		w->executor_ns += (uint64_t)MAX(row->values[1], 0);
		w->executor_nr += (uint64_t)MAX(row->values[0], 0);
	}
	if (w)
		w->has_executors = true;
	return w;
}

NUMBER(executors_pct)
{
	const struct waitmeasures *w = executors_of(m);
	return w ? measured_pct(w, w->executor_ns) : (double)NAN;
}

NUMBER(executors_evident)
{
	const struct waitmeasures *w = executors_of(m);
	return w ? w->executor_ns >= MEASURE_EVIDENCE_NS || w->executor_nr >= MEASURE_EVIDENCE_WAITS
		 : (double)NAN;
}

TEXT(executors_where)
{
	const struct report_table *t = measured_table(measured_tables(m), "blocked_executors");
	size_t at = t ? measured_column(t, "reason") : 0;
	return t ? arena_fmt(&m->a, "%s (%s)", t->cells[at + 1].text, t->cells[at].text) : "";
}

/* ---- by blocking thread -------------------------------------------------------------------- */

/* Whose waits are added up. */
enum culprits { OF_IDLE_WAITS, OF_PIPES, OF_SOCKETS, OF_OTHERS /* neither idle nor for locks */ };

static bool is_in(const struct blame_row *row, enum culprits which)
{
	switch (which) {
	case OF_IDLE_WAITS:
		return wait_is_idle(row->reason);
	case OF_PIPES:
		return row->reason == WAIT_PIPE;
	case OF_SOCKETS:
		return row->reason == WAIT_NET;
	case OF_OTHERS:
		break;
	}
	return row->reason != WAIT_LOCK && !wait_is_idle(row->reason);
}

/* Time of the waits in one function for one reason, and the part of it that may be for work. */
struct for_work {
	uint64_t ns;
	uint64_t all_ns;
};

static uint64_t waiting_key(struct waitframes *wf, const struct blame_row *row)
{
	return (uint64_t)waitframe_of(wf, row->waiter_stack).own << 8 | row->reason;
}

/*
 * By waiting function and reason. A wait has parts: where a function waits mostly for threads that are
 * idle themselves, the moments in which these run, to write, are no work that it waits for.
 */
static struct for_work *find_for_work(struct arena *a, const struct blame *b, struct waitframes *wf,
				      struct map *index)
{
	struct for_work *all = arena_calloc(a, b->nr_rows + 1, sizeof(*all));
	uint32_t nr = 0;
	for (size_t i = 0; i < b->nr_rows; i++) {
		bool is_new;
		uint32_t *at = map_put(index, waiting_key(wf, &b->rows[i]), &is_new);
		if (is_new)
			*at = nr++;
		all[*at].all_ns += b->rows[i].ns;
		all[*at].ns += blame_is_for_work(&b->rows[i]) ? b->rows[i].ns : 0;
	}
	return all;
}

/* Sums of blamed threads, and the largest. */
struct culprits_sum {
	struct measures *m;
	struct waitframes *wf;
	struct intern names;
	struct map index; /* name -> all */
	VEC(struct culprit) all;
	struct culprit *top;
	uint64_t ns;
};

static void culprits_sum_release(struct culprits_sum *s)
{
	intern_release(&s->names);
	map_release(&s->index);
	vec_release(&s->all);
}

static void add_culprit(struct culprits_sum *s, const struct blame_row *row)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct waitframe frame = waitframe_of(s->wf, row->blocker_stack);
	struct culprit c = {threads_name(s->m->p, row->blocker),
			    arena_strdup(&s->m->a, waitframe_name(s->m->p, &frame)), row->doing, 0};
	bool is_new;
	buf_addf(&text, "%s\n%s\n%u", c.thread, c.function, row->doing);
	uint32_t *at = map_put(&s->index, intern_add_str(&s->names, buf_str(&text)), &is_new);
	if (is_new) {
		*at = (uint32_t)s->all.n;
		vec_push(&s->all, c);
	}
	s->ns += row->ns;
	s->all.p[*at].ns += row->ns;
	if (s->all.p[*at].ns > s->top->ns)
		*s->top = s->all.p[*at];
}

/*
 * Returns the time of the waits for recorded threads, and the thread with most of it. Of sockets, whatever
 * that did; else only threads that were at work.
 */
static uint64_t top_culprit(struct measures *m, const struct blame *b, enum culprits which,
			    struct culprit *ret_top)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(map_release) struct map index = {0};
	struct culprits_sum s CLEANUP(
		culprits_sum_release) = {.m = m, .wf = waitframes_new(&a, m->p), .top = ret_top};
	const struct for_work *for_work = find_for_work(&a, b, s.wf, &index);
	for (size_t i = 0; i < b->nr_rows; i++) {
		const struct blame_row *row = &b->rows[i];
		const struct for_work *of = &for_work[*map_get(&index, waiting_key(s.wf, row))];
		bool is_work = blame_is_for_work(row) || of->ns > of->all_ns / 2;
		if (is_in(row, which) && row->blocker && row->doing != WAIT_UNKNOWN &&
		    (which == OF_SOCKETS || !is_work))
			add_culprit(&s, row);
	}
	return s.ns;
}

/* Waits other than for locks that other threads ended: for what those did. */
static const struct waitmeasures *culprit_of(struct measures *m)
{
	struct waitmeasures *w = measured_waits(m);
	if (w && !w->has_culprit)
		w->culprit_ns = top_culprit(m, measured_blame(m), OF_OTHERS, &w->culprit);
	if (w)
		w->has_culprit = true;
	return w;
}

static const char *doing_text(enum wait_reason doing)
{
	return doing == WAIT_ON_CPU ? "on CPU until then" : wait_text(doing);
}

/* Who wrote to the pipes that are waited for. */
static const struct waitmeasures *writer_of(struct measures *m)
{
	struct waitmeasures *w = measured_waits(m);
	if (w && !w->has_writer)
		w->writer_ns = top_culprit(m, measured_blame(m), OF_PIPES, &w->writer);
	if (w)
		w->has_writer = true;
	return w;
}

NUMBER(pipe_worked_pct)
{
	const struct waitmeasures *w = writer_of(m);
	return w ? view_pct(w->writer_ns, w->l->total.ns[WAIT_PIPE]) : (double)NAN;
}

NUMBER(writer_part)
{
	const struct waitmeasures *w = writer_of(m);
	return w ? view_pct(w->writer.ns, w->writer_ns) : (double)NAN;
}

TEXT(writer_largest)
{
	return view_largest(writer_part(m));
}

TEXT(writer_thread)
{
	const struct waitmeasures *w = writer_of(m);
	return w && w->writer.ns ? w->writer.thread : "";
}

TEXT(writer_function)
{
	const struct waitmeasures *w = writer_of(m);
	return w && w->writer.ns ? w->writer.function : "";
}

TEXT(writer_doing)
{
	const struct waitmeasures *w = writer_of(m);
	return w && w->writer.ns ? doing_text(w->writer.doing) : "";
}

/* For whom the program waits in sockets. */
static const struct waitmeasures *peer_of(struct measures *m)
{
	struct waitmeasures *w = measured_waits(m);
	if (w && !w->has_peer)
		w->peer_ns = top_culprit(m, measured_blame(m), OF_SOCKETS, &w->peer);
	if (w)
		w->has_peer = true;
	return w;
}

NUMBER(peer_part)
{
	const struct waitmeasures *w = peer_of(m);
	return w ? view_pct(w->peer.ns, w->l->total.ns[WAIT_NET]) : (double)NAN;
}

TEXT(peer_text)
{
	const struct waitmeasures *w = peer_of(m);
	if (!w || !w->peer.ns)
		return "";
	return arena_fmt(&m->a, "%s in %s (%s%s)", w->peer.thread, w->peer.function,
			 wait_is_idle(w->peer.doing) ? "idle: " : "",
			 wait_is_idle(w->peer.doing) ? wait_key(w->peer.doing)
						     : doing_text(w->peer.doing));
}

TEXT(deadlock)
{
	const struct waitmeasures *w = measured_waits(m);
	const struct blame *b = measured_blame(m);
	return w && b->sel.p ? deadlock_text(&m->a, b, w->l->window_ns) ?: "" : "";
}

NUMBER(culprit_pct)
{
	const struct waitmeasures *w = culprit_of(m);
	return w ? measured_pct(w, w->culprit_ns) : (double)NAN;
}

NUMBER(culprit_time)
{
	const struct waitmeasures *w = culprit_of(m);
	return w ? (double)w->culprit_ns : (double)NAN;
}

NUMBER(culprit_part)
{
	const struct waitmeasures *w = culprit_of(m);
	return w ? view_pct(w->culprit.ns, w->culprit_ns) : (double)NAN;
}

TEXT(culprit_largest)
{
	return view_largest(culprit_part(m));
}

TEXT(culprit_thread)
{
	const struct waitmeasures *w = culprit_of(m);
	return w && w->culprit.ns ? w->culprit.thread : "";
}

TEXT(culprit_function)
{
	const struct waitmeasures *w = culprit_of(m);
	return w && w->culprit.ns ? w->culprit.function : "";
}

TEXT(culprit_doing)
{
	const struct waitmeasures *w = culprit_of(m);
	return w && w->culprit.ns ? doing_text(w->culprit.doing) : "";
}

NUMBER(culprit_ran)
{
	const struct waitmeasures *w = culprit_of(m);
	return w ? w->culprit.ns && w->culprit.doing == WAIT_ON_CPU : (double)NAN;
}

/* Of the waits that can be blamed: those that may be for locks or not. */
NUMBER(unclear_pct)
{
	const struct blame *b = measured_blame(m);
	return b ? view_pct(b->reason_ns[WAIT_SYNC], b->of_ns) : (double)NAN;
}

/* ---- idle ----------------------------------------------------------------------------------- */

/*
 * Most idle time by function and reason: "put_job (park)". Whether a thread waits there for work, or
 * for an answer or a place, its program knows; the sentence names where to look.
 */
static const char *longest_idle(struct measures *m, const struct selection *sel,
				struct waitframes *wf)
{
	CLEANUP(map_release) struct map index = {0};
	CLEANUP(free_p) uint64_t *sums = xcalloc(sel->nr_tagged + 1, sizeof(*sums));
	const char *text = "";
	uint64_t most = 0;
	for (size_t i = 0; i < sel->nr_tagged; i++) {
		const struct select_tagged *row = &sel->tagged[i];
		struct waitframe frame = waitframe_of(wf, row->stack);
		bool is_new;
		if (!wait_is_idle(row->reason) || !frame.own)
			continue;
		frame.text = NULL; /* of all of its lines */
		uint32_t *at = map_put(&index, (uint64_t)frame.own << 8 | row->reason, &is_new);
		if (is_new)
			*at = (uint32_t)i;
		sums[*at] += (uint64_t)MAX(row->values[1], 0);
		if (sums[*at] <= most)
			continue;
		most = sums[*at];
		text = arena_fmt(&m->a, "%s (%s)", measures_name(m, waitframe_name(m->p, &frame)),
				 wait_key(row->reason));
	}
	return text;
}

/*
 * Whether a semaphore or a lock of Python, of which nobody knows the purpose, was waited for from the
 * start to the end of the capture: it counts as idle, but may be a lock that was taken before.
 */
static bool is_held_throughout(const struct selection *sel, const struct select_tagged *row)
{
	enum sync_kind kind = reason_of_frames(sel->reasons, row->stack);
	const uint8_t whole = EVIDENCE_AT_START | EVIDENCE_OPEN;
	return row->reason == WAIT_PARK && (kind == SYNC_UNCLEAR || kind == SYNC_PERMIT_PART) &&
	       (sel->p->tags.p[row->tag].evidence & whole) == whole;
}

static void find_held_throughout(struct measures *m, const struct selection *sel,
				 struct waitframes *wf)
{
	CLEANUP(map_release) struct map threads = {0};
	struct waitframe first = {0};
	for (size_t i = 0; i < sel->nr_tagged; i++) {
		const struct select_tagged *row = &sel->tagged[i];
		if (!is_held_throughout(sel, row))
			continue;
		(void)map_put(&threads, profile_last_task(m->p, row->task), NULL);
		if (!first.own)
			first = waitframe_of(wf, row->stack);
	}
	m->waits->nr_held = threads.n;
	m->waits->held_where = first.own ? measures_name(m, waitframe_name(m->p, &first)) : "";
}

static void find_idle(struct measures *m, struct waitmeasures *w)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct select_spec own = m->spec;
	struct selection sel;
	own.event = table_key(TABLE_OFF_CPU);
	own.flags |= SELECT_IDLE;
	w->idle_where = w->held_where = "";
	if (select_run(&a, m->p, &own, &sel, NULL))
		return;
	struct waitframes *wf = waitframes_new(&a, m->p);
	w->idle_where = longest_idle(m, &sel, wf);
	find_held_throughout(m, &sel, wf);
}

/*
 * For whom an idle program waits: recorded threads that ended its idle waits. Whether these were answers or
 * new work is not known.
 */
static const struct waitmeasures *idle_of(struct measures *m)
{
	struct waitmeasures *w = measured_waits(m);
	if (!w || w->has_idle)
		return w;
	w->has_idle = true;
	find_idle(m, w);
	CLEANUP(arena_release) struct arena a = {0};
	struct select_spec own = m->spec;
	struct blame b = {0};
	own.flags |= SELECT_IDLE;
	if (tables_has_rows(m->p, TABLE_BLAME) && !blame_make(&a, m->p, &own, &b, NULL))
		w->idle_for_ns = top_culprit(m, &b, OF_IDLE_WAITS, &w->idle_for);
	return w;
}

TEXT(idle_where)
{
	const struct waitmeasures *w = idle_of(m);
	return w ? w->idle_where : NULL;
}

TEXT(held_threads)
{
	const struct waitmeasures *w = idle_of(m);
	return w && w->nr_held ? arena_strdup(&m->a, num_noun(w->nr_held, "threads").s) : "";
}

TEXT(held_where)
{
	const struct waitmeasures *w = idle_of(m);
	return w ? w->held_where : NULL;
}

NUMBER(idle_ended_pct)
{
	const struct waitmeasures *w = idle_of(m);
	return w ? view_pct(w->idle_for_ns, breakdown_idle_ns(&w->l->total)) : (double)NAN;
}

NUMBER(idle_ended_part)
{
	const struct waitmeasures *w = idle_of(m);
	return w ? view_pct(w->idle_for.ns, w->idle_for_ns) : (double)NAN;
}

TEXT(idle_ended_largest)
{
	return view_largest(idle_ended_part(m));
}

TEXT(idle_ended_thread)
{
	const struct waitmeasures *w = idle_of(m);
	return w && w->idle_for.ns ? w->idle_for.thread : "";
}

TEXT(idle_ended_function)
{
	const struct waitmeasures *w = idle_of(m);
	return w && w->idle_for.ns ? w->idle_for.function : "";
}

TEXT(idle_ended_doing)
{
	const struct waitmeasures *w = idle_of(m);
	return w && w->idle_for.ns ? doing_text(w->idle_for.doing) : "";
}

/* ---- the rows -------------------------------------------------------------------------------- */

static const struct measure rows[] = {
	{"idle.where", FORMULA_TEXT, NULL, "function with most idle time", .text = idle_where},
	{"idle.ended.pct", FORMULA_PERCENT, "idle time", "ended by threads of the recording",
	 .number = idle_ended_pct},
	{"idle.ended.part", FORMULA_PERCENT, "idle time that threads of the recording ended",
	 "of the thread with most", .number = idle_ended_part},
	{"idle.ended.largest", FORMULA_TEXT, NULL,
	 "\"the largest part\" or \"the largest of many parts\"", .text = idle_ended_largest},
	{"idle.ended.thread", FORMULA_TEXT, NULL, "the thread that ended most",
	 .text = idle_ended_thread},
	{"idle.ended.function", FORMULA_TEXT, NULL, "its function", .text = idle_ended_function},
	{"idle.ended.doing", FORMULA_TEXT, NULL, "what it did before", .text = idle_ended_doing},
	{"permit.passed.pct", FORMULA_PERCENT, "waits for permits",
	 "waits for semaphores that only other threads post", .number = permit_passed_pct},
	{"deadlock", FORMULA_TEXT, NULL, "threads that wait for each other: a sentence",
	 .text = deadlock},
	{"held.threads", FORMULA_TEXT, NULL,
	 "threads that waited for the whole capture for what may be a lock", .text = held_threads},
	{"held.where", FORMULA_TEXT, NULL, "the function of the first of them", .text = held_where},
	{"pipe.writer.part", FORMULA_PERCENT, "waits for pipes whose writers worked",
	 "of the thread with most", .number = writer_part},
	{"pipe.writer.largest", FORMULA_TEXT, NULL,
	 "\"the largest part\" or \"the largest of many parts\"", .text = writer_largest},
	{"pipe.writer.thread", FORMULA_TEXT, NULL,
	 "thread that wrote for most of the waits for pipes", .text = writer_thread},
	{"pipe.writer.function", FORMULA_TEXT, NULL, "its function", .text = writer_function},
	{"pipe.writer.doing", FORMULA_TEXT, NULL, "what it did before", .text = writer_doing},
	{"pipe.worked.pct", FORMULA_PERCENT, "waits for pipes",
	 "waits for pipes during which a recorded thread worked until it wrote",
	 .number = pipe_worked_pct},
	{"socket.peer.part", FORMULA_PERCENT, "waits for sockets",
	 "for the recorded thread with most of them", .number = peer_part},
	{"socket.peer", FORMULA_TEXT, NULL, "that thread, its function and what it did",
	 .text = peer_text},
	{"blocked.pct", FORMULA_PERCENT, MEASURE_ACTIVE, "waits below the poll of an async task",
	 .number = executors_pct},
	{"blocked.evident", FORMULA_PLAIN, NULL,
	 "1: at least 50 ms or 200 waits below the poll of an async task",
	 .number = executors_evident},
	{"blocked.where", FORMULA_TEXT, NULL,
	 "function with most waits below the poll of an async task, and the reason",
	 .text = executors_where},
	{"culprit.pct", FORMULA_PERCENT, MEASURE_ACTIVE,
	 "waits (not for locks) that other threads ended", .number = culprit_pct},
	{"culprit.time", FORMULA_NS, NULL, "waits (not for locks) that other threads ended",
	 .number = culprit_time},
	{"culprit.part", FORMULA_PERCENT, "waits that other threads ended",
	 "of the thread with most", .number = culprit_part},
	{"culprit.largest", FORMULA_TEXT, NULL,
	 "\"the largest part\" or \"the largest of many parts\"", .text = culprit_largest},
	{"culprit.thread", FORMULA_TEXT, NULL, "thread that ended most waits of others",
	 .text = culprit_thread},
	{"culprit.function", FORMULA_TEXT, NULL, "its function", .text = culprit_function},
	{"culprit.doing", FORMULA_TEXT, NULL, "what it did before", .text = culprit_doing},
	{"culprit.ran", FORMULA_PLAIN, NULL, "1: it was on a CPU until then",
	 .number = culprit_ran},
	{"unclear.pct", FORMULA_PERCENT, "waits that can be blamed", "may be for locks or not",
	 .number = unclear_pct},
};

const struct measure *cause_measures(size_t *ret_nr)
{
	*ret_nr = ARRAY_LEN(rows);
	return rows;
}
