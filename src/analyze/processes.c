/* Weight by process; see processes.h. */
#include "base/base.h"
#include "analyze/processes.h"

#include "base/map.h"

struct process {
	const char *name;
	int32_t pid;
	uint64_t nr_threads; /* that are in a row */
	struct weight w;
};

static const struct report_column columns[] = {
	{"pct", "%", CELL_PERCENT, "share of everything in view"},
	{"error_pct", "+-", CELL_PERCENT, "half of the 95 % interval, in percentage points"},
	{"samples", "samples", CELL_COUNT, NULL},
	{"threads", "threads", CELL_COUNT, "threads that were hit, under each of their names"},
	{"pid", "pid", CELL_ID, NULL},
	{"process", "process", CELL_TEXT, NULL},
};

static int by_weight(const void *x, const void *y)
{
	const struct process *a = x;
	const struct process *b = y;
	if (a->w.weight != b->w.weight)
		return a->w.weight > b->w.weight ? -1 : 1;
	int c = strcmp(a->name, b->name);
	return c ? c : (a->pid > b->pid) - (a->pid < b->pid);
}

static void add_row(struct report *r, struct report_table *t, const struct selection *sel,
		    const struct process *p)
{
	const union cell cells[] = {
		{.d = view_pct(p->w.weight, sel->weight)},
		{.d = view_error(sel, p->w, view_all(sel))},
		{.u = p->w.nr_samples},
		{.u = p->nr_threads},
		{.u = p->pid > 0 ? (uint64_t)p->pid : CELL_NO_ID},
		{.text = p->name},
	};
	report_add_row(r, t, cells);
}

/* Text formats know names but no ids: then the name tells processes apart. */
static uint64_t key_of(const struct task *t)
{
	return t->pid > 0 ? (uint64_t)t->pid : (uint64_t)t->comm << 32;
}

static struct process *weigh_processes(struct arena *a, const struct selection *sel, size_t *ret_n)
{
	const struct profile *p = sel->p;
	CLEANUP(map_release) struct map index = {0};
	struct process **of_task = arena_calloc(a, p->tasks.n, sizeof(struct process *));
	struct process *rows = arena_calloc(a, p->tasks.n, sizeof(*rows));
	bool *is_hit = arena_calloc(a, p->tasks.n, sizeof(*is_hit));
	size_t n = 0;
	for (task_id id = 0; id < p->tasks.n; id++) {
		const struct task *t = &p->tasks.p[id];
		const char *name = profile_text(p, t->comm);
		bool is_new;
		uint32_t *at = map_put(&index, key_of(t), &is_new);
		if (is_new)
			*at = (uint32_t)n++;
		struct process *row = of_task[id] = &rows[*at];
		if (is_new || t->tid == t->pid)
			row->name = name[0] ? name : "[no name]";
		row->pid = t->pid;
	}
	for (size_t i = 0; i < sel->nr_rows; i++) {
		task_id task = sel->rows[i].task;
		of_task[task]->nr_threads += !is_hit[task];
		is_hit[task] = true;
		weight_add_row(&of_task[task]->w, sel, i);
	}
	*ret_n = n;
	return rows;
}

void processes_report(struct report *r, const struct selection *sel,
		      const struct view_limits *limits)
{
	CLEANUP(arena_release) struct arena a = {0};
	size_t n;
	struct process *rows = weigh_processes(&a, sel, &n);
	struct process other = {.name = "<other>"};
	struct report_table *t =
		report_add_table(r, "processes", "processes", columns, ARRAY_LEN(columns));
	qsort(rows, n, sizeof(*rows), by_weight);
	for (size_t i = 0; i < n; i++) {
		if (!rows[i].nr_threads)
			continue;
		t->nr_rows_total++;
		if ((!limits->max_rows || t->nr_rows < limits->max_rows) &&
		    view_pct(rows[i].w.weight, sel->weight) >= limits->min_pct) {
			add_row(r, t, sel, &rows[i]);
			continue;
		}
		weight_add(&other.w, &rows[i].w);
		other.nr_threads += rows[i].nr_threads;
	}
	if (other.nr_threads)
		add_row(r, t, sel, &other);
}
