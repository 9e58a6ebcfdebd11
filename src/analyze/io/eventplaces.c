/* Tables of functions and stacks of events; see eventplaces.h. */
#include "base/base.h"
#include "analyze/io/eventplaces.h"

#include <stdlib.h>

#include "base/buf.h"

#define STACK_FRAMES 12 /* frames shown of a stack; of the rest the number */
#define STACK_ROWS   3  /* rows per event */

static const struct report_column function_columns[] = {
	{"event", "event", CELL_TEXT, NULL},
	{"count", "count", CELL_COUNT, "exact if every hit has a stack"},
	{"pct", "%", CELL_PERCENT, "of the event"},
	{"function", "function", CELL_TEXT, "innermost function of the program"},
	{"call", "call", CELL_TEXT, "innermost user-space function"},
	{"module", "module", CELL_TEXT, NULL},
};

static const struct report_column stack_columns[] = {
	{"event", "event", CELL_TEXT, NULL},
	{"count", "count", CELL_COUNT, NULL},
	{"pct", "%", CELL_PERCENT, "of the event"},
	{"stack", "stack, innermost first", CELL_TEXT, .is_list = true},
};

/* ---- functions ---------------------------------------------------------------------------- */

struct place {
	const char *function;
	const char *call;
	const char *module;
	uint64_t nr;
};

/* Libraries whose callers are shown instead. */
static bool is_library(const struct profile *p, module_id module)
{
	static const char *const libraries[] = {"libc.so", "libc-",     "libpthread", "ld-linux",
						"ld-musl", "libc.musl", "librt.",     "ld.so"};
	if (p->modules.p[module].kind == MODULE_VDSO)
		return true;
	struct sv name = sv_from_str(profile_module_name(p, module));
	for (size_t i = 0; i < ARRAY_LEN(libraries); i++)
		if (sv_has_prefix(name, sv_from_str(libraries[i])))
			return true;
	return false;
}

static bool is_kernel(const struct profile *p, const struct location *l)
{
	enum module_kind kind = p->modules.p[l->module].kind;
	return kind == MODULE_KERNEL || kind == MODULE_KMODULE || (l->flags & LOCATION_KERNEL);
}

/* True for frames of the tracepoint and the entry of the scheduler, which are on every stack. */
static bool is_tracing_frame(const char *name)
{
	static const char *const prefixes[] = {"__traceiter_", "perf_trace_", "__bpf_trace_",
					       "trace_call_bpf"};
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	return !strcmp(name, "__schedule") || !strcmp(name, "schedule");
}

static struct place no_place(const struct selection *sel, const struct select_row *row)
{
	bool is_elsewhere = sel->p->tasks.p[row->task].tid < 0;
	return (struct place){.function =
				      is_elsewhere ? "[outside the target]" : "[no stack recorded]",
			      .call = "",
			      .module = "",
			      .nr = row->weight};
}

/*
 * True for names made from a start address and entry functions: a symbolized caller is more useful.
 */
static bool is_nameless(const char *name)
{
	return strstr(name, "!fn_") != NULL;
}

static bool is_entry(const char *name)
{
	return !strcmp(name, "main") || !strcmp(name, "_start");
}

/*
 * The innermost user frame is the call. The function is the next outer one outside of libraries, or
 * the next symbolized one. In a stack without user frames (kernel threads) it is the innermost
 * frame that is not tracing code.
 */
static struct place place_of(const struct selection *sel, const struct select_row *row)
{
	const struct profile *p = sel->p;
	struct place at = no_place(sel, row);
	struct place nameless = {0};
	struct frame_ref f;
	bool has_kernel = false;
	bool has_call = false;
	for (struct frame_it it = select_frames(sel, row->stack); frame_next(&it, &f);) {
		const struct location *l = &p->locations.p[f.loc];
		const char *name = frame_name(p, &f);
		bool is_of_kernel = is_kernel(p, l);
		if (is_of_kernel && (has_call || has_kernel || is_tracing_frame(name)))
			continue;
		at.function = name;
		at.module = profile_module_name(p, frame_module(p, &f));
		has_kernel |= is_of_kernel;
		if (is_of_kernel)
			continue;
		if (!has_call)
			at.call = name;
		has_call = true;
		if (is_library(p, frame_module(p, &f)))
			continue;
		if (!is_nameless(name))
			return nameless.function && is_entry(name) ? nameless : at;
		if (!nameless.function)
			nameless = at;
	}
	return nameless.function ? nameless : at;
}

static int by_place(const void *a, const void *b)
{
	const struct place *x = a;
	const struct place *y = b;
	return strcmp(x->function, y->function) ?: strcmp(x->call, y->call) ?: strcmp(x->module, y->module);
}

