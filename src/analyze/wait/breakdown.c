/* Thread time breakdown; see breakdown.h. Its tables are in breakdown_tables.c. */
#include "base/base.h"
#include "analyze/wait/breakdown.h"

#include <stdlib.h>

#include "analyze/select/window.h"
#include "analyze/stacks/threads.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"

uint64_t breakdown_sum_ns(const struct breakdown_row *row)
{
	uint64_t sum = 0;
	for (enum wait_reason r = WAIT_ON_CPU; r < WAIT_NR; r++)
		sum += row->ns[r];
	return sum;
}

uint64_t breakdown_idle_ns(const struct breakdown_row *row)
{
	uint64_t sum = 0;
	for (enum wait_reason r = WAIT_ON_CPU; r < WAIT_NR; r++)
		sum += wait_is_idle(r) ? row->ns[r] : 0;
	return sum;
}

uint64_t breakdown_blocked_ns(const struct breakdown_row *row)
{
	return breakdown_sum_ns(row) - breakdown_idle_ns(row) - row->ns[WAIT_ON_CPU];
}

struct num_text breakdown_cpus_text(const struct breakdown *l)
{
	double ns = (double)l->total.ns[WAIT_ON_CPU];
	return num_double(l->window_ns ? ns / (double)l->window_ns : 0, 2);
}

double breakdown_covered_pct(const struct breakdown_row *row)
{
	return row->wall_ns ? view_pct(breakdown_sum_ns(row), row->wall_ns) : 100;
}

/* ---- total time --------------------------------------------------------------------------- */

struct maker {
	struct arena *arena;
	const struct profile *p;
	struct breakdown *l;
	uint32_t *row_of; /* by task_id */
	bool *is_in;      /* by row: whether it has time in one of the tables */
	struct window w;  /* the window in whole slices */
};

static int find_window(struct maker *m, const struct select_spec *spec, struct err *err)
{
	struct window all = window_of_profile(m->p);
	m->w = all;
	if (spec->time) {
		struct window w;
		int rc = window_parse(m->p, spec->time, &w, err);
		if (rc)
			return err_wrap(err, "--time");
		(void)window_widen(m->p, &w);
		m->w = (struct window){MAX(w.from_ns, all.from_ns), MIN(w.to_ns, all.to_ns)};
	}
	m->l->window_ns = window_recorded_ns(m->p, m->w);
	return 0;
}

struct life {
	uint32_t row;
	uint64_t from_ns;
	uint64_t to_ns; /* 0: not known */
};

static int by_row_and_start(const void *x, const void *y)
{
	const struct life *a = x;
	const struct life *b = y;
	return COMPARE(a->row, b->row) ?: COMPARE(a->from_ns, b->from_ns);
}

/*
 * A renamed thread, or a reused tid, has several tasks in one row. The exit of a thread is known of the
 * name that it had then, which may be one that it had before as well (bash, a script, bash).
 */
static void add_walls(struct maker *m)
{
	const struct profile *p = m->p;
	size_t n = p->tasks.n;
	CLEANUP(free_p) struct life *lives = xcalloc(n + 1, sizeof(*lives));
	CLEANUP(free_p) uint64_t *last_end = xcalloc(n + 1, sizeof(*last_end));
	for (size_t i = 0; i < n; i++) {
		uint32_t row = m->row_of[i];
		lives[i] = (struct life){row, p->tasks.p[i].start_ns, p->tasks.p[i].end_ns};
		last_end[row] = MAX(last_end[row], p->tasks.p[i].end_ns);
	}
	for (size_t i = 0; i < n; i++)
		if (!lives[i].to_ns && last_end[lives[i].row] > lives[i].from_ns)
			lives[i].to_ns = last_end[lives[i].row];
	qsort(lives, n, sizeof(*lives), by_row_and_start);
	for (size_t i = 0; i < n; i++) {
		uint64_t from = MAX(lives[i].from_ns, m->w.from_ns);
		uint64_t to = lives[i].to_ns ? lives[i].to_ns : m->w.to_ns;
		if (i + 1 < n && lives[i + 1].row == lives[i].row)
			to = MIN(to, lives[i + 1].from_ns);
		to = MIN(to, MIN(m->w.to_ns, window_piece_end(p, from)));
		if (to > from)
			m->l->rows[lives[i].row].wall_ns += to - from;
	}
}

