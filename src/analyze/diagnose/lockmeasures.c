/*
 * Measures of locks: the most contended one and who holds it, and the cause of the waits: what the threads at
 * the ends of the chains did meanwhile; see measures.h.
 */
#include "base/base.h"
#include "analyze/diagnose/measurebase.h"

#include <math.h>

#include "analyze/stacks/threads.h"
#include "analyze/wait/frames.h"
#include "analyze/wait/waittables.h"
#include "base/intern.h"
#include "base/map.h"

#define NUMBER(name) static double name(struct measures *m)
#define TEXT(name)   static const char *name(struct measures *m)

/* ---- the most contended lock ---------------------------------------------------------------- */

/* A cell of the first row of the table of locks; NULL: there is none. */
static const union cell *top_lock(struct measures *m, const char *column)
{
	const struct report_table *t = measured_table(measured_tables(m), "locks");
	return t ? &t->cells[measured_column(t, column)] : NULL;
}

static const char *top_lock_text(struct measures *m, const char *column)
{
	const union cell *c = top_lock(m, column);
	return c ? c->text : "";
}

NUMBER(top_lock_pct)
{
	const union cell *c = top_lock(m, "pct");
	return c ? c->d : (double)NAN;
}

NUMBER(top_lock_is_gil)
{
	return strstr(top_lock_text(m, "lock"), LOCK_GIL) != NULL;
}

NUMBER(top_lock_is_by_peers)
{
	return strstr(top_lock_text(m, "lock"), LOCK_BY_PEERS) != NULL;
}

NUMBER(top_lock_is_place)
{
	return !strncmp(top_lock_text(m, "lock"), LOCKED_IN, strlen(LOCKED_IN));
}

NUMBER(top_lock_is_open)
{
	return strstr(top_lock_text(m, "holder"), LOCK_OPEN) != NULL;
}

TEXT(top_lock_waiters)
{
	return top_lock_text(m, "waits_in");
}

TEXT(top_lock_holder)
{
	const char *holder = top_lock_text(m, "held_by");
	const char *place = top_lock_text(m, "held_in");
	return holder[0] ? arena_fmt(&m->a, "%s%s%s", holder, place[0] ? " in " : "", place) : "";
}

static bool is_chain(struct measures *m)
{
	static const char chain[] = "waits for ";
	return top_lock_text(m, "held_by")[0] &&
	       !strncmp(top_lock_text(m, "holder"), chain, strlen(chain));
}

/* "waits for thread t in f": the holder of the lock, too, waits for a thread. */
TEXT(top_lock_chain)
{
	return is_chain(m) ? top_lock_text(m, "holder") : "";
}

TEXT(top_lock_doing)
{
	static const char convoy[] = "; convoy";
	const char *text = is_chain(m) ? "" : top_lock_text(m, "holder");
	const char *at = text ? strstr(text, convoy) : NULL;
	if (!at)
		return text;
	return arena_fmt(&m->a, "%.*s%s; no thread holds it for long, several take it in turn",
			 (int)(at - text), text, at + strlen(convoy));
}

/* ---- the cause of the waits ------------------------------------------------------------------ */

/* No causes of waits for locks, as bits: the holder works, or for what it waits is not known. */
#define NO_CAUSES                                                                          \
	(1ull << WAIT_NONE | 1ull << WAIT_ON_CPU | 1ull << WAIT_SYNC | 1ull << WAIT_LOCK | \
	 1ull << WAIT_PARK | 1ull << WAIT_UNKNOWN | 1ull << WAIT_OTHER)

/* Time by text, and the text with most of it. */
struct by_text {
	struct intern texts;
	VEC(uint64_t) ns; /* by id */
	str_id top;
};

static void by_text_release(struct by_text *t)
{
	intern_release(&t->texts);
	vec_release(&t->ns);
}

static void by_text_add(struct by_text *t, const char *text, uint64_t ns)
{
	str_id id = intern_add_str(&t->texts, text);
	while (t->ns.n <= id)
		vec_push(&t->ns, 0);
	t->ns.p[id] += ns;
	if (t->ns.n <= t->top || t->ns.p[id] > t->ns.p[t->top])
		t->top = id;
}

/* "": none has half of @of_ns. */
static const char *by_text_most(struct measures *m, const struct by_text *t, uint64_t of_ns)
{
	bool is_most = t->ns.n && t->ns.p[t->top] >= of_ns / 2;
	return is_most ? arena_strdup(&m->a, intern_str(&t->texts, t->top)) : "";
}

/* A wait for a lock, and what is blamed for it. */
struct held {
	const struct select_tagged *row;
	const struct tag *tag;
	enum wait_reason doing;
	bool is_chain; /* of a thread that the holder waited for */
	uint64_t ns;
};

