/* The first page of a recording of waits; see waittables.h. */
#include "base/base.h"
#include "analyze/wait/waittables.h"

#include "analyze/stacks/threads.h"
#include "analyze/wait/blame.h"
#include "analyze/wait/frames.h"
#include "base/clock.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/text/num.h"

/* Thresholds of findings, as shares of non-idle thread time. */
#define IDLE_PCT       95.0 /* of total thread time */
#define STARVED_PCT    10.0 /* in the run queue */
#define LOCK_PCT       10.0 /* waiting for locks */
#define TOP_LOCK_PCT   40.0 /* one lock's share of lock wait time */
#define IO_PCT         10.0
#define EXECUTOR_PCT   1.0              /* below the poll of an async task */
#define OTHERS_PCT     10.0             /* waiting for what other threads did, not for locks */
#define EVIDENCE_NS    (50 * NS_PER_MS) /* less wait time than this is no evidence ... */
#define EVIDENCE_WAITS 200              /* ... unless there are that many waits */
#define CLOSES_PCT     0.5
#define PAGE_ROWS      10

struct page {
	struct report *r;
	const struct profile *p;
	const struct breakdown *l;
	const struct selection *sel;
	uint64_t active_ns;
	const char *active; /* what active_ns is, for sentences */
	enum select_scope scope;
};

static double active_pct(const struct page *pg, uint64_t ns)
{
	return view_pct(ns, pg->active_ns);
}

static bool has_evidence(uint64_t ns, uint64_t nr)
{
	return ns >= EVIDENCE_NS || nr >= EVIDENCE_WAITS;
}

static struct num_text pct_text(double pct)
{
	return num_double(pct, pct < 10 ? 1 : 0);
}

/* ---- how far the numbers go ---------------------------------------------------------------- */

static void note_accuracy(const struct page *pg)
{
	const struct breakdown *l = pg->l;
	double covered = breakdown_covered_pct(&l->total);
	uint64_t off_ns = breakdown_sum_ns(&l->total) - l->total.ns[WAIT_ON_CPU];
	if (l->polled_ns)
		report_note(pg->r,
			    "%s %% of off-CPU time was measured by polling /proc, not from context "
			    "switches: its wait reasons are estimates",
			    pct_text(view_pct(l->polled_ns, off_ns)).s);
	if (covered < 100 - CLOSES_PCT) /* an excess is noted with the breakdown */
		report_note(pg->r, "the breakdown covers %s %% of total thread time",
			    pct_text(covered).s);
	uint64_t futex = l->total.ns[WAIT_SYNC] + l->total.ns[WAIT_LOCK] + l->total.ns[WAIT_PARK];
	double unreported = view_pct(l->total.ns[WAIT_SYNC], futex);
	if (unreported >= 10 && has_evidence(l->total.ns[WAIT_SYNC], 0))
		report_note(
			pg->r,
			"%s %% of futex wait time may be lock waits or parking: no known locking "
			"function is on those stacks",
			pct_text(unreported).s);
}

static void note_window(const struct page *pg, const struct select_spec *spec)
{
	if (spec->time && pg->p->start_ns)
		report_note(pg->r, "waits are stored per second: shown are the whole seconds that "
				   "begin in the time window");
	if (!spec->min_duration && !spec->max_duration)
		return;
	report_note(pg->r,
		    "durations are stored in power-of-two buckets: shown are waits of %s to "
		    "%s",
		    num_ns(pg->sel->min_ns).s,
		    pg->sel->max_ns ? num_ns(pg->sel->max_ns).s : "any length");
}

/* ---- what it comes to ---------------------------------------------------------------------- */

static bool note_idle(const struct page *pg)
{
	const struct breakdown_row *total = &pg->l->total;
	double idle = view_pct(breakdown_idle_ns(total), breakdown_sum_ns(total));
	if (idle < IDLE_PCT)
		return false;
	report_note(pg->r,
		    "%smostly idle: %s %% of %s was spent in idle waits (park, poll, sleep)%s",
		    pg->scope == SELECT_ALL ? "" : "what is selected was ", pct_text(idle).s,
		    pg->scope == SELECT_ALL ? "thread time" : "its thread time",
		    pg->scope == SELECT_ALL
			    ? "; record under load to see what slows the program down"
			    : "");
	return true;
}

