/*
 * Selection of on-CPU and off-CPU time together; see hotcold.h.
 *
 *	on-cpu rows    (thread, second) -> on-CPU time         } budget
 *	CPU samples    (thread, second) -> samples of a stack  } budget split by weight
 *	off-cpu rows   stack, reason, time                     unchanged; idle waits merged
 *
 * Times are in whole seconds of the capture, as the slices are; a sample belongs to the second it
 * was taken in. If a (thread, second) has samples but no on-CPU time (clocks that differ by a tick
 * at the border of a second), its samples are counted with weight 0; their time is in the budget of
 * the neighbouring second.
 */
#include "base/base.h"
#include "analyze/stacks/hotcold.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/vec.h"

typedef VEC(struct select_row) row_vec;

struct mixer {
	struct arena *arena;
	const struct profile *p;
	const struct select_spec *spec;
	uint32_t cpu_table;
	row_vec rows;
	uint64_t nr_samples;
	uint64_t weight;
	struct selection off; /* the waits */
};

static void mixer_release(struct mixer *m)
{
	vec_release(&m->rows);
}

/* Returns the table without tags with most samples, unless an event is named. */
static bool find_cpu_table(const struct profile *p, uint32_t *ret_table)
{
	bool is_found = false;
	size_t best = 0;
	for (uint32_t i = 0; i < p->tables.n; i++) {
		const struct table *t = &p->tables.p[i];
		if (t->has_tags || t->n <= best)
			continue;
		best = t->n;
		*ret_table = i;
		is_found = true;
	}
	return is_found;
}

bool hotcold_exists(const struct profile *p)
{
	uint32_t at;
	const struct table *on_cpu = tables_find_rows(p, TABLE_ON_CPU);
	return find_cpu_table(p, &at) && on_cpu && on_cpu->nr_columns > 1;
}

static void add_row(struct mixer *m, const struct select_row *row)
{
	vec_push(&m->rows, *row);
	m->nr_samples += row->nr_samples;
	m->weight += row->weight;
}

/* ---- what ran ------------------------------------------------------------------------------ */

/* A sample, or on-CPU time, of a thread in one second. */
struct hot {
	task_id task;
	uint64_t slice;
	stack_id stack; /* 0 with is_budget */
	uint32_t source;
	uint32_t phase;
	bool is_budget;
	bool is_in; /* passes the filters on stacks */
	uint64_t nr;
	uint64_t weight;
};

typedef VEC(struct hot) hot_vec;

static uint64_t slice_of(const struct profile *p, uint64_t time_ns)
{
	return time_ns > p->start_ns ? (time_ns - p->start_ns) / NS_PER_SEC : 0;
}

/* Keeps only filters that apply to on-CPU time as well as to samples. */
static struct select_spec of_threads(const struct select_spec *spec)
{
	return (struct select_spec){.time = spec->time,
				    .thread = spec->thread,
				    .pid = spec->pid,
				    .comm = spec->comm,
				    .flags = SELECT_WHOLE_SECONDS};
}

static int collect_samples(struct mixer *m, hot_vec *to, struct err *err)
{
	const struct table *t = &m->p->tables.p[m->cpu_table];
	struct select_spec wide = of_threads(m->spec);
	struct select_spec narrow = *m->spec;
	narrow.reason = NULL;
	narrow.flags |= SELECT_WHOLE_SECONDS;
	struct row_filter *in_budget;
	struct row_filter *filter;
	TRY(select_compile(m->arena, m->p, m->cpu_table, &wide, &in_budget, err));
	TRY(select_compile(m->arena, m->p, m->cpu_table, &narrow, &filter, err));
	for (size_t i = 0; i < t->n; i++) {
		if (!select_has(in_budget, i))
			continue;
		const int64_t *v = &t->values[i * t->nr_columns];
		vec_push(to, (struct hot){
				     .task = t->task[i],
				     .slice = slice_of(m->p, t->time_ns[i]),
				     .stack = t->stack[i],
				     .source = (uint32_t)i,
				     .phase = select_phase(filter, i),
				     .is_in = select_has(filter, i),
				     .nr = (uint64_t)MAX(v[0], 0),
				     .weight = (uint64_t)MAX(v[t->weight_column], 0),
			     });
	}
	return 0;
}