/* Returns false if the wait is not for a lock, or whom it waited for is not known. */
static bool held_of(const struct blame *b, size_t i, struct held *ret_h)
{
	const struct selection *sel = &b->sel;
	const struct select_tagged *row = &sel->tagged[i];
	const struct tag *tag = &sel->p->tags.p[row->tag];
	struct blametag t = blame_tag_of(sel->p, sel->reasons, tag);
	*ret_h = (struct held){row, tag, t.doing,
			       blame_is_of_chain(sel->reasons, row->stack, tag, t.nr_steps),
			       (uint64_t)MAX(row->values[1], 0)};
	return row->reason == WAIT_LOCK && tag->other;
}

/* What they did for longest, if that is a wait; else WAIT_NONE. */
static enum wait_reason top_cause(const struct blame *b, uint64_t *ret_ns)
{
	uint64_t by_doing[WAIT_NR] = {0};
	enum wait_reason top = WAIT_NONE;
	struct held h;
	for (size_t i = 0; i < b->sel.nr_tagged; i++)
		if (held_of(b, i, &h))
			by_doing[h.doing] += h.ns;
	for (enum wait_reason r = WAIT_NONE; r < WAIT_NR; r++)
		top = by_doing[r] > by_doing[top] ? r : top;
	top = NO_CAUSES >> top & 1 ? WAIT_NONE : top;
	*ret_ns = top == WAIT_NONE ? 0 : by_doing[top];
	return top;
}

/* The program's function that called the one that waits; 0: not known. */
static str_id caller_of(const struct profile *p, struct waitframes *wf, stack_id stack, str_id own)
{
	for (stack_id s = own ? stack : 0; s; s = p->stacks.p[s].parent) {
		const struct location *l = &p->locations.p[p->stacks.p[s].loc];
		for (uint32_t i = 0; i < l->nr_frames; i++) {
			const struct frame *f = &p->frames.p[l->first_frame + i];
			if (p->functions.p[f->func].name != own)
				continue;
			if (i + 1u < l->nr_frames)
				return p->functions.p[f[1].func].name;
			return waitframe_of(wf, p->stacks.p[s].parent).own;
		}
	}
	return 0;
}

/* "flush_table > sleep_us": who waits may do so by a function that says nothing. */
static const char *path_text(struct measures *m, struct arena *a, struct waitframes *wf,
			     stack_id stack)
{
	struct waitframe f = waitframe_of(wf, stack);
	str_id caller = caller_of(m->p, wf, stack, f.own);
	const char *name = measures_name(m, waitframe_name(m->p, &f));
	return caller ? arena_fmt(a, "%s > %s", measures_name(m, profile_text(m->p, caller)), name)
		      : name;
}

/* "its holder db": who waited in CALL, in as much of the time as it is true. */
static const char *who_text(struct measures *m, const char *thread, const char *holder_in,
			    double chain_pct)
{
	if (chain_pct < 1)
		return arena_fmt(&m->a, "its holder%s%s", thread[0] ? " " : "", thread);
	if (chain_pct <= 99)
		return "its holder, or whom that waited for,";
	return arena_fmt(&m->a, "%s, for which its holder waited%s%s,",
			 thread[0] ? thread : "another thread", holder_in[0] ? " in " : "",
			 holder_in);
}

static void name_cause(struct measures *m, const struct blame *b, struct lockcause *c)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct by_text where CLEANUP(by_text_release) = {0};
	struct by_text call CLEANUP(by_text_release) = {0};
	struct by_text thread CLEANUP(by_text_release) = {0};
	struct by_text waiters CLEANUP(by_text_release) = {0};
	struct by_text holder_in CLEANUP(by_text_release) = {0};
	struct waitframes *wf = waitframes_new(&a, m->p);
	uint64_t chain_ns = 0;
	struct held h;
	for (size_t i = 0; i < b->sel.nr_tagged; i++) {
		if (!held_of(b, i, &h) || h.doing != c->doing)
			continue;
		struct waitframe in = waitframe_of(wf, h.tag->other_stack);
		struct waitframe of = waitframe_of(wf, h.row->stack);
		by_text_add(&where, path_text(m, &a, wf, h.tag->other_stack), h.ns);
		by_text_add(&call, in.via ? profile_text(m->p, in.via) : "", h.ns);
		by_text_add(&thread, threads_name(m->p, h.tag->other), h.ns);
		by_text_add(&waiters, waitframe_name(m->p, &of), h.ns);
		chain_ns += h.is_chain ? h.ns : 0;
		if (h.is_chain && h.tag->direct_stack)
			by_text_add(&holder_in, path_text(m, &a, wf, h.tag->direct_stack), h.ns);
	}
	c->where = by_text_most(m, &where, 0);
	c->call = measures_name(m, by_text_most(m, &call, c->ns));
	c->waiters = measures_name(m, by_text_most(m, &waiters, 0));
	c->chain_pct = view_pct(chain_ns, c->ns);
	c->who = who_text(m, by_text_most(m, &thread, c->ns), by_text_most(m, &holder_in, 0),
			  c->chain_pct);
}

