/*
 * Measures of waits: shares of the thread time breakdown, and what the first rows of the tables of waits,
 * the locks and the blamed threads say; see measures.h. What the data do not show is not known.
 */
#include "base/base.h"
#include "analyze/diagnose/measurebase.h"

#include <math.h>

#include "analyze/stacks/threads.h"
#include "analyze/wait/frames.h"
#include "analyze/wait/waittables.h"
#include "base/clock.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/text/num.h"
#include "base/text/shortname.h"

#define IDLE_OF_THREAD 75.0 /* idle share of a thread that works now and then */
#define NAME_TEXT      48   /* columns, as view_name */

static struct waitmeasures *new_waits(struct measures *m)
{
	return m->waits ? m->waits : (m->waits = arena_calloc(&m->a, 1, sizeof(*m->waits)));
}

static void set_active(struct waitmeasures *w)
{
	w->active_ns = breakdown_sum_ns(&w->l->total) - breakdown_idle_ns(&w->l->total);
}

void measures_give_waits(struct measures *m, const struct selection *sel, const struct breakdown *l,
			 const struct report *r)
{
	struct waitmeasures *w = new_waits(m);
	w->sel = sel;
	w->l = l;
	w->tables = r;
	set_active(w);
}

struct waitmeasures *measured_waits(struct measures *m)
{
	struct waitmeasures *w = new_waits(m);
	if (w->l || w->is_failed)
		return w->l ? w : NULL;
	struct select_spec own = m->spec;
	own.event = table_key(TABLE_OFF_CPU);
	w->is_failed = select_scope(&m->spec) == SELECT_ROWS ||
		       select_run(&m->a, m->p, &own, &w->own_sel, NULL) ||
		       breakdown_make(&m->a, m->p, &m->spec, &w->own_l, NULL);
	if (w->is_failed)
		return NULL;
	w->sel = &w->own_sel;
	w->l = &w->own_l;
	set_active(w);
	return w;
}

const struct report *measured_tables(struct measures *m)
{
	struct waitmeasures *w = measured_waits(m);
	if (!w || w->tables)
		return w ? w->tables : NULL;
	const struct view_limits limits = {0};
	w->own_tables = report_new();
	waits_table(w->own_tables, w->sel, WAITS_FUNCTIONS, &limits);
	waits_table(w->own_tables, w->sel, WAITS_EXECUTORS, &limits);
	waits_locks(w->own_tables, w->sel, &m->spec, &limits);
	w->tables = w->own_tables;
	return w->tables;
}

void wait_measures_release(struct measures *m)
{
	if (m->waits)
		report_free(m->waits->own_tables);
}

const struct blame *measured_blame(struct measures *m)
{
	struct waitmeasures *w = measured_waits(m);
	if (!w)
		return NULL;
	if (!w->has_blame && tables_has_rows(m->p, TABLE_BLAME))
		(void)blame_make(&m->a, m->p, &m->spec, &w->blame, NULL); /* no rows then */
	w->has_blame = true;
	return &w->blame;
}

const char *measures_name(struct measures *m, const char *name)
{
	CLEANUP(buf_release) struct buf b = {0};
	shortname_add(&b, sv_from_str(name), NAME_TEXT);
	return arena_strdup(&m->a, buf_str(&b));
}

double measured_pct(const struct waitmeasures *w, uint64_t ns)
{
	return view_pct(ns, w->active_ns);
}

const struct report_table *measured_table(const struct report *r, const char *key)
{
	if (!r)
		return NULL;
	vec_foreach(t, &r->tables)
		if (!strcmp(t->key, key) && t->nr_rows)
			return t;
	return NULL;
}

size_t measured_column(const struct report_table *t, const char *key)
{
	size_t at = 0;
	while (at + 1 < t->nr_columns && strcmp(t->columns[at].key, key))
		at++;
	return at;
}

/* ---- the breakdown ------------------------------------------------------------------------- */

#define NUMBER(name) static double name(struct measures *m)
#define TEXT(name)   static const char *name(struct measures *m)

NUMBER(covered_pct)
{
	const struct waitmeasures *w = measured_waits(m);
	return w ? breakdown_covered_pct(&w->l->total) : (double)NAN;
}

