/* Tables of memory; see heapviews.h. */
#include "base/base.h"
#include "analyze/heapviews.h"

#include <math.h>
#include <stdlib.h>

#include "analyze/heapweights.h"
#include "base/buf.h"
#include "base/num.h"
#include "model/heap.h"

#define CELLS_MAX 12
#define BUSY_PART 20 /* of bytes or calls: a function that is always shown */

/* ---- columns that a profile has ------------------------------------------------------------ */

static const struct heap_sum *allocated_of(const struct heap_figures *f)
{
	return &f->allocated;
}

static const struct heap_sum *live_of(const struct heap_figures *f)
{
	return &f->live;
}

static const struct heap_sum *leaked_of(const struct heap_figures *f)
{
	return &f->leaked;
}

static const struct heap_sum *peak_of(const struct heap_figures *f)
{
	return &f->peak;
}

static const struct heap_sum *temporary_of(const struct heap_figures *f)
{
	return &f->temporary;
}

static const struct heap_sum *mapped_of(const struct heap_figures *f)
{
	return &f->mapped;
}

static const struct heap_sum *growth_of(const struct heap_figures *f)
{
	return &f->growth;
}

enum derived { DERIVED_NONE, DERIVED_COUNT, DERIVED_MEAN, DERIVED_TEMPORARY };

/* What a table of groups can show, in this order. */
static const struct {
	struct report_column column;
	heap_sum_of of;
	enum derived derived;
} figures[] = {
	{{"allocated", "allocated", CELL_BYTES_ESTIMATE, "bytes"}, allocated_of, DERIVED_NONE},
	{{"calls", "calls", CELL_COUNT_ESTIMATE, "allocations"}, allocated_of, DERIVED_COUNT},
	{{"mean_bytes", "mean size", CELL_BYTES, NULL}, allocated_of, DERIVED_MEAN},
	{{"temporary_pct", "temp %", CELL_PERCENT,
	  "of the allocations: freed before their thread's next one"},
	 temporary_of,
	 DERIVED_TEMPORARY},
	{{"peak", "at peak", CELL_BYTES_ESTIMATE, "bytes when the process had most"},
	 peak_of,
	 DERIVED_NONE},
	{{"live", "live", CELL_BYTES_ESTIMATE, "bytes at the end"}, live_of, DERIVED_NONE},
	{{"blocks", "blocks", CELL_COUNT_ESTIMATE, "live ones"}, live_of, DERIVED_COUNT},
	{{"leaked", "leaked", CELL_BYTES_ESTIMATE, "of live: what is old"},
	 leaked_of,
	 DERIVED_NONE},
};

static bool is_there(const struct heapfigures *f, size_t i)
{
	const struct heap_sum *s = figures[i].of(&f->total);
	/* Blocks are worth a column where allocations have none. */
	if (figures[i].of == live_of && figures[i].derived == DERIVED_COUNT)
		return s->nr > 0 && f->total.allocated.nr <= 0;
	return s->nr > 0 || s->bytes > 0;
}

static union cell figure_cell(size_t i, const struct heap_figures *f)
{
	const struct heap_sum *s = figures[i].of(f);
	switch (figures[i].derived) {
	case DERIVED_NONE:
		break;
	case DERIVED_COUNT:
		return heap_cell_count(s);
	case DERIVED_MEAN:
		return (union cell){.u = s->nr > 0 ? (uint64_t)MAX(s->bytes, 0) / (uint64_t)s->nr
						   : 0};
	case DERIVED_TEMPORARY:
		return (union cell){.d = f->allocated.nr > 0
						 ? 100.0 * (double)s->nr / (double)f->allocated.nr
						 : (double)NAN};
	}
	return heap_cell_bytes(s);
}

struct shape {
	struct report_column columns[CELLS_MAX];
	size_t nr;
	size_t figures[CELLS_MAX];
	size_t nr_figures;
};

static struct shape shape_of(const struct heapfigures *f)
{
	struct shape s = {0};
	for (size_t i = 0; i < ARRAY_LEN(figures); i++) {
		if (!is_there(f, i))
			continue;
		s.columns[s.nr++] = figures[i].column;
		s.figures[s.nr_figures++] = i;
	}
	return s;
}

static void add_text_column(struct shape *s, const char *key, const char *title, const char *help)
{
	ASSERT(s->nr < CELLS_MAX);
	s->columns[s->nr++] = (struct report_column){key, title, CELL_TEXT, help};
}

static size_t fill(const struct shape *s, union cell *cells, const struct heap_figures *f)
{
	for (size_t i = 0; i < s->nr_figures; i++)
		cells[i] = figure_cell(s->figures[i], f);
	return s->nr_figures;
}