static void note_cpu_shortage(const struct page *pg)
{
	const struct breakdown_row *total = &pg->l->total;
	double pct = active_pct(pg, total->ns[WAIT_RUN_QUEUE]);
	if (pct < STARVED_PCT ||
	    !has_evidence(total->ns[WAIT_RUN_QUEUE], total->nr_waits[WAIT_RUN_QUEUE]))
		return;
	report_note(pg->r, "CPU shortage: %s %% of %s was spent runnable in the run queue",
		    pct_text(pct).s, pg->active);
}

/* Returns the table with a key, or NULL if there is none or it has no rows. */
static const struct report_table *table_of(const struct report *r, const char *key)
{
	vec_foreach(t, &r->tables)
		if (!strcmp(t->key, key) && t->nr_rows)
			return t;
	return NULL;
}

static void note_locks(const struct page *pg)
{
	const struct breakdown_row *total = &pg->l->total;
	double pct = active_pct(pg, total->ns[WAIT_LOCK]);
	const struct report_table *locks = table_of(pg->r, "locks");
	const union cell *top = locks ? locks->cells : NULL;
	if (pct < LOCK_PCT || !top ||
	    !has_evidence(total->ns[WAIT_LOCK], total->nr_waits[WAIT_LOCK]))
		return;
	bool is_one = top[1].d >= TOP_LOCK_PCT;
	bool is_place = is_one && !strncmp(top[7].text, LOCKED_IN, strlen(LOCKED_IN));
	report_note(pg->r, "lock contention: %s %% of %s was spent waiting for locks%s%s%s",
		    pct_text(pct).s, pg->active,
		    is_one ? arena_fmt(&pg->r->arena, "; %s %% of that for %s waiters in ",
				       pct_text(top[1].d).s, is_place ? "locks with" : "one lock,")
			   : "",
		    is_one ? top[8].text : "",
		    is_one && top[11].text[0]
			    ? arena_fmt(&pg->r->arena, "; meanwhile the lock holder was doing: %s",
					top[11].text)
			    : "");
}

static size_t column_of(const struct report_table *t, const char *key)
{
	size_t at = 0;
	while (at + 1 < t->nr_columns && strcmp(t->columns[at].key, key))
		at++;
	return at;
}

/* Returns "; most in FUNCTION" for the function that spent most time for a reason. */
static const char *most_in(const struct page *pg, enum wait_reason reason)
{
	const struct report_table *t = table_of(pg->r, "waiting_functions");
	size_t at = t ? column_of(t, "reason") : 0;
	for (size_t i = 0; t && i < t->nr_rows; i++) {
		const union cell *row = &t->cells[i * t->nr_columns];
		if (!strcmp(row[at].text, wait_key(reason)))
			return arena_fmt(&pg->r->arena, "; most in %s", row[at + 1].text);
	}
	return "";
}

struct finding {
	enum wait_reason reason;
	const char *text;
};

static unsigned note_findings(const struct page *pg, const struct finding *kinds, size_t n)
{
	unsigned nr = 0;
	for (size_t i = 0; i < n; i++) {
		uint64_t ns = pg->l->total.ns[kinds[i].reason];
		double pct = active_pct(pg, ns);
		if (pct < IO_PCT || !has_evidence(ns, pg->l->total.nr_waits[kinds[i].reason]))
			continue;
		report_note(pg->r, "%s %% of %s was spent %s%s", pct_text(pct).s, pg->active,
			    kinds[i].text, most_in(pg, kinds[i].reason));
		nr++;
	}
	return nr;
}

/* Waits for other threads. Returns how many were found that more load would not end. */
static unsigned note_others(const struct page *pg)
{
	static const struct finding limits[] = {
		{WAIT_BACKPRESSURE, "sending into full channels (back-pressure): the receivers are "
				    "slower than the senders"},
		{WAIT_PERMIT, "waiting for semaphores or for items of a pool (permits)"},
	};
	static const struct finding joins[] = {
		{WAIT_JOIN, "waiting until other threads end or arrive (join, barrier, future)"},
	};
	unsigned nr = note_findings(pg, limits, ARRAY_LEN(limits));
	(void)note_findings(pg, joins, ARRAY_LEN(joins)); /* as the main thread of a server */
	return nr;
}