static int by_count(const void *a, const void *b)
{
	const struct place *x = a;
	const struct place *y = b;
	return COMPARE(y->nr, x->nr) ?: by_place(a, b);
}

/* Merges equal places; returns how many remain. */
static size_t merge_places(struct place *places, size_t n)
{
	size_t kept = 0;
	qsort(places, n, sizeof(*places), by_place);
	for (size_t i = 0; i < n; i++) {
		if (kept && !by_place(&places[kept - 1], &places[i]))
			places[kept - 1].nr += places[i].nr;
		else
			places[kept++] = places[i];
	}
	qsort(places, kept, sizeof(*places), by_count);
	return kept;
}

static void add_function(struct report *r, struct report_table *t, const struct selection *sel,
			 const struct place *at)
{
	union cell cells[] = {
		{.text = sel->event},   {.u = at->nr},      {.d = view_pct(at->nr, sel->weight)},
		{.text = at->function}, {.text = at->call}, {.text = at->module}};
	report_add_row(r, t, cells);
}

static void add_functions(struct report *r, struct report_table *t, struct arena *a,
			  const struct selection *sel, const struct view_limits *limits)
{
	struct place *places = arena_calloc(a, sel->nr_rows + 1, sizeof(*places));
	for (size_t i = 0; i < sel->nr_rows; i++)
		places[i] = place_of(sel, &sel->rows[i]);
	size_t n = merge_places(places, sel->nr_rows);
	struct place other = {.function = "<other>", .call = "", .module = ""};
	for (size_t i = 0; i < n; i++) {
		if (!limits->max_rows || i < limits->max_rows)
			add_function(r, t, sel, &places[i]);
		else
			other.nr += places[i].nr;
	}
	if (other.nr)
		add_function(r, t, sel, &other);
}

/* ---- stacks ------------------------------------------------------------------------------- */

static int by_weight(const void *a, const void *b)
{
	const struct select_row *x = a;
	const struct select_row *y = b;
	return COMPARE(y->weight, x->weight) ?: COMPARE(x->stack, y->stack);
}

static void add_stack(struct report *r, struct report_table *t, const struct selection *sel,
		      const struct select_row *row)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct frame_ref f;
	size_t n = 0;
	for (struct frame_it it = select_frames(sel, row->stack); frame_next(&it, &f); n++)
		if (n < STACK_FRAMES)
			buf_addf(&text, "%s%s%s", n ? " < " : "", frame_name(sel->p, &f),
				 frame_mark(sel->p, &f));
	if (n > STACK_FRAMES)
		buf_addf(&text, " < ... %zu more", n - STACK_FRAMES);
	union cell cells[] = {{.text = sel->event},
			      {.u = row->weight},
			      {.d = view_pct(row->weight, sel->weight)},
			      {.text = buf_str(&text)}};
	report_add_row(r, t, cells);
}

static void add_stacks(struct report *r, struct report_table *t, struct arena *a,
		       const struct selection *sel)
{
	struct select_row *rows = arena_calloc(a, sel->nr_rows + 1, sizeof(*rows));
	size_t n = 0;
	for (size_t i = 0; i < sel->nr_rows; i++) { /* rows are sorted by stack; threads together */
		if (!sel->rows[i].stack)
			continue;
		if (n && rows[n - 1].stack == sel->rows[i].stack)
			rows[n - 1].weight += sel->rows[i].weight;
		else
			rows[n++] = sel->rows[i];
	}
	qsort(rows, n, sizeof(*rows), by_weight);
	for (size_t i = 0; i < n && i < STACK_ROWS; i++)
		add_stack(r, t, sel, &rows[i]);
}

int event_places_report(struct report *r, const struct profile *p, const struct select_spec *spec,
			const struct event_places *places, struct err *err)
{
	size_t first = r->tables.n;
	(void)report_add_table(r, "event_functions", "functions by event", function_columns,
			       ARRAY_LEN(function_columns));
	(void)report_add_table(r, "event_stacks", "most frequent stacks", stack_columns,
			       ARRAY_LEN(stack_columns));
	struct report_table *tables = &r->tables.p[first];
	for (size_t i = 0; i < places->n; i++) {
		CLEANUP(arena_release) struct arena a = {0};
		struct select_spec one = *spec;
		struct selection sel;
		one.event = places->events[i];
		TRY(select_run(&a, p, &one, &sel, err));
		add_functions(r, &tables[0], &a, &sel, places->limits);
		if (places->has_stacks)
			add_stacks(r, &tables[1], &a, &sel);
	}
	while (r->tables.n > first && !vec_last(&r->tables)->nr_rows)
		r->tables.n--;
	return 0;
}