/* Peak for who was launched, live else: by what the page's other parts show first. */
static heap_sum_of main_sum(const struct heapfigures *f)
{
	enum heap_weight w = heap_weight_default(f->p);
	if (w == HEAP_WEIGHT_PEAK && f->total.peak.bytes > 0)
		return peak_of;
	if (w == HEAP_WEIGHT_LIVE && f->total.live.bytes > 0)
		return live_of;
	return f->total.allocated.bytes > 0 ? allocated_of : live_of;
}

/* What goes where there is no room; what tables are sorted by stays. */
static const char *const spare[] = {"min_bytes", "mean_bytes", "module", "through",
				    "pid",       "peak",       "calls",  NULL};
static const char *const spare_by_peak[] = {"min_bytes", "mean_bytes", "module", "through",
					    "pid",       "live",       "calls",  NULL};

static const char *const *spare_of(const struct heapfigures *f)
{
	return main_sum(f) == peak_of ? spare_by_peak : spare;
}

/* ---- functions ----------------------------------------------------------------------------- */

static bool has_heap(const struct heap_figures *f)
{
	return !heap_sum_is_none(&f->allocated) || !heap_sum_is_none(&f->live) ||
	       !heap_sum_is_none(&f->peak) || !heap_sum_is_none(&f->freed);
}

static void add_function_row(struct report *r, struct report_table *t, const struct shape *s,
			     const struct heapfigures *f, const struct heap_figures *fig,
			     const struct heapframe *frame)
{
	union cell cells[CELLS_MAX];
	size_t n = fill(s, cells, fig);
	cells[n++].text = frame ? heapframe_name(f->p, frame) : "<other>";
	cells[n++].text = frame && frame->via ? profile_text(f->p, frame->via) : "-";
	const char *module =
		frame && frame->module ? profile_module_name(f->p, frame->module) : "-";
	cells[n++].text = module;
	report_add_row(r, t, cells);
}

/* Holds next to nothing, but makes much of the work: the table must not pass over it. */
static bool is_busy(const struct heapfigures *f, const struct heap_figures *of)
{
	const struct heap_sum *all = &f->total.allocated;
	const struct heap_sum *s = &of->allocated;
	return (all->bytes > 0 && s->bytes >= all->bytes / BUSY_PART) ||
	       (all->nr > 0 && s->nr >= all->nr / BUSY_PART);
}

void heapviews_functions(struct report *r, struct heapfigures *f, const struct view_limits *limits)
{
	struct shape s = shape_of(f);
	struct heap_figures other = {0};
	size_t nr = 0;
	size_t nr_other = 0;
	if (!has_heap(&f->total))
		return;
	add_text_column(&s, "function", "allocated by",
			"the nearest function that is no allocator's or standard library's");
	add_text_column(&s, "through", "through", "what it called, of a standard library");
	add_text_column(&s, "module", "module", NULL);
	heap_sum_of by = main_sum(f);
	heap_groups_sort(&f->functions, by, false);
	struct report_table *t =
		report_add_table(r, "heap_functions",
				 by == peak_of   ? "functions by what they hold at the peak"
				 : by == live_of ? "functions by what they hold at the end"
						 : "functions by what they allocate",
				 s.columns, s.nr);
	t->spare = spare_of(f);
	vec_foreach(g, &f->functions.rows) {
		if (!has_heap(&g->f))
			continue;
		if (!limits->max_rows || nr < limits->max_rows || is_busy(f, &g->f))
			add_function_row(r, t, &s, f, &g->f, &g->frame);
		else {
			heap_figures_add(&other, &g->f);
			nr_other++;
		}
		nr++;
	}
	if (nr_other)
		add_function_row(r, t, &s, f, &other, NULL);
	t->nr_rows_total = nr;
}

static const struct report_column temporary_columns[] = {
	{"temporary", "temporary", CELL_COUNT_ESTIMATE,
	 "allocations that were freed before their thread's next one"},
	{"temporary_bytes", "bytes", CELL_BYTES_ESTIMATE, NULL},
	{"temporary_pct", "% of its calls", CELL_PERCENT, NULL},
	{"function", "allocated by", CELL_TEXT, NULL},
	{"stack", "called from", CELL_TEXT, "callers of the function, the nearest first"},
};

#define FRAMES_MAX 8

static void add_callers(struct buf *to, const struct profile *p, const struct heapframe *f)
{
	CLEANUP(buf_release) struct buf all = {0};
	heapframe_add_callers(&all, p, f, FRAMES_MAX);
	const char *rest = strstr(buf_str(&all), " < ");
	buf_add_str(to, rest ? rest + strlen(" < ") : "-");
}