/* Waits below the poll functions of futures, whatever their reasons; also of idle programs. */
static void note_executors(const struct page *pg)
{
	uint64_t ns = 0;
	uint64_t nr = 0;
	for (size_t i = 0; i < pg->sel->nr_tagged; i++) {
		const struct select_tagged *row = &pg->sel->tagged[i];
		if (!reason_blocks_executor(pg->sel->reasons, row->stack, row->reason))
			continue;
		ns += (uint64_t)MAX(row->values[1], 0);
		nr += (uint64_t)MAX(row->values[0], 0);
	}
	const struct report_table *t = table_of(pg->r, "blocked_executors");
	if (active_pct(pg, ns) < EXECUTOR_PCT || !has_evidence(ns, nr) || !t)
		return;
	size_t at = column_of(t, "reason");
	report_note(pg->r,
		    "blocked executor: %s %% of %s was spent in calls that block below the poll of "
		    "an async task, so that no other task of the thread runs; most in %s (%s)",
		    pct_text(active_pct(pg, ns)).s, pg->active, t->cells[at + 1].text,
		    t->cells[at].text);
}

/* Adds up, of one blamed thread's name, function and activity. */
struct culprit {
	const char *thread;
	const char *function;
	enum wait_reason doing;
	uint64_t ns;
};

static uint64_t top_culprit(const struct page *pg, const struct blame *b, struct culprit *ret_top)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(intern_release) struct intern names = {0};
	CLEANUP(map_release) struct map index = {0};
	CLEANUP(buf_release) struct buf text = {0};
	VEC(struct culprit) all = {0};
	struct waitframes *wf = waitframes_new(&a, pg->p);
	uint64_t ns = 0;
	for (size_t i = 0; i < b->nr_rows; i++) {
		const struct blame_row *row = &b->rows[i];
		struct waitframe f = waitframe_of(wf, row->blocker_stack);
		if (row->reason == WAIT_LOCK || wait_is_idle(row->reason) || !row->blocker ||
		    row->doing == WAIT_UNKNOWN)
			continue;
		ns += row->ns;
		struct culprit c = {
			arena_strdup(&pg->r->arena, threads_name(&text, pg->p, row->blocker)),
			arena_strdup(&pg->r->arena, waitframe_name(pg->p, &f)), row->doing, 0};
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

/* Waits other than for locks that other threads ended: for what those did. */
static void note_culprits(const struct page *pg, const struct select_spec *spec)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct blame b;
	struct culprit top = {0};
	if (!tables_has_rows(pg->p, TABLE_BLAME) || blame_make(&a, pg->p, spec, &b, NULL))
		return;
	uint64_t ns = top_culprit(pg, &b, &top);
	double pct = active_pct(pg, ns);
	if (pct < OTHERS_PCT || !top.ns || !has_evidence(ns, 0))
		return;
	report_note(
		pg->r,
		"waiting for other threads, not for locks: %s %% of %s; the largest part (%s %%) "
		"for %s in %s (%s)",
		pct_text(pct).s, pg->active, pct_text(view_pct(top.ns, ns)).s, top.thread,
		top.function, top.doing == WAIT_ON_CPU ? "on CPU" : wait_text(top.doing));
}

static void note_io(const struct page *pg)
{
	static const struct finding kinds[] = {
		{WAIT_FSYNC, "waiting for data to reach the disk (fsync)"},
		{WAIT_FILE_READ, "waiting for file reads"},
		{WAIT_FILE_WRITE, "waiting for file writes"},
		{WAIT_FAULT, "waiting for pages to be read (major faults)"},
		{WAIT_RECLAIM, "reclaiming memory (memory pressure)"},
		{WAIT_MMAP_LOCK, "waiting for the mmap lock of the process"},
		{WAIT_YIELD, "in the run queue after sched_yield: threads that wait in a loop give "
			     "the CPU away"},
	};
	(void)note_findings(pg, kinds, ARRAY_LEN(kinds));
}

