/* Rows of blame; see blame.h. */
#include "base/base.h"
#include "analyze/wait/blame.h"

#include <errno.h>
#include <stdlib.h>

#include "analyze/wait/reason.h"
#include "base/mem.h"
#include "base/vec.h"
#include "model/wait.h"

struct maker {
	struct arena *arena;
	const struct profile *p;
	struct blame *b;
	VEC(struct blame_row) rows;
};

static void maker_release(struct maker *m)
{
	vec_release(&m->rows);
}

struct blametag blame_tag_of(const struct profile *p, struct reasons *reasons,
			     const struct tag *tag)
{
	struct blametag b;
	struct tag other = {.reason = tag->reason};
	if (!blametag_parse(profile_sv(p, tag->detail), &b))
		b = (struct blametag){.doing = (enum wait_reason)tag->reason, .nr_steps = 1};
	other.reason = (uint8_t)b.doing;
	b.doing = reason_of(reasons, tag->other_stack, &other);
	return b;
}

bool blame_is_of_chain(struct reasons *reasons, stack_id waiter, const struct tag *tag,
		       unsigned nr_steps)
{
	return nr_steps > 1 &&
	       !(tag->direct && reason_of_frames(reasons, waiter) == SYNC_LOCK_BY_PARK &&
		 reason_of_frames(reasons, tag->direct_stack) == SYNC_LOCK_BY_PARK);
}

bool blame_is_for_work(const struct blame_row *row)
{
	return (row->reason == WAIT_PIPE || row->reason == WAIT_NET) && wait_is_idle(row->doing);
}

static void add_row(struct maker *m, const struct select_tagged *row)
{
	const struct tag *tag = &m->p->tags.p[row->tag];
	struct blametag b = blame_tag_of(m->p, m->b->sel.reasons, tag);
	vec_push(&m->rows, (struct blame_row){
				   .waiter_stack = row->stack,
				   .waiter = row->task,
				   .tag = row->tag,
				   .reason = row->reason,
				   .blocker = tag->other,
				   .blocker_stack = tag->other_stack,
				   .doing = b.doing,
				   .nr_steps = (uint8_t)b.nr_steps,
				   .is_convoy = b.is_convoy && !wait_is_idle(row->reason),
				   .nr_waits = (uint64_t)MAX(row->values[0], 0),
				   .ns = (uint64_t)MAX(row->values[1], 0),
			   });
}

/*
 * Compares rows; 0: same waiter and blocker. Tags may differ in durations, which is irrelevant
 * here.
 */
static int compare(const struct blame_row *a, const struct blame_row *b)
{
	return COMPARE(a->waiter_stack, b->waiter_stack)
		       ?: COMPARE(a->waiter, b->waiter)
		       ?: COMPARE(a->reason, b->reason)
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
		m->b->convoy_ns += row->is_convoy ? row->ns : 0;
		m->b->unknown_ns += row->doing == WAIT_UNKNOWN ? row->ns : 0;
		m->b->blamed_ns[row->reason] += row->ns;
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

/* Sums the off-CPU time that the same filters select. */
static int sum_waiting(struct maker *m, const struct select_spec *spec, struct err *err)
{
	struct select_spec own = *spec;
	struct selection sel;
	struct blame *b = m->b;
	const uint64_t no_waits = 1ull << WAIT_RUN_QUEUE | 1ull << WAIT_YIELD | 1ull << WAIT_STOLEN;
	own.event = table_key(TABLE_OFF_CPU);
	own.waker = NULL; /* of waits: the waker; of blame: the blamed thread */
	if (!tables_has_rows(m->p, TABLE_OFF_CPU))
		return 0;
	TRY(select_run(m->arena, m->p, &own, &sel, err));
	for (size_t i = 0; i < sel.nr_tagged; i++)
		if (!(no_waits >> sel.tagged[i].reason & 1))
			b->reason_ns[sel.tagged[i].reason] +=
				(uint64_t)MAX(sel.tagged[i].values[1], 0);
	return 0;
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
		return err_hint(err, "for the wait reasons: assay report; who ended waits: --by "
				     "waker. A wait that was not over at the end has a known "
				     "holder only if the lock's word names it (glibc's mutexes); "
				     "with --no-wakers or --no-bpf no wait has");
	}
	TRY(select_run(a, p, &own, &b.sel, err));
	for (size_t i = 0; i < b.sel.nr_tagged; i++)
		add_row(&m, &b.sel.tagged[i]);
	merge_rows(&m);
	TRY(sum_waiting(&m, spec, err));
	for (enum wait_reason r = WAIT_NONE; r < WAIT_NR; r++) {
		b.reason_ns[r] = MAX(b.reason_ns[r], b.blamed_ns[r]);
		b.of_ns += b.reason_ns[r];
	}
	*ret_b = b;
	return 0;
}
