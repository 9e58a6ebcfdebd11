/*
 * Chains of causes; see chain.h. A thread is walked backwards from the end of the span:
 *
 *	    run            off    woken   on        run
 *	──────────────────┤ blocked │ queue ├──────────────────┤
 *	                   waker's chain                  stack of the next interval
 *
 * A row has the time of the run before its interval, so each run is known by the interval after it.
 * A thread's last run has none: it is known to run at the end of the span if it woke somebody.
 */
#include "base/base.h"
#include "analyze/wait/chain.h"

#include <stdlib.h>

#define DEPTH_MAX 32
#define PARTS_MAX 100000
/* The start of a run and the end of the interval before it may differ by this, see piece.run_ns. */
#define SLACK_NS 20000

/* A row, and the run before it. */
struct piece {
	int32_t tid;
	uint32_t row;
	uint64_t run_ns; /* start of the run */
	uint64_t cpu_ns; /* from here it is CPU time; before, it is stolen */
	uint64_t off_ns;
	uint64_t woken_ns;
	uint64_t on_ns;
};

struct chains {
	const struct profile *p;
	const struct table *t;
	const struct piece *pieces; /* by thread and time */
	size_t n;
	const int32_t *recorded; /* TIDs of recorded threads, sorted */
	size_t nr_recorded;
};

/* ---- the intervals of each thread --------------------------------------------------------- */

static int by_thread(const void *a, const void *b)
{
	const struct piece *x = a;
	const struct piece *y = b;
	return COMPARE(x->tid, y->tid) ?: COMPARE(x->off_ns, y->off_ns);
}

static int by_number(const void *a, const void *b)
{
	return COMPARE(*(const int32_t *)a, *(const int32_t *)b);
}

static uint64_t column(const struct table *t, size_t i, enum interval_column c)
{
	return (uint64_t)MAX(t->values[i * t->nr_columns + c], 0);
}

static struct piece piece_of(const struct profile *p, const struct table *t, size_t i)
{
	uint64_t off_ns = t->time_ns[i];
	uint64_t ns = MIN(column(t, i, INTERVAL_NS), UINT64_MAX - off_ns);
	uint64_t cpu_ns = MIN(column(t, i, INTERVAL_CPU_NS), off_ns);
	uint64_t stolen_ns = MIN(column(t, i, INTERVAL_STOLEN_NS), off_ns - cpu_ns);
	return (struct piece){.tid = p->tasks.p[t->task[i]].tid,
			      .row = (uint32_t)i,
			      .run_ns = off_ns - cpu_ns - stolen_ns,
			      .cpu_ns = off_ns - cpu_ns,
			      .off_ns = off_ns,
			      .woken_ns = off_ns + ns - MIN(column(t, i, INTERVAL_QUEUE_NS), ns),
			      .on_ns = off_ns + ns};
}

/* Collects the TIDs that have rows of time on a CPU. */
static void find_recorded(struct chains *c, struct arena *a)
{
	const struct table *t = tables_find_rows(c->p, TABLE_ON_CPU);
	size_t nr_tasks = c->p->tasks.n;
	uint8_t *has = arena_calloc(a, nr_tasks + 1, 1);
	for (size_t i = 0; t && i < t->n; i++)
		has[t->task[i]] = 1;
	for (size_t i = 0; i < c->t->n; i++)
		has[c->t->task[i]] = 1;
	int32_t *tids = arena_calloc(a, nr_tasks + 1, sizeof(*tids));
	for (size_t i = 1; i < nr_tasks; i++)
		if (has[i])
			tids[c->nr_recorded++] = c->p->tasks.p[i].tid;
	qsort(tids, c->nr_recorded, sizeof(*tids), by_number);
	c->recorded = tids;
}

struct chains *chains_new(struct arena *a, const struct profile *p)
{
	const struct table *t = tables_find_rows(p, TABLE_INTERVALS);
	if (!t || t->nr_columns < INTERVAL_COLUMNS)
		return NULL;
	struct chains *c = arena_calloc(a, 1, sizeof(*c));
	struct piece *pieces = arena_calloc(a, t->n, sizeof(*pieces));
	for (size_t i = 0; i < t->n; i++)
		pieces[i] = piece_of(p, t, i);
	qsort(pieces, t->n, sizeof(*pieces), by_thread);
	*c = (struct chains){.p = p, .t = t, .pieces = pieces, .n = t->n};
	find_recorded(c, a);
	return c;
}

void chain_parts_release(struct chain_parts *parts)
{
	vec_release(&parts->list);
}

static bool is_recorded(const struct chains *c, int32_t tid)
{
	return bsearch(&tid, c->recorded, c->nr_recorded, sizeof(tid), by_number) != NULL;
}

