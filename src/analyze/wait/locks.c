/* Table of contended locks; see waittables.h. */
#include "base/base.h"
#include "analyze/wait/waittables.h"

#include <stdlib.h>

#include "analyze/stacks/threads.h"
#include "analyze/wait/blame.h"
#include "analyze/wait/frames.h"
#include "base/buf.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/text/num.h"
#include "base/vec.h"

#define KNOWN_PCT 95   /* less is said */
#define WHOLE_PCT 99.5 /* it is all */

/* Texts of a lock; the one with most wait time is shown. */
enum about {
	ABOUT_WAITS_IN,
	ABOUT_LOCKED_BY,
	ABOUT_HELD_IN,
	ABOUT_HELD_BY,
	ABOUT_CHAIN, /* whom the holder waited for */
	ABOUT_NR
};

struct lock {
	const char *name;
	struct quantile q;
	uint64_t nr_threads;
	str_id best[ABOUT_NR];
	uint64_t best_ns[ABOUT_NR];
	uint32_t nr_kinds[ABOUT_NR]; /* number of distinct texts */
	uint64_t holder_ns[WAIT_NR]; /* what lock holders were doing during the waits */
	uint64_t chain_ns;           /* they waited for another thread; not in holder_ns */
	uint64_t held_ns;            /* of the waiting, the part of which the holder is known */
	uint64_t convoy_ns;          /* part of it: threads hand the lock around */
	uint64_t open_ns;            /* waits that nobody ended before the capture did */
	bool is_by_peers;            /* known by who ends the waits (peerlocks.h) */
};

struct locks {
	const struct selection *sel;
	struct intern texts; /* names of locks, functions, threads */
	struct map index;    /* text -> lock */
	VEC(struct lock) locks;
	struct map sums[ABOUT_NR]; /* lock << 32 | text -> index into sum_ns */
	VEC(uint64_t) sum_ns;
	struct map threads; /* lock << 32 | task */
	struct arena a;
	struct waitframes *frames;
	struct buf text;
};

static void locks_release(struct locks *l)
{
	intern_release(&l->texts);
	map_release(&l->index);
	vec_release(&l->locks);
	for (int i = 0; i < ABOUT_NR; i++)
		map_release(&l->sums[i]);
	vec_release(&l->sum_ns);
	map_release(&l->threads);
	arena_release(&l->a);
	buf_release(&l->text);
}

static const char *own_function(struct locks *l, stack_id stack)
{
	struct waitframe f = waitframe_of(l->frames, stack);
	return waitframe_name(l->sel->p, &f);
}

/*
 * Returns the address of the lock word. If waiters of the lock park on words of their own, returns
 * the function that locks it.
 */
static const char *lock_name(struct locks *l, stack_id stack, const struct tag *tag)
{
	bool is_by_park = reason_of_frames(l->sel->reasons, stack) == SYNC_LOCK_BY_PARK;
	if (tag->object && !is_by_park)
		return profile_text(l->sel->p, tag->object);
	struct waitframe f = waitframe_of(l->frames, stack);
	f.text = NULL; /* one lock, whatever the line */
	buf_clear(&l->text);
	buf_addf(&l->text, LOCKED_IN "%s", waitframe_name(l->sel->p, &f));
	return buf_str(&l->text);
}

static uint32_t *find_lock(struct locks *l, stack_id stack, const struct tag *tag, bool *ret_is_new)
{
	uint32_t text = intern_add_str(&l->texts, lock_name(l, stack, tag));
	return map_put(&l->index, text, ret_is_new);
}

static void add_text(struct locks *l, uint32_t lock, enum about about, const char *text,
		     uint64_t ns)
{
	if (!*text)
		return;
	str_id id = intern_add_str(&l->texts, text);
	bool is_new;
	uint32_t *at = map_put(&l->sums[about], (uint64_t)lock << 32 | id, &is_new);
	struct lock *to = &l->locks.p[lock];
	if (is_new) {
		*at = (uint32_t)l->sum_ns.n;
		vec_push(&l->sum_ns, 0);
		to->nr_kinds[about]++;
	}
	l->sum_ns.p[*at] += ns;
	if (l->sum_ns.p[*at] > to->best_ns[about] || !to->best[about]) {
		to->best_ns[about] = l->sum_ns.p[*at];
		to->best[about] = id;
	}
}

