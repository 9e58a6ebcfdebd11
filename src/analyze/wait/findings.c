/* Sentences on what a recording of waits comes to; see findings.h. */
#include "base/base.h"
#include "analyze/wait/findings.h"

#include <stdlib.h>

#include "analyze/stacks/threads.h"
#include "analyze/wait/blame.h"
#include "analyze/wait/deadlock.h"
#include "analyze/wait/frames.h"
#include "analyze/wait/waittables.h"
#include "base/clock.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text/num.h"

/* Thresholds, as shares of non-idle thread time. */
#define IDLE_PCT            95.0 /* of total thread time */
#define IDLE_THREADS        0.25 /* more threads than that are not idle on average: it is at work */
#define IDLE_OF_THREAD      75.0 /* idle share of a thread that works now and then */
#define ON_CPU_PCT          50.0
#define STARVED_PCT         10.0 /* in the run queue */
#define STARVED_WALL        5.0  /* in the run queue, as a share of the duration */
#define TOP_LOCK_PCT        40.0 /* one lock's share of lock wait time */
#define WAIT_PCT            10.0
#define UNCLEAR_PCT         5.0   /* share of waits that may be for locks or not */
#define EXECUTOR_PCT        1.0   /* below the poll of an async task */
#define DEADLOCK_PCT        101.0 /* order of a deadlock: first */
#define AFTER_OTHERS        0.5   /* order of a statement on waits that may be idle */
#define IDLE_FOR_OTHERS_PCT 50.0  /* of idle time, at least, to name whom it is for */
#define COVERED_PCT         50    /* of thread time, at least, for statements on its shares */
#define EVIDENCE_NS         (50 * NS_PER_MS) /* less wait time than this is no evidence ... */
#define EVIDENCE_WAITS      200              /* ... unless there are that many waits */

struct finding {
	double pct; /* of non-idle thread time: the order on the page */
	size_t at;
	const char *text;
};

struct findings {
	struct report *r;
	const struct profile *p;
	const struct breakdown *l;
	const struct selection *sel;
	const struct select_spec *spec;
	uint64_t active_ns;
	const char *active; /* what active_ns is, for sentences */
	enum select_scope scope;
	VEC(struct finding) all;
};

static double active_pct(const struct findings *f, uint64_t ns)
{
	return view_pct(ns, f->active_ns);
}

static struct num_text pct_text(double pct)
{
	return num_double(pct, pct < 10 ? 1 : 0);
}

/* The share that the time of a reason has; 0: too little, or no evidence. */
static double share_of(const struct findings *f, enum wait_reason reason, double min_pct)
{
	uint64_t ns = f->l->total.ns[reason];
	double pct = active_pct(f, ns);
	bool is_evident = ns >= EVIDENCE_NS || f->l->total.nr_waits[reason] >= EVIDENCE_WAITS;
	return pct >= min_pct && is_evident ? pct : 0;
}

static void add(struct findings *f, double pct, const char *text)
{
	struct finding one = {pct, f->all.n, text};
	vec_push(&f->all, one);
}

static int by_share(const void *x, const void *y)
{
	const struct finding *a = x;
	const struct finding *b = y;
	return COMPARE(b->pct, a->pct) ?: COMPARE(a->at, b->at);
}

/* Returns the table with a key, or NULL if there is none or it has no rows. */
static const struct report_table *table_of(const struct report *r, const char *key)
{
	vec_foreach(t, &r->tables)
		if (!strcmp(t->key, key) && t->nr_rows)
			return t;
	return NULL;
}

static size_t column_of(const struct report_table *t, const char *key)
{
	size_t at = 0;
	while (at + 1 < t->nr_columns && strcmp(t->columns[at].key, key))
		at++;
	return at;
}

/*
 * Returns "; most in FUNCTION" for the function that spent most time for a reason. What it called says
 * whether it yields on its own or in a lock.
 */
