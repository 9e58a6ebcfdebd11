/* Attributes wait time to its cause; see blame.h. */
#include "base/base.h"
#include "analyze/wait/blame.h"

#include <errno.h>
#include <stdlib.h>

#include "analyze/wait/frames.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"

#define NEGLIGIBLE 20000 /* fraction of the total: smaller shares are not passed on */

/* Blame rows of one waiter and stack: a range of `order`. */
struct place {
	task_id task;
	stack_id stack; /* user part of the stack */
	uint32_t first;
	uint32_t nr;
	uint64_t ns;
};

struct maker {
	struct arena *arena;
	const struct profile *p;
	struct blame *b;
	uint32_t *order; /* indexes of sel.tagged by (task, user part of stack) */
	VEC(struct place) places;
	struct map place_of; /* task << 32 | stack -> place */
	VEC(struct blame_row) rows;
	uint64_t least_ns; /* shares below are not passed on */
};

static void maker_release(struct maker *m)
{
	free(m->order);
	vec_release(&m->places);
	vec_release(&m->rows);
	map_release(&m->place_of);
}

static uint64_t time_of(const struct select_tagged *row)
{
	return (uint64_t)MAX(row->values[1], 0);
}

/* ---- places -------------------------------------------------------------------------------- */

struct keyed {
	uint64_t key;
	uint32_t idx;
};

static int by_key(const void *x, const void *y)
{
	const struct keyed *a = x;
	const struct keyed *b = y;
	return COMPARE(a->key, b->key) ?: COMPARE(a->idx, b->idx);
}

static uint64_t place_key(const struct profile *p, task_id task, stack_id stack)
{
	return (uint64_t)task << 32 | waitframes_user_part(p, stack);
}

static void find_places(struct maker *m)
{
	const struct selection *sel = &m->b->sel;
	size_t n = sel->nr_tagged;
	CLEANUP(free_p) struct keyed *keys = xcalloc(n + 1, sizeof(*keys));
	m->order = xcalloc(n + 1, sizeof(*m->order));
	for (size_t i = 0; i < n; i++)
		keys[i] = (struct keyed){place_key(m->p, sel->tagged[i].task, sel->tagged[i].stack),
					 (uint32_t)i};
	qsort(keys, n, sizeof(*keys), by_key);
	for (size_t i = 0; i < n; i++) {
		m->order[i] = keys[i].idx;
		bool is_new;
		uint32_t *at = map_put(&m->place_of, keys[i].key, &is_new);
		if (is_new) {
			*at = (uint32_t)m->places.n;
			vec_push(&m->places, (struct place){.task = (task_id)(keys[i].key >> 32),
							    .stack = (stack_id)keys[i].key,
							    .first = (uint32_t)i});
		}
		m->places.p[*at].nr++;
		m->places.p[*at].ns += time_of(&sel->tagged[keys[i].idx]);
	}
}

/* ---- passing on ---------------------------------------------------------------------------- */

struct step {
	const struct select_tagged *row; /* the blocker and what it was doing */
	uint64_t ns;                     /* of the first waiter's time, ns */
	uint64_t nr_waits;
	task_id path[BLAME_DEPTH_MAX + 1]; /* waiter, blocker, its blocker ... */
	unsigned nr_path;
};

static bool is_in_path(const struct step *s, task_id task)
{
	for (unsigned i = 0; i < s->nr_path; i++)
		if (s->path[i] == task)
			return true;
	return false;
}

/* Attributes the time to the blocker of this step. */
static void account(struct maker *m, const struct select_tagged *first, const struct step *s,
		    bool is_convoy)
{
	const struct tag *tag = &m->p->tags.p[s->row->tag];
	vec_push(&m->rows, (struct blame_row){
				   .waiter_stack = first->stack,
				   .waiter = first->task,
				   .tag = first->tag,
				   .blocker = tag->other,
				   .blocker_stack = tag->other_stack,
				   .doing = s->row->reason,
				   .nr_steps = (uint8_t)(s->nr_path - 1),
				   .is_convoy = is_convoy,
				   .nr_waits = s->nr_waits,
				   .ns = s->ns,
			   });
	m->b->convoy_ns += is_convoy ? s->ns : 0;
}

/*
 * Returns the place at which the blocker waited itself, if it waited for a lock with known
 * blocking threads.
 */
static const struct place *place_of_blocker(const struct maker *m, const struct step *s)
{
	const struct tag *tag = &m->p->tags.p[s->row->tag];
	if (s->row->reason != WAIT_LOCK && s->row->reason != WAIT_SYNC)
		return NULL;
	const uint32_t *at = map_get(&m->place_of, place_key(m->p, tag->other, tag->other_stack));
	return at && m->places.p[*at].ns ? &m->places.p[*at] : NULL;
}

static uint64_t share_of(uint64_t v, uint64_t part, uint64_t whole)
{
	return (uint64_t)((unsigned __int128)v * part / whole);
}

