/* Weight by thread; see threads.h. */
#include "base/base.h"
#include "analyze/threads.h"

#include "base/buf.h"
#include "base/map.h"

struct thread_row {
	const char *name;
	int32_t pid;
	int32_t tid;
	uint64_t nr_threads;
	struct weight w;
};

static const struct report_column columns[] = {
	{"pct", "%", CELL_PERCENT, "share of everything in view"},
	{"error_pct", "+-", CELL_PERCENT, "half of the 95 % interval, in percentage points"},
	{"cpus", "CPUs", CELL_FLOAT, "CPUs in use on average over the window"},
	{"samples", "samples", CELL_COUNT, NULL},
	{"pid", "pid", CELL_ID, NULL},
	{"tid", "tid", CELL_ID, NULL},
	{"thread", "thread", CELL_TEXT, NULL},
};

static const struct report_column group_columns[] = {
	{"pct", "%", CELL_PERCENT, "share of everything in view"},
	{"error_pct", "+-", CELL_PERCENT, "half of the 95 % interval, in percentage points"},
	{"cpus", "CPUs", CELL_FLOAT, "CPUs in use on average over the window"},
	{"samples", "samples", CELL_COUNT, NULL},
	{"threads", "threads", CELL_COUNT, "threads that were hit"},
	{"thread", "thread", CELL_TEXT, NULL},
};

static int by_weight(const void *x, const void *y)
{
	const struct thread_row *a = x;
	const struct thread_row *b = y;
	if (a->w.weight != b->w.weight)
		return a->w.weight > b->w.weight ? -1 : 1;
	int c = strcmp(a->name, b->name);
	if (c)
		return c;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return a->tid < b->tid ? -1 : a->tid > b->tid;
}

static double cpus_or_nan(const struct selection *sel, struct weight w)
{
	double cpus = view_cpus(sel, w);
	return cpus < 0 ? (double)__builtin_nan("") : cpus;
}

/* Text formats may know neither. */
static uint64_t id_or_none(int32_t id)
{
	return id > 0 ? (uint64_t)id : CELL_NO_ID;
}

static void add_row(struct report *r, struct report_table *t, const struct selection *sel,
		    const struct thread_row *row)
{
	bool is_group = t->nr_columns == ARRAY_LEN(group_columns);
	union cell cells[ARRAY_LEN(columns)];
	size_t n = 0;
	cells[n++].d = view_pct(row->w.weight, sel->weight);
	cells[n++].d = view_error(sel, row->w, view_all(sel));
	cells[n++].d = cpus_or_nan(sel, row->w);
	cells[n++].u = row->w.nr_samples;
	if (is_group) {
		cells[n++].u = row->nr_threads;
	} else {
		cells[n++].u = id_or_none(row->pid);
		cells[n++].u = id_or_none(row->tid);
	}
	cells[n++].text = row->name;
	report_add_row(r, t, cells);
}

static void add_rows(struct report *r, struct report_table *t, const struct selection *sel,
		     struct thread_row *rows, size_t n, const struct view_limits *limits)
{
	qsort(rows, n, sizeof(*rows), by_weight);
	struct thread_row other = {.name = "<other>"};
	size_t nr_all = 0;
	for (size_t i = 0; i < n; i++) {
		if (!rows[i].w.weight && !rows[i].w.nr_samples)
			continue;
		nr_all++;
		if ((!limits->max_rows || t->nr_rows < limits->max_rows) &&
		    view_pct(rows[i].w.weight, sel->weight) >= limits->min_pct) {
			add_row(r, t, sel, &rows[i]);
			continue;
		}
		weight_add(&other.w, &rows[i].w);
		other.nr_threads += rows[i].nr_threads;
	}
	if (nr_all > t->nr_rows)
		add_row(r, t, sel, &other);
	t->nr_rows_total = nr_all;
}

/* One row a (pid, tid): a thread that was renamed is one, under its last name. */
static struct thread_row *weigh_threads(struct arena *a, const struct selection *sel, size_t *ret_n)
{
	const struct profile *p = sel->p;
	CLEANUP(map_release) struct map index = {0};
	uint32_t *row_of_task = arena_calloc(a, p->tasks.n, sizeof(*row_of_task));
	struct thread_row *rows = arena_calloc(a, p->tasks.n, sizeof(*rows));
	size_t n = 0;
	for (task_id id = 0; id < p->tasks.n; id++) {
		const struct task *t = &p->tasks.p[id];
		uint64_t key = (uint64_t)(uint32_t)t->pid << 32 | (uint32_t)t->tid;
		bool is_new = true;
		/* text formats know names but no numbers: then the name tells threads apart */
		uint32_t *at = map_put(&index, key ? key : (uint64_t)t->comm << 32, &is_new);
		if (is_new)
			*at = (uint32_t)n++;
		row_of_task[id] = *at;
		const char *name = profile_text(p, t->comm);
		rows[*at].name = name[0] ? name : "[no name]";
		rows[*at].pid = t->pid;
		rows[*at].tid = t->tid;
		rows[*at].nr_threads = 1;
	}
	for (size_t i = 0; i < sel->nr_rows; i++)
		weight_add_row(&rows[row_of_task[sel->rows[i].task]].w, sel, i);
	*ret_n = n;
	return rows;
}

void threads_report(struct report *r, const struct selection *sel, const struct view_limits *limits)
{
	CLEANUP(arena_release) struct arena a = {0};
	size_t n;
	struct thread_row *rows = weigh_threads(&a, sel, &n);
	struct report_table *t =
		report_add_table(r, "threads", "threads", columns, ARRAY_LEN(columns));
	add_rows(r, t, sel, rows, n, limits);
}

void threads_fold_numbers(struct buf *to, const char *name)
{
	buf_clear(to);
	for (const char *c = name; *c; c++) {
		bool is_digit = *c >= '0' && *c <= '9';
		if (!is_digit)
			buf_add_ch(to, *c);
		else if (!to->n || to->p[to->n - 1] != '#')
			buf_add_ch(to, '#');
	}
}

void thread_groups_report(struct report *r, const struct selection *sel,
			  const struct view_limits *limits)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(intern_release) struct intern names = {0};
	CLEANUP(buf_release) struct buf folded = {0};
	size_t n;
	struct thread_row *rows = weigh_threads(&a, sel, &n);
	struct thread_row *groups = arena_calloc(&a, n + 1, sizeof(*groups));
	(void)intern_add(&names, "", 0);
	for (size_t i = 0; i < n; i++) {
		if (!rows[i].w.weight && !rows[i].w.nr_samples)
			continue;
		threads_fold_numbers(&folded, rows[i].name);
		struct thread_row *g = &groups[intern_add(&names, folded.p, folded.n)];
		/* a single thread keeps its whole name */
		g->name = g->nr_threads ? arena_strdup(&a, folded.p) : rows[i].name;
		g->nr_threads++;
		weight_add(&g->w, &rows[i].w);
	}
	for (size_t i = 0; i <= n; i++)
		if (!groups[i].name)
			groups[i].name = "";
	struct report_table *t =
		report_add_table(r, "thread_groups", "threads, numbers in their names as #",
				 group_columns, ARRAY_LEN(group_columns));
	add_rows(r, t, sel, groups, intern_count(&names), limits);
}