static int collect_budgets(struct mixer *m, hot_vec *to, struct err *err)
{
	const struct table *t = tables_find_rows(m->p, TABLE_ON_CPU);
	const struct select_spec *spec = m->spec;
	struct select_spec wide = of_threads(spec);
	struct row_filter *row_filter;
	TRY(select_compile(m->arena, m->p, (uint32_t)(t - m->p->tables.p), &wide, &row_filter,
			   err));
	/* On-CPU time without a sample has no stack, so it does not pass filters on stacks. */
	bool is_in = !spec->function && !spec->within && !spec->module && !spec->phase &&
		     spec->mode == SELECT_ANY;
	for (size_t i = 0; i < t->n; i++)
		if (select_has(row_filter, i))
			vec_push(to, (struct hot){
					     .task = t->task[i],
					     .slice = slice_of(m->p, t->time_ns[i]),
					     .source = (uint32_t)i,
					     .phase = (uint32_t)spec->nr_rules,
					     .is_budget = true,
					     .is_in = is_in,
					     .weight = (uint64_t)MAX(
						     t->values[i * t->nr_columns + 1], 0),
				     });
	return 0;
}

static int by_thread(const void *x, const void *y)
{
	const struct hot *a = x;
	const struct hot *b = y;
	return COMPARE(a->task, b->task) ?: COMPARE(a->slice, b->slice)
	       ?: COMPARE(a->stack, b->stack) ?: COMPARE(a->nr, b->nr)
	       ?: COMPARE(a->weight, b->weight);
}

/*
 * Divides the on-CPU time of a second among its samples; the last one gets the rounding remainder.
 */
static void add_second(struct mixer *m, const struct hot *hot, size_t n)
{
	uint64_t budget = 0;
	uint64_t weight = 0;
	for (size_t i = 0; i < n; i++)
		*(hot[i].is_budget ? &budget : &weight) += hot[i].weight;
	if (!weight) {
		if (budget && hot->is_in)
			add_row(m, &(struct select_row){.task = hot->task,
							.phase = hot->phase & 0xffffff,
							.synth_leaf = SELECT_LEAF_UNSAMPLED,
							.source = hot->source,
							.weight = budget});
		return;
	}
	uint64_t sum = 0;
	uint64_t given = 0;
	for (size_t i = 0; i < n; i++) {
		if (hot[i].is_budget)
			continue;
		sum += hot[i].weight;
		uint64_t upto = (uint64_t)((unsigned __int128)budget * sum / weight);
		if (hot[i].is_in)
			add_row(m, &(struct select_row){.stack = hot[i].stack,
							.task = hot[i].task,
							.phase = hot[i].phase & 0xffffff,
							.source = hot[i].source,
							.nr_samples = hot[i].nr,
							.weight = upto - given});
		given = upto;
	}
}

static void hot_vec_release(hot_vec *v)
{
	vec_release(v);
}

static int add_hot(struct mixer *m, struct err *err)
{
	CLEANUP(hot_vec_release) hot_vec hot = {0};
	TRY(collect_samples(m, &hot, err));
	TRY(collect_budgets(m, &hot, err));
	vec_foreach(h, &hot) /* a renamed thread has one budget */
		h->task = profile_last_task(m->p, h->task);
	if (hot.n)
		qsort(hot.p, hot.n, sizeof(*hot.p), by_thread);
	for (size_t i = 0; i < hot.n;) {
		size_t n = 1;
		while (i + n < hot.n && hot.p[i + n].task == hot.p[i].task &&
		       hot.p[i + n].slice == hot.p[i].slice)
			n++;
		add_second(m, &hot.p[i], n);
		i += n;
	}
	return 0;
}

/* ---- what waited --------------------------------------------------------------------------- */