static const char *most_in(const struct findings *f, enum wait_reason reason)
{
	const struct report_table *t = table_of(f->r, "waiting_functions");
	size_t at = t ? column_of(t, "reason") : 0;
	for (size_t i = 0; t && i < t->nr_rows; i++) {
		const union cell *row = &t->cells[i * t->nr_columns];
		if (strcmp(row[at].text, wait_key(reason)) != 0)
			continue;
		bool has_call = reason == WAIT_YIELD && row[at + 2].text[0];
		return arena_fmt(&f->r->arena, "; most in %s%s%s",
				 view_name(f->r, row[at + 1].text),
				 has_call ? ", in its call of " : "",
				 has_call ? view_name(f->r, row[at + 2].text) : "");
	}
	return "";
}

/* ---- idle -------------------------------------------------------------------------------- */

/*
 * Most idle time by function and reason: "put_job (park)". Whether a thread waits there for work, or
 * for an answer or a place, its program knows; the sentence names where to look.
 */
static const char *longest_idle(struct findings *f, const struct selection *sel,
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
		uint32_t *at = map_put(&index, (uint64_t)frame.own << 8 | row->reason, &is_new);
		if (is_new)
			*at = (uint32_t)i;
		sums[*at] += (uint64_t)MAX(row->values[1], 0);
		if (sums[*at] <= most)
			continue;
		most = sums[*at];
		text = arena_fmt(&f->r->arena, ", most in %s (%s)",
				 view_name(f->r, waitframe_name(f->p, &frame)),
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

static void find_held_throughout(struct findings *f, const struct selection *sel,
				 struct waitframes *wf)
{
	CLEANUP(map_release) struct map threads = {0};
	struct waitframe first = {0};
	for (size_t i = 0; i < sel->nr_tagged; i++) {
		const struct select_tagged *row = &sel->tagged[i];
		if (!is_held_throughout(sel, row))
			continue;
		(void)map_put(&threads, profile_last_task(f->p, row->task), NULL);
		if (!first.own)
			first = waitframe_of(wf, row->stack);
	}
	if (!threads.n)
		return;
	add(f, AFTER_OTHERS,
	    arena_fmt(
		    &f->r->arena,
		    "%s waited for the whole capture for a semaphore or a lock of Python that nobody "
		    "released%s%s: for work, or for a lock that was taken before the capture; who "
		    "holds it is not known",
		    num_noun(threads.n, "threads").s, first.own ? ", as in " : "",
		    first.own ? view_name(f->r, waitframe_name(f->p, &first)) : ""));
}

/*
 * Time in the run queue of threads that are idle for most of their time. On a busy machine each of
 * their wake-ups takes long; that is a matter of latency, they have little to do nevertheless.
 */
static uint64_t queue_of_idle_ns(const struct findings *f)
{
	uint64_t ns = 0;
	for (size_t i = 0; i < f->l->nr_rows; i++) {
		const struct breakdown_row *t = &f->l->rows[i];
		if (view_pct(breakdown_idle_ns(t), breakdown_sum_ns(t)) >= IDLE_OF_THREAD)
			ns += t->ns[WAIT_RUN_QUEUE];
	}
	return ns;
}

static bool is_idle(const struct findings *f)
{
	const struct breakdown_row *total = &f->l->total;
	uint64_t queue_ns = queue_of_idle_ns(f);
	return view_pct(breakdown_idle_ns(total), breakdown_sum_ns(total) - queue_ns) >= IDLE_PCT &&
	       (double)(f->active_ns - queue_ns) <= IDLE_THREADS * (double)f->l->window_ns;
}

static const char *idle_for_others(const struct findings *f);

static int find_idle(struct findings *f, struct err *err)
{
	const struct breakdown_row *total = &f->l->total;
	double idle = view_pct(breakdown_idle_ns(total), breakdown_sum_ns(total));
	bool is_all = f->scope == SELECT_ALL;
	CLEANUP(arena_release) struct arena a = {0};
	struct select_spec own = *f->spec;
	struct selection sel;
	own.event = table_key(TABLE_OFF_CPU);
	own.flags |= SELECT_IDLE;
	TRY(select_run(&a, f->p, &own, &sel, err));
	struct waitframes *wf = waitframes_new(&a, f->p);
	const char *most = longest_idle(f, &sel, wf);
	find_held_throughout(f, &sel, wf);
	add(f, 100,
	    arena_fmt(
		    &f->r->arena,
		    "%smostly idle, unless it waits there for an answer or for another thread: %s %% of %s was spent in "
		    "park, poll, sleep or waits for children%s%s",
		    is_all ? "" : "what is selected was ", pct_text(idle).s,
		    is_all ? "thread time" : "its thread time", most,
		    is_all ? idle_for_others(f) : ""));
	return 0;
}

/* ---- CPU time and locks ------------------------------------------------------------------- */

static void find_cpu(struct findings *f)
{
	double on_cpu = active_pct(f, f->l->total.ns[WAIT_ON_CPU]);
	if (on_cpu >= ON_CPU_PCT)
		add(f, 0, /* it is no wait: after these */
		    arena_fmt(&f->r->arena, "on CPU: %s %% of %s%s", pct_text(on_cpu).s, f->active,
			      tables_has_rows(f->p, TABLE_SAMPLES) ? ""
								   : "; assay cpu shows where"));
}

static void find_shortage(struct findings *f, bool is_all_idle)
{
	double starved = share_of(f, WAIT_RUN_QUEUE, STARVED_PCT);
	uint64_t window_ns = f->l->window_ns;
	uint64_t starved_ns = f->l->total.ns[WAIT_RUN_QUEUE];
	if (!starved || view_pct(starved_ns, window_ns) < STARVED_WALL)
		return;
	uint64_t held_ns = profile_get_fact_nr(f->p, FACT_THROTTLED_NS);
	bool is_little = view_pct(f->active_ns, breakdown_sum_ns(&f->l->total)) < 100 - IDLE_PCT;
	if (is_all_idle && is_little && held_ns < EVIDENCE_NS)
		return; /* a large share of next to nothing */
	const char *quota = "";
	if (f->scope == SELECT_ALL && held_ns >= EVIDENCE_NS)
		quota = arena_fmt(&f->r->arena,
				  "; the CPU quota of its cgroup held back its threads for %s",
				  num_ns(held_ns).s);
	add(f, starved,
	    arena_fmt(&f->r->arena,
		      "%s: %s %% of %s was spent runnable in the run queue, while %s threads used "
		      "%s CPUs%s",
		      held_ns >= starved_ns / 2 && quota[0] ? "CPU quota" : "CPU shortage",
		      pct_text(starved).s, f->active, f->scope == SELECT_ALL ? "its" : "these",
		      breakdown_cpus_text(f->l).s, quota));
}

/* "; held longest by thread t in f", of a row of the table of locks. */
static const char *held_by(const struct findings *f, const union cell *lock)
{
	if (!lock[9].text[0])
		return "";
	return arena_fmt(&f->r->arena, "; held longest by %s%s%s", lock[9].text,
			 lock[10].text[0] ? " in " : "", lock[10].text);
}

/* ", which waits for thread t in f", or what else the holder was doing. */
static const char *holder_did(const struct findings *f, const union cell *lock)
{
	static const char chain[] = "waits for ";
	bool is_chain = lock[9].text[0] && !strncmp(lock[11].text, chain, strlen(chain));
	if (!lock[11].text[0])
		return "";
	return arena_fmt(
		&f->r->arena, "%s %s",
		is_chain ? ", which" : "; meanwhile the lock holder was doing:", lock[11].text);
}

static void find_locks(struct findings *f)
{
	const struct report_table *locks = table_of(f->r, "locks");
	const union cell *top = locks ? locks->cells : NULL;
	double pct = share_of(f, WAIT_LOCK, WAIT_PCT);
	if (!pct || !top)
		return;
	bool is_one = top[1].d >= TOP_LOCK_PCT;
	bool is_gil = is_one && strstr(top[7].text, LOCK_GIL);
	/* What waits for the GIL waits for the Python code that runs: it comes before that. */
	double with_cpu = is_gil ? active_pct(f, f->l->total.ns[WAIT_ON_CPU]) : 0;
	bool is_place = is_one && !strncmp(top[7].text, LOCKED_IN, strlen(LOCKED_IN));
	add(f, pct + with_cpu,
	    arena_fmt(&f->r->arena,
		      "lock contention: %s %% of %s was spent waiting for locks%s%s%s%s%s",
		      pct_text(pct).s, f->active,
		      is_one ? arena_fmt(&f->r->arena, "; %s %% of that for %s waiters in ",
					 pct_text(top[1].d).s,
					 is_place ? "locks with" : "one lock,")
			     : "",
		      is_one ? top[8].text : "",
		      is_gil ? " (CPython's GIL: one thread runs Python code at a time)" : "",
		      is_one ? held_by(f, top) : "", is_one ? holder_did(f, top) : ""));
}

/* Also of a program that is idle otherwise, and before all else. */
static void find_deadlock(struct findings *f, const struct blame *b)
{
	const char *text = deadlock_text(&f->r->arena, b, f->l->window_ns);
	if (text)
		add(f, DEADLOCK_PCT, text);
}

/* ---- by reason ------------------------------------------------------------------------------ */

struct waits_kind {
	enum wait_reason reason;
	const char *text;
};

/* Returns how many were found. */
static unsigned find_waits(struct findings *f, const struct waits_kind *kinds, size_t n)
{
	unsigned nr = 0;
	for (size_t i = 0; i < n; i++) {
		double pct = share_of(f, kinds[i].reason, WAIT_PCT);
		if (!pct)
			continue;
		add(f, pct,
		    arena_fmt(&f->r->arena, "%s %% of %s was spent %s%s", pct_text(pct).s,
			      f->active, kinds[i].text, most_in(f, kinds[i].reason)));
		nr++;
	}
	return nr;
}

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
static void fill_ended(const struct findings *f, struct map *ended)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(map_release) struct map waiters = {0};
	CLEANUP(map_release) struct map waiters_at = {0};
	struct waitframes *wf = waitframes_new(&a, f->p);
	for (size_t i = 0; i < f->sel->nr_tagged; i++) {
		const struct select_tagged *row = &f->sel->tagged[i];
		const struct tag *tag = &f->p->tags.p[row->tag];
		if (!is_permit(row, tag))
			continue;
		(void)map_put(&waiters, key_of(tag, row->task), NULL);
		(void)map_put(&waiters_at, key_at(wf, row->stack, row->task), NULL);
	}
	for (size_t i = 0; i < f->sel->nr_tagged; i++) {
		const struct select_tagged *row = &f->sel->tagged[i];
		const struct tag *tag = &f->p->tags.p[row->tag];
		if (!is_permit(row, tag) || !tag->other)
			continue;
		bool is_waiter = map_get(&waiters, key_of(tag, tag->other)) ||
				 map_get(&waiters_at, key_at(wf, row->stack, tag->other)) ||
				 is_within(f->p, wf, row->stack, tag->other_stack);
		*map_put(ended, tag->object, NULL) |= is_waiter ? ENDED_BY_WAITER : ENDED_BY_OTHER;
	}
}

/* Returns 1 if threads were found that wait for permits. */
static unsigned find_permits(struct findings *f)
{
	CLEANUP(map_release) struct map ended = {0};
	double pct = share_of(f, WAIT_PERMIT, WAIT_PCT);
	uint64_t passed_ns = 0;
	if (!pct)
		return 0;
	fill_ended(f, &ended);
	for (size_t i = 0; i < f->sel->nr_tagged; i++) {
		const struct select_tagged *row = &f->sel->tagged[i];
		const struct tag *tag = &f->p->tags.p[row->tag];
		const uint32_t *who = is_permit(row, tag) ? map_get(&ended, tag->object) : NULL;
		if (who && *who == ENDED_BY_OTHER)
			passed_ns += (uint64_t)MAX(row->values[1], 0);
	}
	bool is_passed = passed_ns > f->l->total.ns[WAIT_PERMIT] / 2;
	add(f, pct,
	    arena_fmt(&f->r->arena, "%s %% of %s was spent %s%s", pct_text(pct).s, f->active,
		      is_passed ? "waiting for semaphores that other threads post: for work or for "
				  "a result, not for permits"
				: "waiting for semaphores or for items of a pool (permits)",
		      most_in(f, WAIT_PERMIT)));
	return !is_passed;
}

/* Waits for others that more load would not end, also of programs that are mostly idle. */
static unsigned find_limits(struct findings *f)
{
	static const struct waits_kind limits[] = {
		{WAIT_BACKPRESSURE, "sending into full channels, pipes or sockets (back-pressure): "
				    "the receivers are slower than the senders"},
	};
	return find_waits(f, limits, ARRAY_LEN(limits)) + find_permits(f);
}

static void find_others(struct findings *f)
{
	static const struct waits_kind kinds[] = {
		{WAIT_JOIN, "waiting until other threads end or arrive (join, barrier, future)"},
		{WAIT_NET, "waiting for the other end of sockets: for an answer or a request"},
		{WAIT_FSYNC, "waiting for data to reach the disk (fsync)"},
		{WAIT_FILE_READ, "waiting for file reads"},
		{WAIT_FILE_WRITE, "waiting for file writes"},
		{WAIT_FILE_OTHER, "waiting in calls of the file system"},
		{WAIT_SYNC, "waiting on futexes, for a lock or for work: no function that is known "
			    "to wait for either is on the stacks"},
		{WAIT_FAULT, "waiting for pages to be read (major faults)"},
		{WAIT_RECLAIM, "reclaiming memory (memory pressure)"},
		{WAIT_MMAP_LOCK, "waiting for the mmap lock of the process"},
		{WAIT_YIELD, "in the run queue after sched_yield: threads that wait in a loop give "
			     "the CPU away"},
	};
	(void)find_waits(f, kinds, ARRAY_LEN(kinds));
}

/* Waits below the poll functions of futures, whatever their reasons; also of idle programs. */
static void find_executors(struct findings *f)
{
	uint64_t ns = 0;
	uint64_t nr = 0;
	for (size_t i = 0; i < f->sel->nr_tagged; i++) {
		const struct select_tagged *row = &f->sel->tagged[i];
		if (!reason_blocks_executor(f->sel->reasons, row->stack, row->reason))
			continue;
		ns += (uint64_t)MAX(row->values[1], 0);
		nr += (uint64_t)MAX(row->values[0], 0);
	}
	const struct report_table *t = table_of(f->r, "blocked_executors");
	double pct = active_pct(f, ns);
	if (pct < EXECUTOR_PCT || (ns < EVIDENCE_NS && nr < EVIDENCE_WAITS) || !t)
		return;
	size_t at = column_of(t, "reason");
	add(f, pct,
	    arena_fmt(&f->r->arena,
		      "blocked executor: %s %% of %s was spent in calls that block below the poll "
		      "of an async task, so that no other task of the thread runs; most in %s (%s)",
		      pct_text(pct).s, f->active, t->cells[at + 1].text, t->cells[at].text));
}

/* ---- by blocking thread -------------------------------------------------------------------- */

/* Adds up, of one blamed thread's name, function and activity. */
struct culprit {
	const char *thread;
	const char *function;
	enum wait_reason doing;
	uint64_t ns;
};

static const char *doing_text(const struct culprit *c)
{
	return c->doing == WAIT_ON_CPU ? "on CPU until then" : wait_text(c->doing);
}

/* Whose waits are added up. */
enum culprits { OF_IDLE_WAITS, OF_PIPES, OF_OTHERS /* neither idle nor for locks */ };

static bool is_in(const struct blame_row *row, enum culprits which)
{
	switch (which) {
	case OF_IDLE_WAITS:
		return wait_is_idle(row->reason);
	case OF_PIPES:
		return row->reason == WAIT_PIPE;
	case OF_OTHERS:
		break;
	}
	return row->reason != WAIT_LOCK && !wait_is_idle(row->reason);
}

/* Returns the time of the waits for recorded threads that were at work, and the thread with most of it. */
static uint64_t top_culprit(const struct findings *f, const struct blame *b, enum culprits which,
			    struct culprit *ret_top)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(intern_release) struct intern names = {0};
	CLEANUP(map_release) struct map index = {0};
	CLEANUP(buf_release) struct buf text = {0};
	VEC(struct culprit) all = {0};
	struct waitframes *wf = waitframes_new(&a, f->p);
	uint64_t ns = 0;
	for (size_t i = 0; i < b->nr_rows; i++) {
		const struct blame_row *row = &b->rows[i];
		struct waitframe frame = waitframe_of(wf, row->blocker_stack);
		if (!is_in(row, which) || !row->blocker || row->doing == WAIT_UNKNOWN ||
		    blame_is_for_work(row))
			continue;
		ns += row->ns;
		struct culprit c = {threads_name(f->p, row->blocker),
				    arena_strdup(&f->r->arena, waitframe_name(f->p, &frame)),
				    row->doing, 0};
		buf_clear(&text);
		buf_addf(&text, "%s\n%s\n%u", c.thread, c.function, row->doing);
		bool is_new;
		uint32_t *at = map_put(&index, intern_add_str(&names, buf_str(&text)), &is_new);
		if (is_new) {
			*at = (uint32_t)all.n;
			vec_push(&all, c);
		}
		all.p[*at].ns += row->ns;
		if (all.p[*at].ns > ret_top->ns)
			*ret_top = all.p[*at];
	}
	vec_release(&all);
	return ns;
}

