/* Tables of memory; see heapviews.h. */
#include "base/base.h"
#include "analyze/memory/heapviews.h"

#include <math.h>
#include <stdlib.h>

#include "analyze/memory/heapweights.h"
#include "base/text/num.h"

#define COLUMNS_MAX 13
#define BUSY_PART   20 /* share of bytes or calls above which a function is always shown */
#define FRAMES_MAX  8

/* What a cell shows: one of the sums, or the name of the group. */
enum measure {
	BYTES,
	COUNT,
	EXACT_BYTES,
	EXACT_COUNT,
	MEAN,
	CALLS_PCT, /* share of the group's allocations */
	BYTES_PCT, /* share of all bytes of the sum */
	COUNT_PCT,
	FUNCTION,
	THROUGH,
	MODULE,
	CALLERS,
	PID,
	TID,
	THREAD,
	SIZE_MIN,
	SIZES,
};

struct heap_column {
	struct report_column column;
	enum measure measure;
	enum heap_sum_id of;
};

/* Columns of numbers, shared by the tables, in this order. */
static const struct heap_column figures[] = {
	{{"allocated", "allocated", CELL_BYTES_ESTIMATE, "bytes"}, BYTES, HEAP_SUM_ALLOCATED},
	{{"calls", "calls", CELL_COUNT_ESTIMATE, "allocations"}, COUNT, HEAP_SUM_ALLOCATED},
	{{"mean_bytes", "mean size", CELL_BYTES, NULL}, MEAN, HEAP_SUM_ALLOCATED},
	{{"temporary_pct", "temp %", CELL_PERCENT,
	  "temporary allocations: freed before the next one of their thread"},
	 CALLS_PCT,
	 HEAP_SUM_TEMPORARY},
	{{"peak", "at peak", CELL_BYTES_ESTIMATE, "live bytes at the process's peak"},
	 BYTES,
	 HEAP_SUM_PEAK},
	{{"live", "live", CELL_BYTES_ESTIMATE, "live bytes at the end"}, BYTES, HEAP_SUM_LIVE},
	{{"held", "held", CELL_BYTES_ESTIMATE,
	  "held at exit: freed by the end of their process or by its exec"},
	 BYTES,
	 HEAP_SUM_HELD},
	{{"blocks", "blocks", CELL_COUNT_ESTIMATE, "live ones"}, COUNT, HEAP_SUM_LIVE},
	{{"leaked", "leaked", CELL_BYTES_ESTIMATE, "part of live: blocks that are old enough"},
	 BYTES,
	 HEAP_SUM_LEAKED},
};

enum flags {
	HAS_FIGURES = 1 << 0,
	KEEP_FREQUENT = 1 << 1, /* includes rows with many allocations and few bytes */
	NO_OTHER = 1 << 2,      /* without a row "<other>" */
	BY_COUNT = 1 << 3,
	IN_ORDER = 1 << 4, /* sorted by the caller; limits do not apply */
};

struct heap_table {
	const char *key;
	const char *title;
	const char *note;
	const struct heap_column *columns;
	size_t nr_columns;
	bool (*has)(const struct heap_figures *f); /* filter of groups */
	enum heap_sum_id by;
	unsigned flags; /* enum flags */
};
#define COLUMNS(the_columns) .columns = (the_columns), .nr_columns = ARRAY_LEN(the_columns)

static bool has_heap(const struct heap_figures *f)
{
	return !heap_sum_is_none(&f->of[HEAP_SUM_ALLOCATED]) ||
	       !heap_sum_is_none(&f->of[HEAP_SUM_LIVE]) ||
	       !heap_sum_is_none(&f->of[HEAP_SUM_PEAK]) ||
	       !heap_sum_is_none(&f->of[HEAP_SUM_FREED]);
}

static bool has_temporary(const struct heap_figures *f)
{
	return f->of[HEAP_SUM_TEMPORARY].nr > 0;
}

static bool has_mapped(const struct heap_figures *f)
{
	return f->of[HEAP_SUM_MAPPED].bytes > 0 || f->of[HEAP_SUM_UNMAPPED].bytes > 0;
}

static bool has_growth(const struct heap_figures *f)
{
	return f->of[HEAP_SUM_GROWTH].bytes > 0;
}

/* Columns to hide on narrow terminals; sort columns stay. */
static const char *const hide_first[] = {"min_bytes", "mean_bytes", "module", "through",
					 "pid",       "peak",       "calls",  NULL};
static const char *const hide_first_by_peak[] = {"min_bytes", "mean_bytes", "module", "through",
						 "pid",       "live",       "calls",  NULL};

/* ---- cells --------------------------------------------------------------------------------- */