static void add_wait(struct locks *l, const struct select_tagged *row)
{
	const struct profile *p = l->sel->p;
	const struct tag *tag = &p->tags.p[row->tag];
	bool is_new;
	uint32_t *at = find_lock(l, row->stack, tag, &is_new);
	if (is_new) {
		*at = (uint32_t)l->locks.n;
		struct lock *lock = vec_add(&l->locks);
		lock->name = arena_strdup(&l->a, lock_name(l, row->stack, tag));
		lock->is_by_peers = reason_is_by_peers(l->sel->reasons, row->stack);
	}
	uint32_t id = *at;
	struct lock *lock = &l->locks.p[id];
	uint64_t ns = (uint64_t)MAX(row->values[1], 0);
	quantile_add(&lock->q, tag->log2_ns, (uint64_t)MAX(row->values[0], 0), ns,
		     (uint64_t)MAX(row->values[2], 0));
	(void)map_put(&l->threads, (uint64_t)id << 32 | row->task, &is_new);
	lock->nr_threads += is_new;
	struct waitframe f = waitframe_of(l->frames, row->stack);
	add_text(l, id, ABOUT_WAITS_IN, waitframe_name(p, &f), ns);
	add_text(l, id, ABOUT_LOCKED_BY, profile_text(p, f.via), ns);
	lock->open_ns += tag->evidence & EVIDENCE_OPEN && !tag->other ? ns : 0;
}

/* Who held the lock during a part of a wait, and where it waited or released it; 0: not known. */
struct holder {
	task_id task;
	stack_id stack;
	bool has_waited; /* for the blamed thread of the row */
};

static struct holder holder_of(struct locks *l, stack_id stack, const struct tag *tag,
			       unsigned nr_steps)
{
	if (blame_is_of_chain(l->sel->reasons, stack, tag, nr_steps))
		return (struct holder){tag->direct, tag->direct_stack, true};
	return (struct holder){tag->other, tag->other_stack, false};
}

static void add_holder(struct locks *l, uint32_t id, const struct select_tagged *row,
		       const struct profile *p, struct reasons *reasons)
{
	const struct tag *tag = &p->tags.p[row->tag];
	struct blametag b = blame_tag_of(p, reasons, tag);
	struct holder h = holder_of(l, row->stack, tag, b.nr_steps);
	struct lock *lock = &l->locks.p[id];
	uint64_t ns = (uint64_t)MAX(row->values[1], 0);
	lock->convoy_ns += b.is_convoy ? ns : 0;
	if (h.has_waited) {
		lock->chain_ns += ns;
		buf_clear(&l->text);
		blame_add_chain(&l->text, p, l->frames, tag, b.doing);
		add_text(l, id, ABOUT_CHAIN, buf_str(&l->text), ns);
	} else {
		lock->holder_ns[b.doing] += ns;
	}
	if (!h.task || (b.doing == WAIT_UNKNOWN && !h.has_waited))
		return;
	lock->held_ns += ns;
	if (h.stack) /* an owner that did not release it ran where it was not seen */
		add_text(l, id, ABOUT_HELD_IN, own_function(l, h.stack), ns);
	add_text(l, id, ABOUT_HELD_BY, threads_name(p, h.task), ns);
}

static void add_blame(struct locks *l, const struct selection *blame)
{
	for (size_t i = 0; i < blame->nr_tagged; i++) {
		const struct select_tagged *row = &blame->tagged[i];
		uint32_t text = intern_add_str(&l->texts, lock_name(l, row->stack,
								    &blame->p->tags.p[row->tag]));
		uint32_t *at = map_get(&l->index, text);
		if (at && row->reason == WAIT_LOCK)
			add_holder(l, *at, row, blame->p, blame->reasons);
	}
}

/* ---- the table ----------------------------------------------------------------------------- */