/*
 * What an idle program's sentence ends with: for whom it waits, if recorded threads ended most of its
 * idle waits. Whether these were answers or new work is not known.
 */
static const char *idle_for_others(const struct findings *f)
{
	static const char no_load[] = "; record under load to see what slows the program down";
	CLEANUP(arena_release) struct arena a = {0};
	struct select_spec own = *f->spec;
	struct blame b = {0};
	struct culprit top = {0};
	own.flags |= SELECT_IDLE;
	if (!tables_has_rows(f->p, TABLE_BLAME) || blame_make(&a, f->p, &own, &b, NULL))
		return no_load;
	uint64_t ns = top_culprit(f, &b, OF_IDLE_WAITS, &top);
	double pct = view_pct(ns, breakdown_idle_ns(&f->l->total));
	if (pct < IDLE_FOR_OTHERS_PCT || !top.ns)
		return no_load;
	return arena_fmt(
		&f->r->arena,
		"; threads of the recording ended %s %% of that, the largest part (%s %%) %s in %s "
		"(%s): assay report --blame --idle",
		pct_text(pct).s, pct_text(view_pct(top.ns, ns)).s, top.thread, top.function,
		doing_text(&top));
}

/*
 * Who reads a pipe waits for work or for an answer. If its writers worked for most of the time, they are
 * what it waited for. Else it comes after what slows the program down for sure.
 */