static const char *sizes_text(struct arena *a, unsigned log2)
{
	if (log2 == HEAP_SIZE_UNKNOWN)
		return "all sizes";
	/* "16 B to 32 B": below the latter */
	return arena_fmt(a, "%s to %s", num_bytes(log2 ? (uint64_t)1 << log2 : 0).s,
			 num_bytes((uint64_t)1 << (log2 ? MIN(log2 + 1, 63u) : HEAP_SIZE_FIRST)).s);
}

static union cell id_cell(int32_t id)
{
	return (union cell){.u = id > 0 ? (uint64_t)(uint32_t)id : CELL_NO_ID};
}

static union cell pct_cell(int64_t part, int64_t whole, double none)
{
	return (union cell){.d = whole > 0 ? 100.0 * (double)part / (double)whole : none};
}

static const char *text_of(const struct heapfigures *f, enum measure m, const struct heap_group *g)
{
	const struct heapframe *frame = &g->frame;
	if (m == FUNCTION)
		return heapframe_name(f->p, frame);
	if (m == THROUGH)
		return frame->via ? profile_text(f->p, frame->via) : "-";
	if (m == MODULE)
		return frame->module ? profile_module_name(f->p, frame->module) : "-";
	if (m == CALLERS)
		return heapframe_callers(f->arena, f->p, frame, FRAMES_MAX);
	if (m == SIZES)
		return sizes_text(f->arena, g->log2);
	const char *thread =
		profile_text(f->p, f->p->tasks.p[profile_last_task(f->p, g->task)].comm);
	return thread[0] ? thread : "[no name]";
}

static union cell cell_of(const struct heapfigures *f, const struct heap_column *c,
			  const struct heap_group *g)
{
	const struct heap_sum *s = &g->f.of[c->of];
	const struct heap_sum *all = &f->total.of[c->of];
	switch (c->measure) {
	case BYTES: /* below the threshold of the tree of that moment: not known */
		return f->has_merged && !s->bytes
			       ? (union cell){.estimate = {.value = CELL_NO_ESTIMATE}}
			       : heap_cell_bytes(s);
	case COUNT:
		return heap_cell_count(s);
	case EXACT_BYTES:
		return (union cell){.u = (uint64_t)MAX(s->bytes, 0)};
	case EXACT_COUNT:
		return (union cell){.u = (uint64_t)MAX(s->nr, 0)};
	case MEAN:
		return (union cell){.u = s->nr > 0 ? (uint64_t)MAX(s->bytes, 0) / (uint64_t)s->nr
						   : 0};
	case CALLS_PCT:
		return pct_cell(s->nr, g->f.of[HEAP_SUM_ALLOCATED].nr, NAN);
	case BYTES_PCT:
		return pct_cell(s->bytes, all->bytes, 0);
	case COUNT_PCT:
		return pct_cell(s->nr, all->nr, 0);
	case PID:
		return id_cell(f->p->tasks.p[g->task].pid);
	case TID:
		return id_cell(f->p->tasks.p[g->task].tid);
	case SIZE_MIN:
		return (union cell){
			.u = g->log2 && g->log2 < HEAP_SIZE_UNKNOWN ? (uint64_t)1 << g->log2 : 0};
	case FUNCTION:
	case THROUGH:
	case MODULE:
	case CALLERS:
	case THREAD:
	case SIZES:
		break;
	}
	return (union cell){.text = text_of(f, c->measure, g)};
}

/* Row "<other>": sums of several groups. */
static union cell other_cell(const struct heapfigures *f, const struct heap_column *c,
			     const struct heap_group *other)
{
	bool is_name = c->measure == FUNCTION || c->measure == THREAD;
	if (c->column.kind == CELL_TEXT)
		return (union cell){.text = is_name ? "<other>" : "-"};
	if (c->column.kind == CELL_ID)
		return (union cell){.u = CELL_NO_ID};
	return cell_of(f, c, other);
}

/* ---- tables -------------------------------------------------------------------------------- */

/* Columns that are 0 in the whole profile are not shown. */
static bool is_there(const struct heapfigures *f, const struct heap_column *c)
{
	const struct heap_sum *s = &f->total.of[c->of];
	bool has_calls = f->total.of[HEAP_SUM_ALLOCATED].nr > 0;
	/* Number of blocks is shown if there is no number of allocations. */
	if (c->of == HEAP_SUM_LIVE && c->measure == COUNT)
		return s->nr > 0 && !has_calls;
	if (c->measure == COUNT_PCT)
		return has_calls == (c->of == HEAP_SUM_ALLOCATED);
	return s->nr > 0 || s->bytes > 0;
}