static const struct report_column columns[] = {
	{"time_ns", "time", CELL_NS, "time waited for the lock"},
	{"pct", "% of locks", CELL_PERCENT, "share of all lock wait time"},
	{"waits", "waits", CELL_COUNT, NULL},
	{"mean_ns", "mean", CELL_NS, NULL},
	{"p99_ns", "p99", CELL_NS, "interpolated within a power-of-two bucket"},
	{"longest_ns", "longest", CELL_NS, NULL},
	{"threads", "threads", CELL_COUNT, "threads that waited"},
	{"lock", "lock", CELL_TEXT, "address of the lock word, or the function that locks it"},
	{"waits_in", "waiters in", CELL_TEXT, "function of the program that waited longest"},
	{"held_by", "held by", CELL_TEXT,
	 "thread that held the lock for most of the waiting, and for how much"},
	{"held_in", "in", CELL_TEXT,
	 "function in which the lock was released, or its holder was blocked, for most of the waiting, and "
	 "for how much"},
	{"holder", "holder was doing", CELL_TEXT,
	 "what the lock holder was doing during the waits, or whom it waited for, who waited in turn "
	 "(--blame has all); convoy: several threads take the lock in "
	 "turn, none holds it for most of the time",
	 .is_prose = true},
};
static const char *const hide_first[] = {"mean_ns", "threads", "p99_ns", "held_in", NULL};

static int by_time(const void *x, const void *y)
{
	const struct lock *a = x;
	const struct lock *b = y;
	return COMPARE(b->q.ns_all, a->q.ns_all) ?: strcmp(a->name, b->name);
}

/* The part of the waiting of which it is known what the holder did. */
static uint64_t known_ns(const struct lock *lock)
{
	uint64_t ns = lock->chain_ns;
	for (enum wait_reason w = WAIT_NONE; w < WAIT_NR; w++)
		ns += w == WAIT_UNKNOWN ? 0 : lock->holder_ns[w];
	return ns;
}

static const char *best_text(struct report *r, const struct locks *l, const struct lock *lock,
			     enum about about)
{
	if (!lock->best[about])
		return "";
	const char *text = intern_str(&l->texts, lock->best[about]);
	bool has_shares = about == ABOUT_HELD_BY || about == ABOUT_HELD_IN;
	double pct = view_pct(lock->best_ns[about], lock->held_ns);
	if (lock->nr_kinds[about] == 1 || (has_shares && pct >= WHOLE_PCT))
		return text;
	if (has_shares)
		return arena_fmt(&r->arena, "%s (%s %%)", text, num_double(pct, 0).s);
	return arena_fmt(&r->arena, "%s (+%s)", text,
			 num_noun(lock->nr_kinds[about] - 1, "others").s);
}

/* What holders were doing, with its part of the waiting. */
struct activity {
	const char *text;
	uint64_t ns;
};

static int by_ns(const void *x, const void *y)
{
	const struct activity *a = x;
	const struct activity *b = y;
	return COMPARE(b->ns, a->ns) ?: strcmp(a->text, b->text);
}

/* Returns how many, largest first. */
static size_t activities(const struct locks *l, const struct lock *lock,
			 struct activity ret_all[WAIT_NR + 2])
{
	size_t n = 0;
	for (enum wait_reason w = WAIT_ON_CPU; w < WAIT_NR; w++)
		if (w != WAIT_UNKNOWN && lock->holder_ns[w])
			ret_all[n++] = (struct activity){w == WAIT_ON_CPU ? "on CPU" : wait_text(w),
							 lock->holder_ns[w]};
	uint64_t best_ns = lock->best_ns[ABOUT_CHAIN];
	if (best_ns)
		ret_all[n++] =
			(struct activity){intern_str(&l->texts, lock->best[ABOUT_CHAIN]), best_ns};
	if (lock->chain_ns > best_ns)
		ret_all[n++] =
			(struct activity){"waits for other threads", lock->chain_ns - best_ns};
	qsort(ret_all, n, sizeof(*ret_all), by_ns);
	return n;
}

/*
 * Returns "on CPU 62 %, fsync 38 %", up to three parts, and of how much of the waiting that is known
 * if it is not nearly all.
 */