static void find_pipes(struct findings *f, const struct blame *b)
{
	struct culprit top = {0};
	double pct = share_of(f, WAIT_PIPE, WAIT_PCT);
	if (!pct)
		return;
	uint64_t ns = top_culprit(f, b, OF_PIPES, &top);
	bool is_worked = top.ns && ns >= f->l->total.ns[WAIT_PIPE] / 2;
	const char *why =
		", whose writers were idle themselves or are not recorded: for work (then "
		"it is idle) or for an answer";
	if (is_worked)
		why = arena_fmt(
			&f->r->arena,
			"; their writers, or whom those waited for, were at work: the largest "
			"part (%s %%) %s in %s (%s)",
			pct_text(view_pct(top.ns, ns)).s, top.thread, top.function,
			doing_text(&top));
	add(f, is_worked ? pct : AFTER_OTHERS,
	    arena_fmt(&f->r->arena,
		      "%s %% of %s was spent waiting for data from pipes, terminals or similar%s%s",
		      pct_text(pct).s, f->active, is_worked ? most_in(f, WAIT_PIPE) : why,
		      is_worked ? why : most_in(f, WAIT_PIPE)));
}

/*
 * Waits other than for locks that other threads ended: for what those did. It explains waits that the
 * other sentences name, so it comes after them.
 */