static size_t columns_of(const struct heapfigures *f, const struct heap_table *table,
			 const struct heap_column **to)
{
	size_t n = 0;
	for (size_t i = 0; table->flags & HAS_FIGURES && i < ARRAY_LEN(figures); i++)
		if (is_there(f, &figures[i]))
			to[n++] = &figures[i];
	for (size_t i = 0; i < table->nr_columns; i++)
		if (table->columns[i].measure != COUNT_PCT || is_there(f, &table->columns[i]))
			to[n++] = &table->columns[i];
	ASSERT(n <= COLUMNS_MAX);
	return n;
}

/* True for a row with few bytes but a large share of allocations, which must be shown. */
static bool is_busy(const struct heapfigures *f, const struct heap_figures *of)
{
	const struct heap_sum *all = &f->total.of[HEAP_SUM_ALLOCATED];
	const struct heap_sum *s = &of->of[HEAP_SUM_ALLOCATED];
	return (all->bytes > 0 && s->bytes >= all->bytes / BUSY_PART) ||
	       (all->nr > 0 && s->nr >= all->nr / BUSY_PART);
}

static void add_table(struct report *r, struct heapfigures *f, struct heap_groups *groups,
		      const struct heap_table *table, uint64_t max_rows)
{
	const struct heap_column *columns[COLUMNS_MAX];
	struct report_column titles[COLUMNS_MAX];
	union cell cells[COLUMNS_MAX];
	size_t nr_columns = columns_of(f, table, columns);
	for (size_t i = 0; i < nr_columns; i++)
		titles[i] = columns[i]->column;
	struct report_table *t = report_add_table(r, table->key, table->title, titles, nr_columns);
	struct heap_group other = {0};
	size_t nr_other = 0;
	t->note = table->note;
	t->cut = table->flags & IN_ORDER ? CUT_LEAST : CUT_LAST; /* by the first figure */
	if (table->flags & HAS_FIGURES)
		t->hide_first =
			heapfigures_main_sum(f) == HEAP_SUM_PEAK ? hide_first_by_peak : hide_first;
	if (!(table->flags & IN_ORDER))
		heap_groups_sort(groups, table->by, table->flags & BY_COUNT);
	vec_foreach(g, &groups->rows) {
		if (!table->has(&g->f))
			continue;
		t->nr_rows_total++;
		if (max_rows && t->nr_rows_total > max_rows &&
		    !(table->flags & KEEP_FREQUENT && is_busy(f, &g->f))) {
			heap_figures_add(&other.f, &g->f);
			nr_other++;
			continue;
		}
		for (size_t i = 0; i < nr_columns; i++)
			cells[i] = cell_of(f, columns[i], g);
		report_add_row(r, t, cells);
	}
	if (!nr_other || table->flags & NO_OTHER)
		return;
	for (size_t i = 0; i < nr_columns; i++)
		cells[i] = other_cell(f, columns[i], &other);
	report_add_row(r, t, cells);
}

void heapviews_functions(struct report *r, struct heapfigures *f, const struct view_limits *limits)
{
	static const struct heap_column columns[] = {
		{{"function", "allocated by", CELL_TEXT,
		  "innermost function outside allocators and standard libraries"},
		 FUNCTION},
		{{"through", "via", CELL_TEXT,
		  "library function that it called, of several the one of most bytes"},
		 THROUGH},
		{{"module", "module", CELL_TEXT, NULL}, MODULE},
	};
	enum heap_sum_id by = heapfigures_main_sum(f);
	const struct heap_table table = {
		"heap_functions",
		by == HEAP_SUM_PEAK   ? "allocation sites by live bytes at the peak"
		: by == HEAP_SUM_LIVE ? "allocation sites by live bytes"
				      : "allocation sites by allocated bytes",
		COLUMNS(columns),
		.has = has_heap,
		.by = by,
		.flags = HAS_FIGURES | KEEP_FREQUENT};
	if (has_heap(&f->total))
		add_table(r, f, &f->functions, &table, limits->max_rows);
}

void heapviews_temporary(struct report *r, struct heapfigures *f, const struct view_limits *limits)
{
	static const struct heap_column columns[] = {
		{{"temporary", "temporary", CELL_COUNT_ESTIMATE,
		  "allocations that were freed before the next one of their thread"},
		 COUNT,
		 HEAP_SUM_TEMPORARY},
		{{"temporary_bytes", "bytes", CELL_BYTES_ESTIMATE, NULL},
		 BYTES,
		 HEAP_SUM_TEMPORARY},
		{{"temporary_pct", "% of its calls", CELL_PERCENT, NULL},
		 CALLS_PCT,
		 HEAP_SUM_TEMPORARY},
		{{"function", "allocated by", CELL_TEXT, NULL}, FUNCTION},
		{{"stack", "called from", CELL_TEXT, "callers of the function, innermost first"},
		 CALLERS},
	};
	static const struct heap_table table = {"temporary",
						"temporary allocations by site",
						COLUMNS(columns),
						.has = has_temporary,
						.by = HEAP_SUM_TEMPORARY,
						.flags = BY_COUNT | NO_OTHER};
	add_table(r, f, &f->sites, &table, limits->max_rows);
}