/* The index of the first interval of a thread that begins at @ns or later; or of a later thread. */
static size_t first_from(const struct chains *c, int32_t tid, uint64_t ns)
{
	const struct piece key = {.tid = tid, .off_ns = ns};
	size_t low = 0;
	size_t high = c->n;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (by_thread(&c->pieces[mid], &key) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static const struct piece *piece_at(const struct chains *c, size_t i, int32_t tid)
{
	return i < c->n && c->pieces[i].tid == tid ? &c->pieces[i] : NULL;
}

/* ---- walking backwards -------------------------------------------------------------------- */

struct walk {
	const struct chains *c;
	struct chain_parts *parts; /* latest first */
};

static void add(struct walk *w, struct chain_part part)
{
	if (part.from_ns < part.to_ns)
		vec_push(&w->parts->list, part);
}

/* Adds the run of a thread in [from, to], of which @next is the interval after it; NULL: none. */
static void add_run(struct walk *w, const struct chain_part *run, const struct piece *next)
{
	struct chain_part part = *run;
	uint64_t cpu_ns = next ? MIN(MAX(next->cpu_ns, run->from_ns), run->to_ns) : run->from_ns;
	uint64_t run_ns = next ? MIN(MAX(next->run_ns, run->from_ns), run->to_ns) : run->from_ns;
	if (run_ns - run->from_ns <= SLACK_NS)
		run_ns = run->from_ns;
	cpu_ns = MAX(cpu_ns, run_ns);
	part.kind = CHAIN_ON_CPU;
	part.from_ns = cpu_ns;
	add(w, part);
	part.kind = CHAIN_STOLEN;
	part.from_ns = run_ns;
	part.to_ns = cpu_ns;
	add(w, part);
	part.kind = CHAIN_UNKNOWN;
	part.stack = 0;
	part.from_ns = run->from_ns;
	part.to_ns = run_ns;
	add(w, part);
}

static void walk_thread(struct walk *w, const struct chain_part *range, unsigned depth);

/* Adds the part [@from_ns, @to_ns] of an interval. */
static void add_interval(struct walk *w, const struct piece *at, uint64_t from_ns, uint64_t to_ns,
			 unsigned depth)
{
	const struct chains *c = w->c;
	uint64_t woken_ns = MIN(MAX(at->woken_ns, from_ns), to_ns);
	struct chain_part part = {.from_ns = woken_ns,
				  .to_ns = to_ns,
				  .kind = CHAIN_RUN_QUEUE,
				  .tid = at->tid,
				  .stack = c->t->stack[at->row],
				  .tag = c->t->tag[at->row]};
	add(w, part);
	part.kind = CHAIN_BLOCKED;
	part.from_ns = from_ns;
	part.to_ns = woken_ns;
	if (from_ns >= woken_ns)
		return;
	const struct tag *tag = &c->p->tags.p[part.tag];
	int32_t waker = c->p->tasks.p[tag->other].tid;
	bool has_waker = tag->other && waker != at->tid &&
			 !(tag->evidence & (EVIDENCE_BY_IRQ | EVIDENCE_SELF)) &&
			 is_recorded(c, waker);
	if (!has_waker || depth == DEPTH_MAX) {
		add(w, part);
		return;
	}
	part.tid = waker;
	part.stack = tag->other_stack;
	part.tag = 0;
	walk_thread(w, &part, depth + 1);
}

/*
 * Adds what a thread did in a range, latest first. It runs at the end of the range or waits then;
 * range->stack: where it runs.
 */
static void walk_thread(struct walk *w, const struct chain_part *range, unsigned depth)
{
	const struct chains *c = w->c;
	size_t i = first_from(c, range->tid, range->to_ns);
	const struct piece *next = piece_at(c, i, range->tid);
	struct chain_part run = *range;
	while (run.to_ns > range->from_ns && w->parts->list.n < PARTS_MAX) {
		const struct piece *at = i ? piece_at(c, --i, range->tid) : NULL;
		run.from_ns = MAX(at ? at->on_ns : 0, range->from_ns);
		if (run.from_ns < run.to_ns) {
			add_run(w, &run, next);
			run.to_ns = run.from_ns;
		}
		if (!at || run.to_ns <= range->from_ns)
			break;
		uint64_t from_ns = MAX(at->off_ns, range->from_ns);
		add_interval(w, at, from_ns, run.to_ns, depth);
		run.to_ns = from_ns;
		run.stack = c->t->stack[at->row];
		next = at;
	}
	if (run.to_ns > range->from_ns && w->parts->list.n >= PARTS_MAX)
		add(w, (struct chain_part){range->from_ns, run.to_ns, CHAIN_UNKNOWN, range->tid});
}

void chains_walk(const struct chains *c, int32_t tid, uint64_t from_ns, uint64_t to_ns,
		 struct chain_parts *ret_parts)
{
	struct walk w = {c, ret_parts};
	vec_clear(&ret_parts->list);
	walk_thread(&w, &(struct chain_part){.from_ns = from_ns, .to_ns = to_ns, .tid = tid}, 0);
	struct chain_part *list = ret_parts->list.p;
	for (size_t i = 0, n = ret_parts->list.n; i < n / 2; i++) {
		struct chain_part first = list[i];
		list[i] = list[n - 1 - i];
		list[n - 1 - i] = first;
	}
}