static void find_culprits(struct findings *f, const struct blame *b)
{
	struct culprit top = {0};
	uint64_t ns = top_culprit(f, b, OF_OTHERS, &top);
	double pct = active_pct(f, ns);
	bool is_clear = view_pct(b->reason_ns[WAIT_SYNC], b->of_ns) < UNCLEAR_PCT;
	if (pct < WAIT_PCT || !top.ns || ns < EVIDENCE_NS)
		return;
	add(f, pct * 0.9,
	    arena_fmt(&f->r->arena,
		      "waiting for other threads%s: %s %% of %s; the largest part (%s %%) for %s%s "
		      "in %s (%s)",
		      is_clear ? ", not for locks" : "", pct_text(pct).s, f->active,
		      pct_text(view_pct(top.ns, ns)).s, top.thread,
		      top.doing == WAIT_ON_CPU ? ", which ended the waits" : "", top.function,
		      doing_text(&top)));
}

/* Findings on the report are of CPU samples: behind those of longer waits, before the others. */
static void add_findings(struct findings *f, double cpu_pct)
{
	struct report *r = f->r;
	size_t nr_cpu = r->findings.n;
	CLEANUP(free_p) const char **cpu = xmemdup(r->findings.p, nr_cpu * sizeof(*cpu));
	size_t nr_longer = 0;
	vec_foreach(one, &f->all) {
		report_finding(r, "%s", one->text);
		nr_longer += one->pct > cpu_pct;
	}
	if (!nr_cpu || !nr_longer)
		return;
	memmove(r->findings.p, r->findings.p + nr_cpu, nr_longer * sizeof(*cpu));
	memcpy(r->findings.p + nr_longer, cpu, nr_cpu * sizeof(*cpu));
}