static void pass_on(struct maker *m, const struct select_tagged *first, const struct step *s)
{
	const struct place *place = place_of_blocker(m, s);
	bool is_last = s->nr_path > BLAME_DEPTH_MAX || s->ns < m->least_ns;
	if (!place || is_last) {
		account(m, first, s, false);
		return;
	}
	uint64_t left_ns = s->ns;
	uint64_t left_waits = s->nr_waits;
	for (uint32_t i = 0; i < place->nr; i++) {
		const struct select_tagged *row = &m->b->sel.tagged[m->order[place->first + i]];
		bool is_rest = i + 1 == place->nr;
		struct step next = *s;
		next.row = row;
		next.ns =
			is_rest ? left_ns : MIN(share_of(s->ns, time_of(row), place->ns), left_ns);
		next.nr_waits =
			is_rest ? left_waits : share_of(s->nr_waits, time_of(row), place->ns);
		left_ns -= next.ns;
		left_waits -= MIN(next.nr_waits, left_waits);
		task_id blocker = m->p->tags.p[row->tag].other;
		if (!next.ns && !next.nr_waits)
			continue;
		if (is_in_path(s, blocker)) {
			struct step end = *s;
			end.ns = next.ns;
			end.nr_waits = next.nr_waits;
			account(m, first, &end, true);
			continue;
		}
		next.path[next.nr_path++] = blocker;
		pass_on(m, first, &next);
	}
}

/* ---- rows ---------------------------------------------------------------------------------- */

/*
 * Compares rows; 0: same waiter and blocker. Tags may differ in durations, which is irrelevant
 * here.
 */
static int compare(const struct blame_row *a, const struct blame_row *b)
{
	return COMPARE(a->waiter_stack, b->waiter_stack)
		       ?: COMPARE(a->waiter, b->waiter)
		       ?: COMPARE(a->blocker, b->blocker)
		       ?: COMPARE(a->blocker_stack, b->blocker_stack)
		       ?: COMPARE(a->doing, b->doing)
		       ?: COMPARE(a->is_convoy, b->is_convoy)
		       ?: COMPARE(a->nr_steps, b->nr_steps);
}

static int by_what(const void *x, const void *y)
{
	const struct blame_row *a = x;
	const struct blame_row *b = y;
	return compare(a, b) ?: COMPARE(a->tag, b->tag);
}

static int by_time(const void *x, const void *y)
{
	const struct blame_row *a = x;
	const struct blame_row *b = y;
	return COMPARE(b->ns, a->ns) ?: by_what(x, y);
}

static void merge_rows(struct maker *m)
{
	size_t n = 0;
	if (!m->rows.n)
		return;
	qsort(m->rows.p, m->rows.n, sizeof(*m->rows.p), by_what);
	for (size_t i = 0; i < m->rows.n; i++) {
		struct blame_row *row = &m->rows.p[i];
		m->b->ns += row->ns;
		if (n && !compare(&m->rows.p[n - 1], row)) {
			m->rows.p[n - 1].ns += row->ns;
			m->rows.p[n - 1].nr_waits += row->nr_waits;
			continue;
		}
		m->rows.p[n++] = *row;
	}
	qsort(m->rows.p, n, sizeof(*m->rows.p), by_time);
	m->b->nr_rows = n;
	m->b->rows = arena_dup(m->arena, m->rows.p, n * sizeof(*m->rows.p));
}

int blame_make(struct arena *a, const struct profile *p, const struct select_spec *spec,
	       struct blame *ret_b, struct err *err)
{
	struct blame b = {0};
	struct maker m CLEANUP(maker_release) = {.arena = a, .p = p, .b = &b};
	struct select_spec own = *spec;
	own.event = table_key(TABLE_BLAME);
	if (!tables_has_rows(p, TABLE_BLAME)) {
		if (!tables_has_rows(p, TABLE_OFF_CPU)) {
			err_set(err, -ENODATA, "this recording has no waits");
			return err_hint(err, "to record them: assay offcpu, assay cpu --offcpu");
		}
		err_set(err, -ENODATA,
			"no wait has a known lock holder or waker, so nothing can be attributed");
		return err_hint(err, "for the wait reasons: assay report; recordings made with "
				     "--no-wakers or --no-bpf have no wakers");
	}
	TRY(select_run(a, p, &own, &b.sel, err));
	m.least_ns = b.sel.weight / NEGLIGIBLE;
	find_places(&m);
	for (size_t i = 0; i < b.sel.nr_tagged; i++) {
		const struct select_tagged *row = &b.sel.tagged[i];
		struct step s = {.row = row,
				 .ns = time_of(row),
				 .nr_waits = (uint64_t)MAX(row->values[0], 0),
				 .path = {row->task, p->tags.p[row->tag].other},
				 .nr_path = 2};
		pass_on(&m, row, &s);
	}
	merge_rows(&m);
	*ret_b = b;
	return 0;
}