void heapviews_mapped(struct report *r, struct heapfigures *f, const struct view_limits *limits)
{
	static const struct heap_column columns[] = {
		{{"mapped", "mapped", CELL_BYTES, NULL}, EXACT_BYTES, HEAP_SUM_MAPPED},
		{{"calls", "calls", CELL_COUNT, NULL}, EXACT_COUNT, HEAP_SUM_MAPPED},
		{{"unmapped", "unmapped", CELL_BYTES,
		  "unmapped by this function, whichever function mapped it"},
		 EXACT_BYTES,
		 HEAP_SUM_UNMAPPED},
		{{"function", "function", CELL_TEXT, NULL}, FUNCTION},
		{{"module", "module", CELL_TEXT, NULL}, MODULE},
	};
	bool is_apart = has_heap(&f->total);
	const struct heap_table table = {
		"mapped_functions",
		is_apart ? "memory mapped outside the allocator" : "memory mapped",
		is_apart ? "mmap, mremap, munmap, brk outside allocators; not part of the "
			   "heap above"
			 : "mmap, mremap, munmap, brk, calls of allocators included",
		COLUMNS(columns),
		.has = has_mapped,
		.by = HEAP_SUM_MAPPED,
		.flags = NO_OTHER};
	add_table(r, f, &f->functions, &table, limits->max_rows);
}

void heapviews_growth(struct report *r, struct heapfigures *f, const struct view_limits *limits)
{
	static const struct heap_column columns[] = {
		{{"bytes", "touched", CELL_BYTES_ESTIMATE, "memory touched for the first time"},
		 BYTES,
		 HEAP_SUM_GROWTH},
		{{"faults", "faults", CELL_COUNT_ESTIMATE, NULL}, COUNT, HEAP_SUM_GROWTH},
		{{"pct", "%", CELL_PERCENT, "of all bytes"}, BYTES_PCT, HEAP_SUM_GROWTH},
		{{"function", "function", CELL_TEXT,
		  "innermost function outside allocators and standard libraries"},
		 FUNCTION},
		{{"module", "module", CELL_TEXT, NULL}, MODULE},
	};
	static const struct heap_table table = {
		"growth_functions",
		"functions by memory first touched",
		"the function that touches a page first is not always the one that allocated it",
		COLUMNS(columns),
		.has = has_growth,
		.by = HEAP_SUM_GROWTH};
	add_table(r, f, &f->functions, &table, limits->max_rows);
}

static int by_size(const void *x, const void *y)
{
	const struct heap_group *a = x;
	const struct heap_group *b = y;
	return COMPARE(a->log2, b->log2);
}

void heapviews_sizes(struct report *r, struct heapfigures *f)
{
	static const struct heap_column columns[] = {
		{{"calls_pct", "% of calls", CELL_PERCENT, NULL}, COUNT_PCT, HEAP_SUM_ALLOCATED},
		{{"calls_pct", "% of blocks", CELL_PERCENT, NULL}, COUNT_PCT, HEAP_SUM_LIVE},
		{{"min_bytes", "from", CELL_BYTES,
		  "smallest block size of the row; 0 also if sizes are not known"},
		 SIZE_MIN},
		{{"sizes", "sizes", CELL_TEXT, .is_prose = true}, SIZES},
	};
	static const struct heap_table table = {"heap_sizes", "block sizes", COLUMNS(columns),
						.has = has_heap, .flags = HAS_FIGURES | IN_ORDER};
	size_t n = f->sizes.rows.n;
	if (!has_heap(&f->total) || !n || (n == 1 && f->sizes.rows.p[0].log2 == HEAP_SIZE_UNKNOWN))
		return;
	qsort(f->sizes.rows.p, n, sizeof(*f->sizes.rows.p), by_size);
	add_table(r, f, &f->sizes, &table, 0);
}

void heapviews_threads(struct report *r, struct heapfigures *f, const struct view_limits *limits)
{
	static const struct heap_column columns[] = {
		{{"pid", "pid", CELL_ID, NULL}, PID},
		{{"tid", "tid", CELL_ID, NULL}, TID},
		{{"thread", "thread", CELL_TEXT, NULL}, THREAD},
	};
	const struct heap_table table = {
		"heap_threads",  "allocating threads",          COLUMNS(columns),
		.has = has_heap, .by = heapfigures_main_sum(f), .flags = HAS_FIGURES};
	if (has_heap(&f->total))
		add_table(r, f, &f->threads, &table, limits->max_rows);
}