NUMBER(idle_pct)
{
	const struct waitmeasures *w = measured_waits(m);
	return w ? view_pct(breakdown_idle_ns(&w->l->total), breakdown_sum_ns(&w->l->total))
		 : (double)NAN;
}

NUMBER(active_time)
{
	const struct waitmeasures *w = measured_waits(m);
	return w ? (double)w->active_ns : (double)NAN;
}

NUMBER(active_of_all)
{
	const struct waitmeasures *w = measured_waits(m);
	return w ? view_pct(w->active_ns, breakdown_sum_ns(&w->l->total)) : (double)NAN;
}

TEXT(active)
{
	return select_scope(&m->spec) == SELECT_THREADS ? "the selection's " MEASURE_ACTIVE
							: MEASURE_ACTIVE;
}

NUMBER(selected)
{
	return select_scope(&m->spec) != SELECT_ALL;
}

TEXT(cpus_used)
{
	const struct waitmeasures *w = measured_waits(m);
	return w ? arena_strdup(&m->a, breakdown_cpus_text(w->l).s) : NULL;
}

NUMBER(threads)
{
	const struct waitmeasures *w = measured_waits(m);
	return w ? (double)w->l->total.nr_threads : (double)NAN;
}

/*
 * Time in the run queue of threads that are idle for most of their time. On a busy machine each of
 * their wake-ups takes long; that is a matter of latency, they have little to do nevertheless.
 */
static uint64_t queue_of_idle_ns(const struct waitmeasures *w)
{
	uint64_t ns = 0;
	for (size_t i = 0; i < w->l->nr_rows; i++) {
		const struct breakdown_row *t = &w->l->rows[i];
		if (view_pct(breakdown_idle_ns(t), breakdown_sum_ns(t)) >= IDLE_OF_THREAD)
			ns += t->ns[WAIT_RUN_QUEUE];
	}
	return ns;
}

NUMBER(idle_pct_without_queue)
{
	const struct waitmeasures *w = measured_waits(m);
	return w ? view_pct(breakdown_idle_ns(&w->l->total),
			    breakdown_sum_ns(&w->l->total) - queue_of_idle_ns(w))
		 : (double)NAN;
}

NUMBER(busy_threads)
{
	const struct waitmeasures *w = measured_waits(m);
	if (!w)
		return (double)NAN;
	uint64_t busy_ns = w->active_ns - queue_of_idle_ns(w);
	return w->l->window_ns ? (double)busy_ns / (double)w->l->window_ns : 0;
}

NUMBER(queue_of_duration)
{
	const struct waitmeasures *w = measured_waits(m);
	return w ? view_pct(w->l->total.ns[WAIT_RUN_QUEUE], w->l->window_ns) : (double)NAN;
}

NUMBER(switches_rate)
{
	const struct waitmeasures *w = measured_waits(m);
	uint64_t nr = w ? w->l->total.nr_voluntary + w->l->total.nr_involuntary : 0;
	return w && w->l->window_ns ? (double)nr / ((double)w->l->window_ns / 1e9) : (double)NAN;
}

/* The busiest thread's time on a CPU, of the duration. */
NUMBER(busiest_thread_pct)
{
	const struct waitmeasures *w = measured_waits(m);
	double pct = 0;
	for (size_t i = 0; w && i < w->l->nr_rows; i++)
		pct = MAX(pct, view_pct(w->l->rows[i].ns[WAIT_ON_CPU], w->l->window_ns));
	return w ? pct : (double)NAN;
}

/* ---- by reason ------------------------------------------------------------------------------ */

#define NUMBER_OF(name) static double name(struct measures *m, enum wait_reason reason)

NUMBER_OF(reason_pct)
{
	const struct waitmeasures *w = measured_waits(m);
	return w ? measured_pct(w, w->l->total.ns[reason]) : (double)NAN;
}

NUMBER_OF(reason_time)
{
	const struct waitmeasures *w = measured_waits(m);
	return w ? (double)w->l->total.ns[reason] : (double)NAN;
}

NUMBER_OF(reason_waits)
{
	const struct waitmeasures *w = measured_waits(m);
	return w ? (double)w->l->total.nr_waits[reason] : (double)NAN;
}

NUMBER_OF(reason_evident)
{
	const struct waitmeasures *w = measured_waits(m);
	return w ? w->l->total.ns[reason] >= MEASURE_EVIDENCE_NS ||
			       w->l->total.nr_waits[reason] >= MEASURE_EVIDENCE_WAITS
		 : (double)NAN;
}