static const struct waitmeasures *cause_of(struct measures *m)
{
	struct waitmeasures *w = measured_waits(m);
	if (!w || w->has_lockcause)
		return w;
	struct lockcause *c = &w->lockcause;
	const struct blame *b = measured_blame(m);
	w->has_lockcause = true;
	c->doing = top_cause(b, &c->ns);
	c->where = c->call = c->who = c->waiters = "";
	if (c->doing != WAIT_NONE)
		name_cause(m, b, c);
	return w;
}

TEXT(cause_key)
{
	const struct waitmeasures *w = cause_of(m);
	return !w ? NULL : w->lockcause.doing == WAIT_NONE ? "" : wait_key(w->lockcause.doing);
}

NUMBER(cause_pct)
{
	const struct waitmeasures *w = cause_of(m);
	return w ? measured_pct(w, w->lockcause.ns) : (double)NAN;
}

NUMBER(cause_part)
{
	const struct waitmeasures *w = cause_of(m);
	return w ? view_pct(w->lockcause.ns, w->l->total.ns[WAIT_LOCK]) : (double)NAN;
}

NUMBER(cause_time)
{
	const struct waitmeasures *w = cause_of(m);
	return w ? (double)w->lockcause.ns : (double)NAN;
}

NUMBER(cause_chain)
{
	const struct waitmeasures *w = cause_of(m);
	return w ? w->lockcause.chain_pct : (double)NAN;
}

/* A text of the cause. */
#define CAUSE_TEXT(field)                                   \
	TEXT(cause_##field)                                 \
	{                                                   \
		const struct waitmeasures *w = cause_of(m); \
		return w ? w->lockcause.field : NULL;       \
	}
CAUSE_TEXT(call)
CAUSE_TEXT(where)
CAUSE_TEXT(who)
CAUSE_TEXT(waiters)

/* ---- the rows -------------------------------------------------------------------------------- */

static const struct measure rows[] = {
	{"lock.top.pct", FORMULA_PERCENT, "lock wait time", "waits for the most contended lock",
	 .number = top_lock_pct},
	{"lock.top.gil", FORMULA_PLAIN, NULL, "1: it is CPython's GIL", .number = top_lock_is_gil},
	{"lock.top.by-place", FORMULA_PLAIN, NULL, "1: it is known by the place where it is locked",
	 .number = top_lock_is_place},
	{"lock.top.by-peers", FORMULA_PLAIN, NULL,
	 "1: it is built of condition variables, known by who ends the waits",
	 .number = top_lock_is_by_peers},
	{"lock.top.open", FORMULA_PLAIN, NULL, "1: nobody released it during the capture",
	 .number = top_lock_is_open},
	{"lock.top.waiters", FORMULA_TEXT, NULL, "where threads wait for the most contended lock",
	 .text = top_lock_waiters},
	{"lock.top.holder", FORMULA_TEXT, NULL, "who held it for longest", .text = top_lock_holder},
	{"lock.top.chain", FORMULA_TEXT, NULL,
	 "\"waits for ...\" if the holder waited for a thread", .text = top_lock_chain},
	{"lock.top.doing", FORMULA_TEXT, NULL, "what its holder was doing", .text = top_lock_doing},
	{"lock.cause", FORMULA_TEXT, NULL,
	 "cause of waits for locks: what holders, or whom they waited for, waited for longest; empty: they worked",
	 .text = cause_key},
	{"lock.cause.pct", FORMULA_PERCENT, MEASURE_ACTIVE, "waits for locks with this cause",
	 .number = cause_pct},
	{"lock.cause.part", FORMULA_PERCENT, "lock wait time", "waits for locks with this cause",
	 .number = cause_part},
	{"lock.cause.time", FORMULA_NS, NULL, "waits for locks with this cause",
	 .number = cause_time},
	{"lock.cause.chain", FORMULA_PERCENT, "that time",
	 "while the holder waited for another thread, which waited so", .number = cause_chain},
	{"lock.cause.call", FORMULA_TEXT, NULL, "what that called", .text = cause_call},
	{"lock.cause.where", FORMULA_TEXT, NULL, "its function, and that one's caller",
	 .text = cause_where},
	{"lock.cause.who", FORMULA_TEXT, NULL,
	 "the holder, or whom that waited for in turn, for sentences", .text = cause_who},
	{"lock.cause.waiters", FORMULA_TEXT, NULL, "where they waited for the lock",
	 .text = cause_waiters},
};

const struct measure *lock_measures(size_t *ret_nr)
{
	*ret_nr = ARRAY_LEN(rows);
	return rows;
}