static const char *holder_text(struct report *r, const struct locks *l, const struct lock *lock)
{
	CLEANUP(buf_release) struct buf b = {0};
	struct activity all_of[WAIT_NR + 2];
	uint64_t all = known_ns(lock);
	size_t nr = activities(l, lock, all_of);
	for (size_t i = 0; i < nr && i < 3 && view_pct(all_of[i].ns, all) >= 1; i++)
		buf_addf(&b, "%s%s %s %%", b.n ? ", " : "", all_of[i].text,
			 num_double(view_pct(all_of[i].ns, all), 0).s);
	double known = view_pct(all, lock->q.ns_all);
	if (b.n && lock->convoy_ns > all / 2)
		buf_addf(&b, "; convoy");
	if (b.n && known < KNOWN_PCT)
		buf_addf(&b, " (known for %s %% of the time)", num_double(known, known < 10).s);
	if (!b.n && lock->open_ns)
		buf_add_str(&b, "not known (" LOCK_OPEN ")");
	else if (b.n && lock->open_ns > lock->q.ns_all / 2)
		buf_add_str(&b, "; " LOCK_OPEN);
	return arena_strdup(&r->arena, buf_str(&b));
}

/* Locks of runtimes have a name that says more than their address. */
static const char *name_of(struct report *r, const struct locks *l, const struct lock *lock)
{
	static const char gil[] = "take_gil"; /* of CPython */
	str_id by = lock->best[ABOUT_LOCKED_BY];
	bool is_gil = by && !strncmp(intern_str(&l->texts, by), gil, strlen(gil));
	const char *kind = is_gil ? LOCK_GIL : lock->is_by_peers ? LOCK_BY_PEERS : NULL;
	return kind ? arena_fmt(&r->arena, "%s %s", lock->name, kind) : lock->name;
}

static void add_row(struct report *r, struct report_table *t, const struct locks *l,
		    const struct lock *lock, uint64_t of_ns)
{
	const struct quantile *q = &lock->q;
	bool has_waits = q->nr_all;
	union cell cells[ARRAY_LEN(columns)] = {
		{.u = q->ns_all},
		{.d = view_pct(q->ns_all, of_ns)},
		{.u = q->nr_all},
		{.u = has_waits ? quantile_mean(q) : CELL_NS_NONE},
		{.u = has_waits ? quantile_at(q, 0.99) : CELL_NS_NONE},
		{.u = q->longest_ns ? q->longest_ns : CELL_NS_NONE},
		{.u = lock->nr_threads},
		{.text = name_of(r, l, lock)},
		{.text = best_text(r, l, lock, ABOUT_WAITS_IN)},
		{.text = best_text(r, l, lock, ABOUT_HELD_BY)},
		{.text = best_text(r, l, lock, ABOUT_HELD_IN)},
		{.text = holder_text(r, l, lock)},
	};
	report_add_row(r, t, cells);
}

void waits_locks(struct report *r, const struct selection *sel, const struct select_spec *spec,
		 const struct view_limits *limits)
{
	struct locks l CLEANUP(locks_release) = {.sel = sel};
	struct select_spec of_blame = *spec;
	struct selection blame;
	of_blame.event = table_key(TABLE_BLAME);
	l.frames = waitframes_new(&l.a, sel->p);
	(void)intern_add_str(&l.texts, ""); /* id 0: nothing */
	uint64_t ns = 0;
	for (size_t i = 0; i < sel->nr_tagged; i++) {
		if (sel->tagged[i].reason != WAIT_LOCK)
			continue;
		add_wait(&l, &sel->tagged[i]);
		ns += (uint64_t)MAX(sel->tagged[i].values[1], 0);
	}
	if (!l.locks.n)
		return;
	if (tables_has_rows(sel->p, TABLE_BLAME) &&
	    !select_run(&l.a, sel->p, &of_blame, &blame, NULL))
		add_blame(&l, &blame);
	qsort(l.locks.p, l.locks.n, sizeof(*l.locks.p), by_time);
	struct report_table *t =
		report_add_table(r, "locks", "contended locks", columns, ARRAY_LEN(columns));
	t->note = "%: of the lock waiting shown";
	t->hide_first = hide_first;
	struct lock other = {.name = "<other>"};
	for (size_t i = 0; i < l.locks.n; i++) {
		const struct lock *lock = &l.locks.p[i];
		if (!limits->max_rows || i < limits->max_rows) {
			add_row(r, t, &l, lock, ns);
			continue;
		}
		quantile_merge(&other.q, &lock->q);
		other.nr_threads = MAX(other.nr_threads, lock->nr_threads);
	}
	t->has_other = other.q.ns_all > 0;
	if (other.q.ns_all)
		add_row(r, t, &l, &other, ns);
	t->nr_rows_total = l.locks.n;
}