void heapviews_temporary(struct report *r, struct heapfigures *f, const struct view_limits *limits)
{
	heap_groups_sort(&f->sites, temporary_of, true);
	struct report_table *t = report_add_table(r, "temporary", "temporary allocations, by site",
						  temporary_columns, ARRAY_LEN(temporary_columns));
	vec_foreach(g, &f->sites.rows) {
		if (g->f.temporary.nr <= 0)
			break;
		t->nr_rows_total++;
		if (limits->max_rows && t->nr_rows >= limits->max_rows)
			continue;
		CLEANUP(buf_release) struct buf callers = {0};
		add_callers(&callers, f->p, &g->frame);
		union cell cells[] = {
			heap_cell_count(&g->f.temporary),
			heap_cell_bytes(&g->f.temporary),
			{.d = 100.0 * (double)g->f.temporary.nr /
			      (double)MAX(g->f.allocated.nr, 1)},
			{.text = heapframe_name(f->p, &g->frame)},
			{.text = buf_str(&callers)},
		};
		report_add_row(r, t, cells);
	}
}

/* ---- mapped and touched memory ------------------------------------------------------------- */

static const struct report_column mapped_columns[] = {
	{"mapped", "mapped", CELL_BYTES, NULL},
	{"calls", "calls", CELL_COUNT, NULL},
	{"unmapped", "unmapped", CELL_BYTES, "by this function, whoever mapped it"},
	{"function", "function", CELL_TEXT, NULL},
	{"module", "module", CELL_TEXT, NULL},
};

static const char *module_of(const struct heapfigures *f, const struct heap_group *g)
{
	return g->frame.module ? profile_module_name(f->p, g->frame.module) : "-";
}

void heapviews_mapped(struct report *r, struct heapfigures *f, const struct view_limits *limits)
{
	heap_groups_sort(&f->functions, mapped_of, false);
	struct report_table *t =
		report_add_table(r, "mapped_functions",
				 has_heap(&f->total) ? "memory that the program maps itself"
						     : "memory that is mapped",
				 mapped_columns, ARRAY_LEN(mapped_columns));
	t->note =
		has_heap(&f->total)
			? "mmap, mremap, munmap, brk outside of allocators; not part of the heap "
			  "above"
			: "mmap, mremap, munmap, brk, also by allocators, which keep it for later";
	vec_foreach(g, &f->functions.rows) {
		if (g->f.mapped.bytes <= 0 && g->f.unmapped.bytes <= 0)
			continue;
		t->nr_rows_total++;
		if (limits->max_rows && t->nr_rows >= limits->max_rows)
			continue;
		union cell cells[] = {
			{.u = (uint64_t)MAX(g->f.mapped.bytes, 0)},
			{.u = (uint64_t)MAX(g->f.mapped.nr, 0)},
			{.u = (uint64_t)MAX(g->f.unmapped.bytes, 0)},
			{.text = heapframe_name(f->p, &g->frame)},
			{.text = module_of(f, g)},
		};
		report_add_row(r, t, cells);
	}
}

static const struct report_column growth_columns[] = {
	{"bytes", "touched", CELL_BYTES_ESTIMATE, "memory touched for the first time"},
	{"faults", "faults", CELL_COUNT_ESTIMATE, NULL},
	{"pct", "%", CELL_PERCENT, "of all bytes"},
	{"function", "function", CELL_TEXT,
	 "the nearest that is no allocator's or standard library's"},
	{"module", "module", CELL_TEXT, NULL},
};

void heapviews_growth(struct report *r, struct heapfigures *f, const struct view_limits *limits)
{
	struct heap_sum other = {0};
	heap_groups_sort(&f->functions, growth_of, false);
	struct report_table *t =
		report_add_table(r, "growth_functions", "functions by memory they touched first",
				 growth_columns, ARRAY_LEN(growth_columns));
	t->note = "who touches a page first is not always who keeps it";
	double all = (double)MAX(f->total.growth.bytes, 1);
	vec_foreach(g, &f->functions.rows) {
		if (g->f.growth.bytes <= 0)
			break;
		t->nr_rows_total++;
		if (limits->max_rows && t->nr_rows >= limits->max_rows) {
			other.nr += g->f.growth.nr;
			other.bytes += g->f.growth.bytes;
			continue;
		}
		union cell cells[] = {
			heap_cell_bytes(&g->f.growth),
			heap_cell_count(&g->f.growth),
			{.d = 100.0 * (double)g->f.growth.bytes / all},
			{.text = heapframe_name(f->p, &g->frame)},
			{.text = module_of(f, g)},
		};
		report_add_row(r, t, cells);
	}
	if (!other.bytes)
		return;
	union cell cells[] = {heap_cell_bytes(&other),
			      heap_cell_count(&other),
			      {.d = 100.0 * (double)other.bytes / all},
			      {.text = "<other>"},
			      {.text = "-"}};
	report_add_row(r, t, cells);
}