/* ---- rows -------------------------------------------------------------------------------- */

static void add_threads(struct maker *m)
{
	const struct profile *p = m->p;
	CLEANUP(map_release) struct map index = {0};
	m->row_of = arena_calloc(m->arena, p->tasks.n, sizeof(*m->row_of));
	m->is_in = arena_calloc(m->arena, p->tasks.n, sizeof(*m->is_in));
	m->l->rows = arena_calloc(m->arena, p->tasks.n, sizeof(*m->l->rows));
	for (task_id id = 0; id < p->tasks.n; id++) {
		const struct task *t = &p->tasks.p[id];
		bool is_new;
		uint32_t *at = map_put(&index, (uint64_t)(uint32_t)t->pid << 32 | (uint32_t)t->tid,
				       &is_new);
		if (is_new)
			*at = (uint32_t)m->l->nr_rows++;
		struct breakdown_row *row = &m->l->rows[m->row_of[id] = *at];
		task_id last = profile_last_task(p, id);
		const char *name = profile_text(p, p->tasks.p[last].comm);
		row->name = name[0] ? name : "[no name]";
		row->group = threads_name(p, last);
		row->pid = t->pid;
		row->tid = t->tid;
		row->nr_threads = 1;
	}
}

static uint64_t value_of(const struct select_tagged *row, size_t column)
{
	return (uint64_t)MAX(row->values[column], 0);
}

static void add_on_cpu(struct maker *m, const struct selection *sel)
{
	for (size_t i = 0; i < sel->nr_tagged; i++) {
		const struct select_tagged *t = &sel->tagged[i];
		struct breakdown_row *row = &m->l->rows[m->row_of[t->task]];
		row->ns[WAIT_ON_CPU] += value_of(t, 1);
		row->nr_runs += value_of(t, 0);
		m->is_in[m->row_of[t->task]] = true;
	}
}

static void add_run_queue(struct maker *m, struct breakdown_row *row, const struct tag *tag,
			  const struct select_tagged *t, uint64_t longest_ns)
{
	bool is_woken = !strcmp(profile_text(m->p, tag->detail), "woken");
	uint64_t nr = value_of(t, 0);
	uint64_t ns = value_of(t, 1);
	*(is_woken ? &row->woken_ns : &row->preempted_ns) += ns;
	row->nr_involuntary += is_woken ? 0 : nr;
	quantile_add(is_woken ? &m->l->woken : &m->l->preempted, tag->log2_ns, nr, ns, longest_ns);
}

static void add_off_cpu(struct maker *m, const struct selection *sel)
{
	const struct table *table = &m->p->tables.p[sel->table];
	for (size_t i = 0; i < sel->nr_tagged; i++) {
		const struct select_tagged *t = &sel->tagged[i];
		const struct tag *tag = &m->p->tags.p[t->tag];
		struct breakdown_row *row = &m->l->rows[m->row_of[t->task]];
		uint64_t nr = value_of(t, 0);
		uint64_t ns = value_of(t, 1);
		uint64_t longest_ns = table->nr_columns > 2 ? value_of(t, 2) : 0;
		row->ns[t->reason] += ns;
		row->nr_waits[t->reason] += nr;
		quantile_add(&m->l->waits[t->reason], tag->log2_ns, nr, ns, longest_ns);
		if (t->reason == WAIT_RUN_QUEUE)
			add_run_queue(m, row, tag, t, longest_ns);
		else if (t->reason == WAIT_YIELD) /* the kernel counts it as involuntary */
			row->nr_involuntary += nr;
		else
			row->nr_voluntary += nr;
		m->l->at_start_ns += tag->evidence & EVIDENCE_AT_START ? ns : 0;
		m->l->polled_ns += tag->evidence & EVIDENCE_POLLED ? ns : 0;
		m->is_in[m->row_of[t->task]] = true;
	}
}