/*
 * Says so if less than half of the thread time was accounted for: then most is not known, and shares of
 * the rest would be false. (Some kernels hide the switches of protected processes.)
 */
static bool is_mostly_unknown(const struct breakdown *l, struct report *r)
{
	double covered = breakdown_covered_pct(&l->total);
	if (covered >= COVERED_PCT)
		return false;
	report_finding(
		r,
		"only %s %% of the thread time is accounted for: what the threads did in the "
		"rest is not known",
		pct_text(covered).s);
	return true;
}

int findings_report(struct report *r, const struct selection *sel, const struct breakdown *l,
		    const struct select_spec *spec, struct err *err)
{
	struct findings f = {.r = r,
			     .p = sel->p,
			     .l = l,
			     .sel = sel,
			     .spec = spec,
			     .active_ns =
				     breakdown_sum_ns(&l->total) - breakdown_idle_ns(&l->total),
			     .active = "non-idle thread time",
			     .scope = select_scope(spec)};
	int rc = 0;
	CLEANUP(arena_release) struct arena a = {0};
	struct blame b = {0};
	if (is_mostly_unknown(l, r))
		return 0;
	if (tables_has_rows(f.p, TABLE_BLAME))
		(void)blame_make(&a, f.p, spec, &b, NULL); /* fails only as the page itself did */
	if (f.scope == SELECT_THREADS)
		f.active = "the selection's non-idle thread time";
	if (b.sel.p)
		find_deadlock(&f, &b);
	find_executors(&f);
	unsigned nr_limits = find_limits(&f);
	if (!nr_limits && is_idle(&f)) {
		rc = find_idle(&f, err);
		find_shortage(&f, true);
	} else {
		find_cpu(&f);
		find_shortage(&f, false);
		find_locks(&f);
		find_others(&f);
		find_pipes(&f, &b);
		find_culprits(&f, &b);
	}
	if (f.all.n)
		qsort(f.all.p, f.all.n, sizeof(*f.all.p), by_share);
	add_findings(&f, view_pct(l->total.ns[WAIT_ON_CPU], f.active_ns));
	vec_release(&f.all);
	return rc;
}
