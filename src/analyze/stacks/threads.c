/* Weight by thread and by process; see threads.h. */
#include "base/base.h"
#include "analyze/stacks/threads.h"

#include <math.h>

#include "base/hash.h"
#include "base/map.h"

/* What rows are. */
enum kind { THREADS = 1 << 0, GROUPS = 1 << 1, PROCESSES = 1 << 2 };
enum { IS_ESTIMATE = 1 << 3, HAS_CPUS = 1 << 4, IS_TIME = 1 << 5 }; /* further bits of columns */

struct thread_row {
	const char *name;
	const char *group;
	int32_t pid;
	int32_t tid;
	bool is_idle;        /* idle CPUs, not a thread that runs */
	uint64_t nr_threads; /* sampled; of a process one per thread name */
	struct weight w;
};

static struct report_table *begin_table(struct report *r, const struct selection *sel,
					const char *key, const char *title, enum kind kind)
{
	bool has_cpus = kind != PROCESSES && view_cpus(sel, view_all(sel)) >= 0;
	unsigned bits = kind | (view_is_exact(sel) ? 0 : IS_ESTIMATE) | (has_cpus ? HAS_CPUS : 0);
	bool is_process = kind == PROCESSES;
	const char *name = is_process ? "process" : "thread";
	const struct report_column columns[] = {
		{"pct", "%", CELL_PERCENT, "share of everything shown"},
		{"error_pct", "+-", CELL_PERCENT,
		 "half width of the 95 % confidence interval, in percentage points", IS_ESTIMATE},
		{"cpus", "avg CPUs", CELL_FLOAT, "CPUs in use on average over the window",
		 HAS_CPUS},
		{"samples", select_noun(sel), CELL_COUNT},
		{"time_ns", "time", CELL_NS, NULL, IS_TIME},
		{"threads", "threads", CELL_COUNT, "sampled threads", GROUPS | PROCESSES},
		{"pid", "pid", CELL_ID, NULL, THREADS | PROCESSES},
		{"tid", "tid", CELL_ID, NULL, THREADS},
		{name, name, CELL_TEXT},
	};
	bits |= sel->unit == UNIT_NS ? IS_TIME : 0;
	struct report_table *t =
		report_add_table_of(r, key, title, columns, ARRAY_LEN(columns), bits);
	t->has_counts = !view_has_shares(sel);
	return t;
}

static int by_weight(const void *x, const void *y)
{
	const struct thread_row *a = x;
	const struct thread_row *b = y;
	return COMPARE(b->w.weight, a->w.weight)
		       ?: strcmp(a->name, b->name)
		       ?: COMPARE(a->pid, b->pid)
		       ?: COMPARE(a->tid, b->tid);
}

/* Ids are missing in text formats. */
static uint64_t id_or_none(int32_t id)
{
	return id > 0 ? (uint64_t)id : CELL_NO_ID;
}

static void add_row(struct report *r, struct report_table *t, const struct selection *sel,
		    const struct thread_row *row)
{
	double cpus = row->is_idle ? -1 : view_cpus(sel, row->w);
	const union cell cells[] = {
		{.d = view_pct(row->w.weight, sel->weight)},
		{.d = view_error(sel, row->w, view_all(sel))},
		{.d = cpus < 0 ? (double)NAN : cpus},
		{.u = row->w.nr_samples},
		{.u = row->w.weight},
		{.u = row->nr_threads},
		{.u = id_or_none(row->pid)},
		{.u = id_or_none(row->tid)},
		{.text = row->name},
	};
	report_add_row(r, t, cells);
}

static void add_rows(struct report *r, struct report_table *t, const struct selection *sel,
		     struct thread_row *rows, size_t n, const struct view_limits *limits)
{
	struct thread_row other = {.name = "<other>"};
	qsort(rows, n, sizeof(*rows), by_weight);
	for (size_t i = 0; i < n; i++) {
		if (!rows[i].nr_threads)
			continue;
		t->nr_rows_total++;
		if (view_has_room(limits, t, view_pct(rows[i].w.weight, sel->weight))) {
			add_row(r, t, sel, &rows[i]);
			continue;
		}
		weight_add(&other.w, &rows[i].w);
		other.nr_threads += rows[i].nr_threads;
	}
	t->has_other = other.nr_threads > 0;
	if (other.nr_threads)
		add_row(r, t, sel, &other);
}