static double reason_quantile(struct measures *m, enum wait_reason reason, double share)
{
	const struct waitmeasures *w = measured_waits(m);
	return w && w->l->waits[reason].nr_all ? (double)quantile_at(&w->l->waits[reason], share)
					       : (double)NAN;
}

NUMBER_OF(reason_p50)
{
	return reason_quantile(m, reason, 0.5);
}

NUMBER_OF(reason_p99)
{
	return reason_quantile(m, reason, 0.99);
}

/*
 * The function that spent most time for a reason. What it called says whether it yields on its own or
 * in a lock.
 */
static const char *reason_where(struct measures *m, enum wait_reason reason)
{
	const struct report_table *t = measured_table(measured_tables(m), "waiting_functions");
	size_t at = t ? measured_column(t, "reason") : 0;
	for (size_t i = 0; t && i < t->nr_rows; i++) {
		const union cell *row = &t->cells[i * t->nr_columns];
		if (strcmp(row[at].text, wait_key(reason)) != 0)
			continue;
		bool has_call = reason == WAIT_YIELD && row[at + 2].text[0];
		return arena_fmt(&m->a, "%s%s%s", measures_name(m, row[at + 1].text),
				 has_call ? ", in its call of " : "",
				 has_call ? measures_name(m, row[at + 2].text) : "");
	}
	return "";
}

/* ---- the rows -------------------------------------------------------------------------------- */

static const struct measure waits_rows[] = {
	{"active", FORMULA_TEXT, NULL, "what the shares are of, for sentences", .text = active},
	{"active.time", FORMULA_NS, NULL, "thread time without idle waits", .number = active_time},
	{"active.pct", FORMULA_PERCENT, "thread time", "thread time without idle waits",
	 .number = active_of_all},
	{"selected", FORMULA_PLAIN, NULL, "1: filters leave only some of the threads or time",
	 .number = selected},
	{"cpus.used", FORMULA_TEXT, NULL, "CPUs in use, on average", .text = cpus_used},
	{"threads", FORMULA_COUNT, NULL, "threads", .number = threads},
	{"covered.pct", FORMULA_PERCENT, "thread time", "thread time that is accounted for",
	 .number = covered_pct},
	{"idle.pct", FORMULA_PERCENT, "thread time",
	 "idle time (park, poll, sleep, waits for children)", .number = idle_pct},
	{"idle.pct-without-run-queue", FORMULA_PERCENT,
	 "thread time without the run queue of idle threads", "idle time",
	 .number = idle_pct_without_queue},
	{"busy.threads", FORMULA_PLAIN, NULL, "threads that are not idle, on average",
	 .number = busy_threads},
	{"busiest.pct", FORMULA_PERCENT, "the duration", "on CPU, of the busiest thread",
	 .number = busiest_thread_pct},
	{"run-queue.duration", FORMULA_PERCENT, "the duration",
	 "time in the run queue, of all threads", .number = queue_of_duration},
	{"switches.rate", FORMULA_COUNT, NULL, "context switches a second",
	 .number = switches_rate},
};

static const struct measure reason_rows[] = {
	{"pct", FORMULA_PERCENT, MEASURE_ACTIVE, "time for this reason", .number_of = reason_pct},
	{"time", FORMULA_NS, NULL, "the same as time", .number_of = reason_time},
	{"waits", FORMULA_COUNT, NULL, "number of intervals", .number_of = reason_waits},
	{"evident", FORMULA_PLAIN, NULL, "1: at least 50 ms or 200 intervals",
	 .number_of = reason_evident},
	{"p50", FORMULA_NS, NULL, "median interval", .number_of = reason_p50},
	{"p99", FORMULA_NS, NULL, "99th percentile", .number_of = reason_p99},
	{"where", FORMULA_TEXT, NULL, "function with most of the time", .text_of = reason_where},
};

const struct measure *wait_measures(size_t *ret_nr)
{
	*ret_nr = ARRAY_LEN(waits_rows);
	return waits_rows;
}

const struct measure *reason_measures(size_t *ret_nr)
{
	*ret_nr = ARRAY_LEN(reason_rows);
	return reason_rows;
}