void breakdown_add(struct breakdown_row *to, const struct breakdown_row *from)
{
	to->nr_threads += from->nr_threads;
	to->wall_ns += from->wall_ns;
	for (enum wait_reason r = WAIT_NONE; r < WAIT_NR; r++) {
		to->ns[r] += from->ns[r];
		to->nr_waits[r] += from->nr_waits[r];
	}
	to->preempted_ns += from->preempted_ns;
	to->woken_ns += from->woken_ns;
	to->nr_runs += from->nr_runs;
	to->nr_voluntary += from->nr_voluntary;
	to->nr_involuntary += from->nr_involuntary;
}

int breakdown_compare(const void *x, const void *y)
{
	const struct breakdown_row *a = x;
	const struct breakdown_row *b = y;
	return COMPARE(breakdown_blocked_ns(b), breakdown_blocked_ns(a))
		       ?: COMPARE(b->ns[WAIT_ON_CPU], a->ns[WAIT_ON_CPU])
		       ?: COMPARE(a->pid, b->pid)
		       ?: COMPARE(a->tid, b->tid);
}

/*
 * The accounting of a thread begins with its creation and ends with its last switch, which are before
 * the event of its fork and after that of its exit: of a process of 1 ms these are 10 % and more. So
 * the total time of a thread that has exited is at least what was accounted.
 */
static void extend_walls(struct maker *m)
{
	for (size_t i = 0; i < m->p->tasks.n; i++) {
		struct breakdown_row *row = &m->l->rows[m->row_of[i]];
		if (m->p->tasks.p[i].end_ns)
			row->wall_ns = MAX(row->wall_ns, breakdown_sum_ns(row));
	}
}

static void finish(struct maker *m)
{
	size_t n = 0;
	if (!m->l->is_of_waits)
		extend_walls(m);
	for (size_t i = 0; i < m->l->nr_rows; i++) {
		if (!m->is_in[i])
			continue;
		if (m->l->is_of_waits)
			m->l->rows[i].wall_ns = breakdown_sum_ns(&m->l->rows[i]);
		breakdown_add(&m->l->total, &m->l->rows[i]);
		m->l->rows[n++] = m->l->rows[i];
	}
	m->l->nr_rows = n;
	m->l->total.name = "all threads";
	qsort(m->l->rows, n, sizeof(*m->l->rows), breakdown_compare);
}

int breakdown_make(struct arena *a, const struct profile *p, const struct select_spec *spec,
		   struct breakdown *ret_l, struct err *err)
{
	struct breakdown l = {.is_of_waits = select_scope(spec) == SELECT_ROWS};
	struct maker m = {.arena = a, .p = p, .l = &l};
	TRY(find_window(&m, spec, err));
	add_threads(&m);
	add_walls(&m);
	static const enum table_id ids[] = {TABLE_ON_CPU, TABLE_OFF_CPU};
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		struct select_spec only = *spec;
		struct selection sel;
		if (!tables_has_rows(p, ids[i]) || (l.is_of_waits && ids[i] == TABLE_ON_CPU))
			continue;
		only.event = table_key(ids[i]);
		only.flags |= l.is_of_waits ? 0 : SELECT_IDLE;
		TRY(select_run(a, p, &only, &sel, err));
		if (i)
			add_off_cpu(&m, &sel);
		else
			add_on_cpu(&m, &sel);
	}
	finish(&m);
	l.steal_ns = profile_get_fact_nr(p, FACT_STEAL);
	*ret_l = l;
	return 0;
}