/*
 * Makes one row per (pid, tid), or per pid. A renamed thread is one row, under its last name; a
 * process has the name of its main thread. Without ids, in text formats, rows are by name.
 */
static struct thread_row *make_rows(struct arena *a, const struct selection *sel, enum kind kind,
				    size_t *ret_n)
{
	const struct profile *p = sel->p;
	CLEANUP(map_release) struct map index = {0};
	uint32_t *row_of_task = arena_calloc(a, p->tasks.n, sizeof(*row_of_task));
	struct thread_row *rows = arena_calloc(a, p->tasks.n, sizeof(*rows));
	bool *is_hit = arena_calloc(a, p->tasks.n, sizeof(*is_hit));
	bool is_process = kind == PROCESSES;
	size_t n = 0;
	for (task_id id = 0; id < p->tasks.n; id++) {
		const struct task *t = &p->tasks.p[id];
		task_id named = is_process ? profile_main_task(p, id) : profile_last_task(p, id);
		const char *name = profile_text(p, p->tasks.p[named].comm);
		bool has_id = is_process ? t->pid > 0 : t->tid > 0;
		uint64_t ids =
			(uint64_t)(uint32_t)t->pid << 32 | (is_process ? 0 : (uint32_t)t->tid);
		bool is_new;
		uint32_t *at = map_put(&index, has_id ? ids : hash_mix(ids, t->comm), &is_new);
		if (is_new)
			*at = (uint32_t)n++;
		struct thread_row *row = &rows[row_of_task[id] = *at];
		if (!is_process || is_new)
			row->name = name[0] ? name : "[no name]";
		row->group = threads_name(p, named);
		row->is_idle = view_is_idle_thread(p, id);
		row->pid = t->pid;
		row->tid = is_process ? 0 : t->tid;
	}
	for (size_t i = 0; i < sel->nr_rows; i++) {
		task_id task = sel->rows[i].task;
		struct thread_row *row = &rows[row_of_task[task]];
		weight_add_row(&row->w, sel, i);
		if (!is_process)
			row->nr_threads = row->w.weight || row->w.nr_samples;
		else
			row->nr_threads += !is_hit[profile_last_task(p, task)];
		is_hit[profile_last_task(p, task)] = true;
	}
	*ret_n = n;
	return rows;
}

void threads_report(struct report *r, const struct selection *sel, const struct view_limits *limits)
{
	CLEANUP(arena_release) struct arena a = {0};
	size_t n;
	struct thread_row *rows = make_rows(&a, sel, THREADS, &n);
	add_rows(r, begin_table(r, sel, "threads", "threads", THREADS), sel, rows, n, limits);
}

void processes_report(struct report *r, const struct selection *sel,
		      const struct view_limits *limits)
{
	CLEANUP(arena_release) struct arena a = {0};
	size_t n;
	struct thread_row *rows = make_rows(&a, sel, PROCESSES, &n);
	add_rows(r, begin_table(r, sel, "processes", "processes", PROCESSES), sel, rows, n, limits);
}

const char *threads_name(const struct profile *p, task_id id)
{
	const char *name = profile_thread_group(p, id);
	return name[0] ? name : "[no name]";
}

void thread_groups_report(struct report *r, const struct selection *sel,
			  const struct view_limits *limits)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(intern_release) struct intern names = {0};
	size_t n;
	struct thread_row *rows = make_rows(&a, sel, THREADS, &n);
	struct thread_row *groups = arena_calloc(&a, n + 1, sizeof(*groups));
	(void)intern_add(&names, "", 0);
	for (size_t i = 0; i < n; i++) {
		if (!rows[i].nr_threads)
			continue;
		struct thread_row *g = &groups[intern_add_str(&names, rows[i].group)];
		/* a single thread keeps its whole name */
		g->name = g->nr_threads ? rows[i].group : rows[i].name;
		g->is_idle = rows[i].is_idle;
		g->nr_threads++;
		weight_add(&g->w, &rows[i].w);
	}
	groups[0].name = ""; /* samples without a thread */
	struct report_table *t =
		begin_table(r, sel, "thread_groups", "threads by name (digits shown as #)", GROUPS);
	add_rows(r, t, sel, groups, intern_count(&names), limits);
}