/* ---- sizes --------------------------------------------------------------------------------- */

static int by_size(const void *x, const void *y)
{
	const struct heap_group *a = x;
	const struct heap_group *b = y;
	return a->log2 < b->log2 ? -1 : a->log2 > b->log2;
}

static void add_size(struct buf *to, unsigned log2)
{
	if (log2 == HEAP_SIZE_UNKNOWN) {
		buf_add_str(to, "not told apart");
		return;
	}
	/* "16 B to 32 B": what is smaller than the latter */
	num_add_bytes(to, log2 ? (uint64_t)1 << log2 : 0);
	buf_add_str(to, " to ");
	num_add_bytes(to, (uint64_t)1 << (log2 ? MIN(log2 + 1, 63u) : HEAP_SIZE_FIRST));
}

void heapviews_sizes(struct report *r, struct heapfigures *f)
{
	struct shape s = shape_of(f);
	if (!has_heap(&f->total) || !f->sizes.rows.n)
		return;
	if (f->sizes.rows.n == 1 && f->sizes.rows.p[0].log2 == HEAP_SIZE_UNKNOWN)
		return;
	ASSERT(s.nr < CELLS_MAX);
	bool has_calls = f->total.allocated.nr > 0;
	s.columns[s.nr++] = (struct report_column){
		"calls_pct", has_calls ? "% of calls" : "% of blocks", CELL_PERCENT, NULL};
	s.columns[s.nr++] = (struct report_column){"min_bytes", "from", CELL_BYTES,
						   "smallest size of the row's blocks; 0 also "
						   "where sizes are not told apart"};
	add_text_column(&s, "sizes", "sizes", NULL);
	qsort(f->sizes.rows.p, f->sizes.rows.n, sizeof(*f->sizes.rows.p), by_size);
	struct report_table *t =
		report_add_table(r, "heap_sizes", "sizes of blocks", s.columns, s.nr);
	t->spare = spare_of(f);
	int64_t all = has_calls ? f->total.allocated.nr : f->total.live.nr;
	vec_foreach(g, &f->sizes.rows) {
		union cell cells[CELLS_MAX];
		size_t n = fill(&s, cells, &g->f);
		CLEANUP(buf_release) struct buf name = {0};
		int64_t nr = has_calls ? g->f.allocated.nr : g->f.live.nr;
		add_size(&name, g->log2);
		cells[n++].d = all > 0 ? 100.0 * (double)nr / (double)all : 0;
		cells[n++].u = g->log2 && g->log2 < HEAP_SIZE_UNKNOWN ? (uint64_t)1 << g->log2 : 0;
		cells[n++].text = buf_str(&name);
		report_add_row(r, t, cells);
	}
	t->nr_rows_total = t->nr_rows;
}

/* ---- threads ------------------------------------------------------------------------------- */

void heapviews_threads(struct report *r, struct heapfigures *f, const struct view_limits *limits)
{
	struct shape s = shape_of(f);
	struct heap_figures other = {0};
	size_t nr = 0;
	if (!has_heap(&f->total))
		return;
	s.columns[s.nr++] = (struct report_column){"pid", "pid", CELL_ID, NULL};
	s.columns[s.nr++] = (struct report_column){"tid", "tid", CELL_ID, NULL};
	add_text_column(&s, "thread", "thread", NULL);
	heap_groups_sort(&f->threads, main_sum(f), false);
	struct report_table *t =
		report_add_table(r, "heap_threads", "threads that allocated", s.columns, s.nr);
	t->spare = spare_of(f);
	vec_foreach(g, &f->threads.rows) {
		if (!has_heap(&g->f))
			continue;
		if (limits->max_rows && nr++ >= limits->max_rows) {
			heap_figures_add(&other, &g->f);
			continue;
		}
		const struct task *task = &f->p->tasks.p[g->task];
		const char *name = profile_text(f->p, task->comm);
		union cell cells[CELLS_MAX];
		size_t n = fill(&s, cells, &g->f);
		cells[n++].u = task->pid > 0 ? (uint64_t)(uint32_t)task->pid : CELL_NO_ID;
		cells[n++].u = task->tid > 0 ? (uint64_t)(uint32_t)task->tid : CELL_NO_ID;
		cells[n++].text = name[0] ? name : "[no name]";
		report_add_row(r, t, cells);
	}
	t->nr_rows_total = limits->max_rows ? nr : t->nr_rows;
	if (!has_heap(&other))
		return;
	union cell cells[CELLS_MAX];
	size_t n = fill(&s, cells, &other);
	cells[n++].u = CELL_NO_ID;
	cells[n++].u = CELL_NO_ID;
	cells[n++].text = "<other>";
	report_add_row(r, t, cells);
}