static int add_cold(struct mixer *m, struct err *err)
{
	struct select_spec spec = *m->spec;
	spec.event = table_key(TABLE_OFF_CPU);
	spec.flags |= SELECT_WHOLE_SECONDS;
	if (!tables_has_rows(m->p, TABLE_OFF_CPU)) {
		/* Only the time window and roots of the selection. */
		spec.event = profile_text(m->p, m->p->tables.p[m->cpu_table].event);
		return select_run(m->arena, m->p, &spec, &m->off, err);
	}
	TRY(select_run(m->arena, m->p, &spec, &m->off, err));
	bool folds_idle =
		spec.flags & SELECT_IDLE && !spec.reason && !(spec.flags & SELECT_SINGLE_ROWS);
	for (size_t i = 0; i < m->off.nr_rows; i++) {
		struct select_row row = m->off.rows[i];
		if (folds_idle && row.synth_leaf < WAIT_NR &&
		    wait_is_idle((enum wait_reason)row.synth_leaf)) {
			row.stack = 0;
			row.synth_leaf = SELECT_LEAF_IDLE;
		}
		add_row(m, &row);
	}
	return 0;
}

/* ---- together ------------------------------------------------------------------------------ */

static void merge_rows(row_vec *rows)
{
	size_t n = 0;
	if (rows->n)
		qsort(rows->p, rows->n, sizeof(*rows->p), select_row_compare);
	for (size_t i = 0; i < rows->n; i++) {
		if (n && !select_row_compare(&rows->p[n - 1], &rows->p[i])) {
			rows->p[n - 1].weight += rows->p[i].weight;
			rows->p[n - 1].nr_samples += rows->p[i].nr_samples;
			continue;
		}
		rows->p[n++] = rows->p[i];
	}
	rows->n = n;
}

/* True if the reasons of the spec include on-CPU time. */
static bool wants_hot(const struct select_spec *spec)
{
	if (spec->object || spec->waker || spec->min_duration || spec->max_duration)
		return false;
	if (!spec->reason)
		return true;
	const char *text = spec->reason;
	return strstr(text, "on_cpu") ? !strstr(text, "!on_cpu")
				      : strstr(text, "active") != NULL || text[0] == '!';
}

int hotcold_run(struct arena *a, const struct profile *p, const struct select_spec *spec,
		struct selection *ret_sel, struct err *err)
{
	CLEANUP(mixer_release) struct mixer m = {.arena = a, .p = p, .spec = spec};
	if (!hotcold_exists(p) || !find_cpu_table(p, &m.cpu_table)) {
		err_set(err, -ENODATA, "this recording does not have both CPU samples and waits");
		return err_hint(err, "record them together: assay cpu --offcpu");
	}
	TRY(add_cold(&m, err));
	if (wants_hot(spec))
		TRY(add_hot(&m, err));
	if (!(spec->flags & SELECT_SINGLE_ROWS))
		merge_rows(&m.rows);
	*ret_sel = m.off;
	ret_sel->p = p;
	ret_sel->rows = arena_dup(a, m.rows.p, m.rows.n * sizeof(*m.rows.p));
	ret_sel->nr_rows = m.rows.n;
	ret_sel->tagged = NULL;
	ret_sel->nr_tagged = 0;
	ret_sel->nr_samples = m.nr_samples;
	ret_sel->weight = m.weight;
	ret_sel->unit = UNIT_NS;
	ret_sel->id = TABLE_THREAD_TIME;
	ret_sel->event = table_key(TABLE_THREAD_TIME);
	ret_sel->noun = "samples and waits";
	return 0;
}

const struct table *hotcold_table(const struct selection *sel, const struct select_row *row)
{
	if (row->synth_leaf == SELECT_LEAF_UNSAMPLED)
		return tables_find(sel->p, TABLE_ON_CPU);
	if (row->synth_leaf)
		return tables_find(sel->p, TABLE_OFF_CPU);
	uint32_t at = 0;
	(void)find_cpu_table(sel->p, &at); /* the selection was made from it */
	return &sel->p->tables.p[at];
}