/* ---- the page ------------------------------------------------------------------------------ */

static void add_facts(const struct page *pg)
{
	const struct breakdown_row *total = &pg->l->total;
	uint64_t nr = total->nr_voluntary + total->nr_involuntary;
	report_fact_duration(pg->r, pg->l->window_ns);
	if (pg->scope != SELECT_ROWS)
		report_fact(pg->r, FACT_CONTEXT_SWITCHES,
			    view_of_selection(pg->r, pg->sel, num_count(nr).s));
}

static void add_hints(struct report *r, const struct profile *p, const char *input)
{
	report_hint(r, &(struct report_hint){HINT_FLAME, input, {{0}}});
	report_hint(r, &(struct report_hint){HINT_REPORT, input, {{HINT_TREE, NULL}}});
	if (tables_has_rows(p, TABLE_BLAME))
		report_hint(r, &(struct report_hint){HINT_REPORT, input, {{HINT_BLAME, NULL}}});
	report_hint(r, &(struct report_hint){HINT_REPORT, input, {{HINT_BY, "thread"}}});
}

static int select_waits(struct arena *a, const struct profile *p, const struct select_spec *spec,
			struct selection *ret_sel, struct err *err)
{
	struct select_spec own = *spec;
	own.event = table_key(TABLE_OFF_CPU);
	return select_run(a, p, &own, ret_sel, err);
}

/* Sentences on the whole of threads' time: not from a part of their waits. */
static void note_causes(const struct page *pg, const struct select_spec *spec)
{
	if (pg->scope == SELECT_ROWS)
		return;
	note_executors(pg);
	bool is_limited = note_others(pg);
	if (!is_limited && note_idle(pg))
		return;
	note_cpu_shortage(pg);
	note_locks(pg);
	note_culprits(pg, spec);
	note_io(pg);
}

static int fill_page(struct report *r, const struct select_spec *spec, const struct selection *sel,
		     const struct view_limits *limits, struct err *err)
{
	CLEANUP(arena_release) struct arena a = {0};
	const struct profile *p = sel->p;
	struct breakdown l;
	TRY(breakdown_make(&a, p, spec, &l, err));
	struct page pg = {.r = r,
			  .p = p,
			  .l = &l,
			  .sel = sel,
			  .active_ns = breakdown_sum_ns(&l.total) - breakdown_idle_ns(&l.total),
			  .active = "non-idle thread time",
			  .scope = select_scope(spec)};
	if (pg.scope == SELECT_THREADS)
		pg.active = "the selection's non-idle thread time";
	struct view_limits few = *limits;
	few.max_rows = limits->max_rows ? MIN(limits->max_rows, PAGE_ROWS) : 0;
	add_facts(&pg);
	breakdown_report(r, &l);
	breakdown_threads_report(r, &l, BREAKDOWN_GROUPS, &few);
	waits_table(r, sel, WAITS_FUNCTIONS, limits);
	waits_table(r, sel, WAITS_EXECUTORS, &few);
	waits_locks(r, sel, spec, &few);
	waits_table(r, sel, WAITS_OBJECTS, &few);
	note_causes(&pg, spec);
	note_accuracy(&pg);
	note_window(&pg, spec);
	return 0;
}

int waits_page(struct report *r, const struct profile *p, const struct select_spec *spec,
	       const struct view_limits *limits, struct err *err)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct selection sel;
	TRY(select_waits(&a, p, spec, &sel, err));
	view_note_filtered(r, &sel);
	return fill_page(r, spec, &sel, limits, err);
}

int waits_overview(struct report *r, const struct profile *p, const struct select_spec *spec,
		   const char *input, const struct view_limits *limits, struct err *err)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct selection sel;
	TRY(select_waits(&a, p, spec, &sel, err));
	view_begin(r, &sel, "off-CPU time");
	int rc = fill_page(r, spec, &sel, limits, err);
	if (!rc && input && sel.nr_samples)
		add_hints(r, p, input);
	return rc;
}
