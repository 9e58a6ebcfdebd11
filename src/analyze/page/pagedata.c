/* The data of the HTML page; see pagedata.h. */
#include "base/base.h"
#include "analyze/page/pagedata.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/diagnose/diagnosis.h"
#include "analyze/memory/timeline.h"
#include "analyze/select/select.h"
#include "analyze/select/window.h"
#include "analyze/stacks/calltree.h"
#include "analyze/stacks/hotcold.h"
#include "analyze/stacks/threads.h"
#include "analyze/views.h"
#include "analyze/wait/frames.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/process/work.h"
#include "base/sort.h"

#define NS_PER_MS 1000000ull
#define SLICE_MS  1000u /* sums of waits and counts */
#define STATE_NR  (SELECT_LEAF_SUPPRESSED + 1)

struct maker {
	struct page *page;
	const struct profile *p;
	struct intern *names; /* of the tree's report */
	struct calltree *tree;
	uint32_t *thread_of;       /* by task_id */
	struct waitframes *frames; /* in the arena */
	struct map wakers;         /* by task_id << 32 | stack_id: str_id */
	struct arena arena;
};

static void maker_release(struct maker *m)
{
	calltree_free(m->tree);
	free(m->thread_of);
	map_release(&m->wakers);
	arena_release(&m->arena);
}

/* ---- threads ------------------------------------------------------------------------------ */

static str_id name_of(struct maker *m, const char *text)
{
	return intern_add_str(m->names, text);
}

static void add_threads(struct maker *m)
{
	const struct profile *p = m->p;
	CLEANUP(map_release) struct map index = {0};
	m->thread_of = xcalloc(p->tasks.n, sizeof(*m->thread_of));
	vec_push(&m->page->threads, (struct page_thread){0});
	for (task_id t = 1; t < p->tasks.n; t++) {
		const struct task *task = &p->tasks.p[t];
		uint64_t key = (uint64_t)(uint32_t)task->pid << 32 | (uint32_t)task->tid;
		/* Threads of text formats have a name only. */
		key = key ? key : 1ull << 63 | task->comm;
		bool is_new;
		uint32_t *at = map_put(&index, key, &is_new);
		if (is_new) {
			*at = (uint32_t)m->page->threads.n;
			vec_push(&m->page->threads,
				 (struct page_thread){.pid = task->pid, .tid = task->tid});
		}
		m->thread_of[t] = *at;
		task_id last = profile_last_task(p, t);
		m->page->threads.p[*at].name = name_of(m, profile_text(p, p->tasks.p[last].comm));
		m->page->threads.p[*at].group = name_of(m, profile_thread_group(p, last));
	}
}

/* ---- states ------------------------------------------------------------------------------- */

static void add_states(struct page *page)
{
	for (unsigned s = 0; s < STATE_NR; s++) {
		struct page_state state = {"on_cpu", "on CPU", false, 0};
		if (s && s < WAIT_NR)
			state = (struct page_state){wait_key((enum wait_reason)s),
						    wait_text((enum wait_reason)s),
						    wait_is_idle((enum wait_reason)s), 0};
		vec_push(&page->states, state);
	}
}

/* ---- rows --------------------------------------------------------------------------------- */

static uint32_t ms_since(const struct page *page, uint64_t ns)
{
	uint64_t ms = ns > page->start_ns ? (ns - page->start_ns) / NS_PER_MS : 0;
	return (uint32_t)MIN(ms, (uint64_t)UINT32_MAX);
}

/*
 * The name of a waking thread and, if known, the program's function that woke; without a thread what
 * ended the wait. The scheduler ends the time in the run queue.
 */
static str_id waker_name(struct maker *m, const struct tag *tag, unsigned reason)
{
	if (!reason || reason >= WAIT_NR || reason == WAIT_RUN_QUEUE || reason == WAIT_YIELD)
		return 0;
	if (!tag->other)
		return name_of(m, wait_ended_by(tag));
	uint32_t *id = map_put(&m->wakers, (uint64_t)tag->other << 32 | tag->other_stack, NULL);
	if (*id)
		return *id;
	CLEANUP(buf_release) struct buf b = {0};
	buf_add_str(&b, profile_thread_group(m->p, tag->other));
	struct waitframe f = waitframe_of(m->frames, tag->other_stack);
	const char *name = tag->other_stack ? waitframe_name(m->p, &f) : "";
	if (*name)
		buf_addf(&b, " in %s", name);
	return *id = name_of(m, buf_str(&b));
}

/* The longest wait of a row; one that was split at seconds is longer than its longest part. */
static uint64_t longest_of(const struct table *t, const struct select_row *row)
{
	const int64_t *v = &t->values[row->source * t->nr_columns];
	uint64_t mean_ns = row->nr_samples ? row->weight / row->nr_samples : 0;
	for (uint32_t c = 1; c < t->nr_columns; c++)
		if (t->columns[c].is_level && v[c] > 0)
			return MAX(mean_ns, (uint64_t)v[c]);
	return 0;
}

static void add_tag(struct maker *m, struct page_stream *s, size_t i, const struct tag *tag)
{
	s->log2_ns[i] = tag->log2_ns;
	s->object[i] = tag->object ? name_of(m, profile_text(m->p, tag->object)) : 0;
	s->waker[i] = waker_name(m, tag, s->state[i]);
}

/* The table of a selection's single rows; NULL: the rows are sums without times. */
static const struct table *table_of(const struct selection *sel, const struct select_row *row)
{
	if (sel->id == TABLE_THREAD_TIME)
		return hotcold_table(sel, row);
	return sel->table < sel->p->tables.n ? &sel->p->tables.p[sel->table] : NULL;
}

static uint32_t time_of(const struct maker *m, const struct selection *sel,
			const struct select_row *row)
{
	const struct table *t = table_of(sel, row);
	return t ? ms_since(m->page, t->time_ns[row->source]) : 0;
}

/* The order of a stream's rows: by time, then such that similar rows are neighbours. */
struct place {
	uint32_t time_ms;
	uint32_t row;
	uint64_t likeness; /* thread << 32 | shape */
};

static int by_likeness(const void *x, const void *y)
{
	const struct place *a = x;
	const struct place *b = y;
	return COMPARE(a->likeness, b->likeness) ?: COMPARE(a->row, b->row);
}

#define FEW_ROWS 32

/* Rows of one time, in their order. Most times have few, which need no calls of a function. */
static void sort_alike(struct place *p, size_t n)
{
	if (n > FEW_ROWS) {
		qsort(p, n, sizeof(*p), by_likeness);
		return;
	}
	for (size_t i = 1; i < n; i++) {
		struct place moved = p[i];
		size_t at = i;
		for (; at && p[at - 1].likeness > moved.likeness; at--)
			p[at] = p[at - 1];
		p[at] = moved;
	}
}

/* Rows of a table are in order of time already. */
static void sort_places(struct place *p, size_t n)
{
	sort_records(p, n, sizeof(*p), UINT32_MAX); /* by time_ms */
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && p[end].time_ms == p[i].time_ms;)
			end++;
		sort_alike(p + i, end - i);
	}
}

static uint32_t shape_of(const struct maker *m, const struct selection *sel,
			 const struct select_row *row)
{
	if (!m->page->bins || !row->synth_leaf || row->synth_leaf >= WAIT_NR)
		return 0;
	const struct waitbins_row of = {.task = row->task,
					.stack = row->stack,
					.reason = row->synth_leaf,
					.start_ns = table_of(sel, row)->time_ns[row->source]};
	return waitbins_shape(m->page->bins, &of);
}

static void place_rows(struct maker *m, const struct page_stream *s, const struct selection *sel,
		       struct place *places)
{
	for (uint32_t i = 0; i < sel->nr_rows; i++) {
		const struct select_row *row = &sel->rows[i];
		uint32_t shape = s->flags & PAGE_HAS_STATES ? shape_of(m, sel, row) : 0;
		places[i].row = i;
		places[i].time_ms = s->flags & PAGE_HAS_TIMES ? time_of(m, sel, row) : 0;
		places[i].likeness = (uint64_t)m->thread_of[row->task] << 32 | shape;
	}
	sort_places(places, sel->nr_rows);
}

static void fill_row(struct maker *m, struct page_stream *s, const struct selection *sel, size_t i,
		     const struct place *from)
{
	const struct select_row *row = &sel->rows[from->row];
	bool is_instant = s->flags & PAGE_HAS_STATES && !row->synth_leaf;
	s->thread[i] = (uint32_t)(from->likeness >> 32);
	s->count[i] = row->nr_samples;
	s->weight[i] = row->weight;
	if (s->place && !row->synth_leaf)
		s->place[i] = m->page->code.place_of[m->p->stacks.p[row->stack].loc];
	const struct table *t = table_of(sel, row);
	if (s->time_ms) {
		s->time_ms[i] = from->time_ms;
		s->len_ms[i] = is_instant ? 0 : s->slice_ms;
	}
	if (s->time_ms && t && t - m->p->tables.p < UINT8_MAX) { /* else the rows are sums */
		s->table[i] = (uint8_t)(t - m->p->tables.p + 1);
		s->source[i] = (uint32_t)row->source;
	}
	if (!s->state)
		return;
	s->state[i] = (uint8_t)row->synth_leaf;
	s->shape[i] = (uint32_t)from->likeness;
	if (t && t->has_tags) {
		struct page_state *state = &m->page->states.p[s->state[i]];
		add_tag(m, s, i, &m->p->tags.p[t->tag[row->source]]);
		state->longest_ns = MAX(state->longest_ns, longest_of(t, row));
	} else {
		s->log2_ns[i] = LOG2_NONE;
	}
}

static bool is_of_waits(const struct selection *sel)
{
	return sel->id == TABLE_THREAD_TIME || sel->id == TABLE_OFF_CPU;
}

/* Rows of memory are sums over the capture; those of text formats have no times. */
static bool has_times(const struct page *page, const struct view *v, const struct profile *p,
		      const struct selection *sel)
{
	if (v->has_weights || !page->duration_ms || sel->table >= p->tables.n)
		return false;
	return is_of_waits(sel) || p->tables.p[sel->table].time_kind != TABLE_TIME_TIMELESS;
}

static uint32_t slice_of(const struct selection *sel)
{
	bool is_slice = sel->id == TABLE_THREAD_TIME ||
			(sel->table < sel->p->tables.n &&
			 sel->p->tables.p[sel->table].time_kind == TABLE_TIME_SLICE);
	return is_slice ? SLICE_MS : 0;
}

static void allocate(struct arena *a, struct page_stream *s)
{
	s->table = arena_calloc(a, s->n, sizeof(*s->table));
	s->source = arena_calloc(a, s->n, sizeof(*s->source));
	s->node = arena_calloc(a, s->n, sizeof(*s->node));
	s->thread = arena_calloc(a, s->n, sizeof(*s->thread));
	s->count = arena_calloc(a, s->n, sizeof(*s->count));
	s->weight = arena_calloc(a, s->n, sizeof(*s->weight));
	if (s->flags & PAGE_HAS_PLACES)
		s->place = arena_calloc(a, s->n, sizeof(*s->place));
	if (s->flags & PAGE_HAS_TIMES) {
		s->time_ms = arena_calloc(a, s->n, sizeof(*s->time_ms));
		s->len_ms = arena_calloc(a, s->n, sizeof(*s->len_ms));
	}
	if (!(s->flags & PAGE_HAS_STATES))
		return;
	s->state = arena_calloc(a, s->n, sizeof(*s->state));
	s->shape = arena_calloc(a, s->n, sizeof(*s->shape));
	s->log2_ns = arena_calloc(a, s->n, sizeof(*s->log2_ns));
	s->object = arena_calloc(a, s->n, sizeof(*s->object));
	s->waker = arena_calloc(a, s->n, sizeof(*s->waker));
}

/* "-live.svg" -> "live", ".block.svg" -> "block", ".svg" -> the view's key. */
/*
 * What the page adds up of tables whose rows have several weights, in this order. Without bytes a sync call
 * is seen by its time only.
 */
static const struct weighing {
	enum table_id table;
	enum column_role role;
	const char *key;
	const char *title;
	const char *title_of_some; /* with FACT_IO_SYNCS_ONLY; NULL: the same */
} weighings[] = {
	{TABLE_IO, COLUMN_TIME, "io-time", "time in I/O calls",
	 "time in sync calls (reads and writes not recorded)"},
	{TABLE_IO, COLUMN_BYTES, "io", "bytes of I/O calls", NULL},
	{TABLE_BLOCK, COLUMN_BYTES, "block", "bytes of block requests (whole machine)", NULL},
	{TABLE_BLOCK, COLUMN_TIME, "block-time", "time of block requests (whole machine)", NULL},
	{TABLE_FAULTS, COLUMN_COUNT, "faults", "page faults",
	 "major page faults (minor ones not recorded)"},
	{TABLE_FAULTS, COLUMN_TIME, "faults-time", "time in page faults",
	 "time in major page faults (minor ones not recorded)"},
	{TABLE_RECLAIM, COLUMN_TIME, "reclaim", "time in direct reclaim", NULL},
	{TABLE_SPAN_TIME, COLUMN_TIME, "spans", "time in the measured calls", NULL},
};

static const char *key_of(struct arena *a, const struct view *v, const struct view_picture *pic)
{
	size_t n = strlen(pic->suffix) - strlen(".svg");
	return n ? arena_strndup(a, pic->suffix + 1, n - 1) : v->key;
}

static const char *report_options(struct arena *a, const struct view_picture *pic)
{
	if (pic->spec.heap.weight)
		return arena_fmt(a, "--weight %s", pic->spec.heap.weight);
	return pic->spec.event ? arena_fmt(a, "-e %s", pic->spec.event) : "";
}

static const char *title_of(struct arena *a, const struct view *v, const struct view_picture *pic,
			    const struct selection *sel)
{
	if (pic->title)
		return pic->title;
	return v == views_at(VIEW_CPU) ? view_title(a, sel) : v->title;
}

static struct page_stream stream_of(struct maker *m, const struct view *v,
				    const struct view_picture *pic, const struct selection *sel)
{
	CLEANUP(arena_release) struct arena scratch = {0};
	struct arena *a = &m->page->arena;
	/* The view of everything draws thread time. */
	if (sel->id == TABLE_THREAD_TIME)
		v = views_at(VIEW_THREAD_TIME);
	return (struct page_stream){
		.key = key_of(a, v, pic),
		.title = arena_strdup(a, title_of(&scratch, v, pic, sel)),
		/* A row of span time counts the calls with one wait; time on the CPU counts none. */
		.noun = sel->id == TABLE_SPAN_TIME ? "waits" : arena_strdup(a, select_noun(sel)),
		.count_name = arena_strdup(a, view_amount(sel)),
		.report = report_options(a, pic),
		.unit = sel->unit,
		.flags = (has_times(m->page, v, m->p, sel) ? PAGE_HAS_TIMES : 0u) |
			 (is_of_waits(sel) ? PAGE_HAS_STATES : 0u) |
			 (m->page->code.has_places && !m->page->streams.n ? PAGE_HAS_PLACES : 0u),
		.slice_ms = slice_of(sel),
		.n = sel->nr_rows,
	};
}

/* Rows have the weights of a column of their table. Returns the sum. */
static uint64_t weigh_by(struct maker *m, struct page_stream *s, struct selection *sel,
			 uint32_t column)
{
	const struct table *t = &m->p->tables.p[sel->table];
	uint64_t sum = 0;
	for (size_t i = 0; i < sel->nr_rows; i++) {
		int64_t v = t->values[sel->rows[i].source * t->nr_columns + column];
		sum += sel->rows[i].weight = (uint64_t)MAX(v, (int64_t)0);
	}
	s->unit = t->columns[column].unit;
	if (column != t->weight_column)
		s->report = arena_fmt(&m->page->arena, "%s --weight %s", s->report,
				      profile_text(m->p, t->columns[column].name));
	return sum;
}

static void fill_stream(struct maker *m, struct page_stream *s, const struct selection *sel)
{
	CLEANUP(free_p) uint32_t *nodes = xreallocarray(NULL, sel->nr_rows, sizeof(*nodes));
	CLEANUP(free_p) struct place *places = xreallocarray(NULL, sel->nr_rows, sizeof(*places));
	allocate(&m->page->arena, s);
	place_rows(m, s, sel, places);
	calltree_add_placed(m->tree, sel, nodes);
	for (size_t i = 0; i < s->n; i++) {
		fill_row(m, s, sel, i, &places[i]);
		s->node[i] = nodes[places[i].row];
	}
	vec_push(&m->page->streams, *s);
}

static const char *weighing_title(const struct profile *p, const struct weighing *w)
{
	bool is_of_some = profile_get_fact(p, FACT_IO_SYNCS_ONLY) && w->title_of_some;
	return is_of_some ? w->title_of_some : w->title;
}

static int add_stream(struct maker *m, const struct view *v, const struct view_picture *pic,
		      struct err *err)
{
	CLEANUP(arena_release) struct arena scratch = {0};
	struct select_spec spec = pic->spec;
	struct selection sel;
	bool is_weighed = false;
	/* As in the tables of `report`, allocations are of the function that has them made. */
	spec.flags |= SELECT_SINGLE_ROWS | SELECT_IDLE | SELECT_CUT_STACKS;
	TRY(views_select(&scratch, m->p, &spec, &sel, err));
	if (!sel.nr_rows)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(weighings); i++) {
		const struct weighing *w = &weighings[i];
		int column =
			w->table == sel.id ? table_column(&m->p->tables.p[sel.table], w->role) : -1;
		if (column < 0)
			continue;
		struct page_stream s = stream_of(m, v, pic, &sel);
		s.key = w->key;
		s.title = weighing_title(m->p, w);
		if (!weigh_by(m, &s, &sel, (uint32_t)column))
			continue;
		fill_stream(m, &s, &sel);
		is_weighed = true;
	}
	if (!is_weighed) {
		struct page_stream s = stream_of(m, v, pic, &sel);
		fill_stream(m, &s, &sel);
	}
	return 0;
}

/* Thread time contains the rows of CPU samples and waits; the view of everything draws the same. */
static bool is_covered(const struct profile *p, enum view_id id)
{
	if (id == VIEW_THREAD_TIME)
		return views_has(views_at(VIEW_ALL), p);
	return (id == VIEW_CPU || id == VIEW_WAITS) && views_has(views_at(VIEW_THREAD_TIME), p);
}

static int add_streams(struct maker *m, struct err *err)
{
	CLEANUP(arena_release) struct arena a = {0};
	const struct select_spec spec = {0};
	const struct view *first = views_default(m->p);
	for (unsigned i = 0; i <= VIEW_NR; i++) {
		/* The default view first, then the others in their order. */
		const struct view *v = i ? views_at((enum view_id)(i - 1)) : first;
		if (!v->pictures || (i && (v == first || is_covered(m->p, (enum view_id)(i - 1)) ||
					   !views_has(v, m->p))))
			continue;
		struct view_pictures list = v->pictures(&a, v, m->p, &spec, VIEW_PICTURES_ROWS);
		for (size_t k = 0; k < list.n; k++)
			TRY(add_stream(m, v, &list.p[k], err));
	}
	return 0;
}

/* Of the rows that the page shows first. */
static int add_lines(struct maker *m, const struct code_access *code, struct err *err)
{
	CLEANUP(arena_release) struct arena a = {0};
	const struct view *v = views_default(m->p);
	const struct select_spec spec = {0};
	struct selection sel;
	struct view_pictures list = {0};
	if (v->pictures)
		list = v->pictures(&a, v, m->p, &spec, VIEW_PICTURES_ROWS);
	if (!list.n)
		return 0;
	TRY(views_select(&a, m->p, &list.p[0].spec, &sel, err));
	m->page->lines_weight = sel.weight;
	m->page->nr_lines = pagelines_make(&m->page->arena, &sel, code, &m->page->lines);
	if (!v->has_weights) /* else a leaf is where memory was allocated */
		m->page->code = pagecode_make(&m->page->arena, &sel, code);
	return 0;
}

/* Nodes were numbered in order of their creation; the finished tree has others. */
static void finish_tree(struct maker *m)
{
	struct report_tree *t = calltree_finish(m->tree, "page", "");
	/* Weights are summed by the page, for one stream at a time. */
	for (size_t i = 0; i < t->nr_nodes; i++)
		t->nodes[i].self = t->nodes[i].total = 0;
	m->page->tree = t;
	vec_foreach(s, &m->page->streams)
		for (size_t i = 0; i < s->n; i++)
			s->node[i] = calltree_place(m->tree, s->node[i]);
}

/* ---- memory over time, marks ---------------------------------------------------------------- */

static struct page_series *new_series(struct page *page, size_t n, const char *key,
				      const char *title)
{
	struct page_series *s = vec_add(&page->series);
	*s = (struct page_series){.key = key, .title = title, .unit = UNIT_BYTES, .n = n};
	s->time_ms = arena_calloc(&page->arena, n, sizeof(*s->time_ms));
	s->value = arena_calloc(&page->arena, n, sizeof(*s->value));
	return s;
}

static void add_series(struct page *page, const struct memtime *t, enum heap_memory_column column,
		       const char *key, const char *title)
{
	struct page_series *s = new_series(page, t->nr_rows, key, title);
	for (size_t i = 0; i < s->n; i++) {
		s->time_ms[i] = ms_since(page, t->rows[i].time_ns);
		s->value[i] = t->rows[i].bytes[column];
	}
}

static void add_memory(struct page *page, const struct profile *p)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct memtime t;
	if (!page->duration_ms || memtime_make(&a, p, &t, NULL))
		return;
	if (t.has_rss)
		add_series(page, &t, HEAP_MEMORY_RSS, "rss", "RSS");
	if (t.has_live)
		add_series(page, &t, HEAP_MEMORY_LIVE, "live", "heap live");
}

static void add_cgroup_series(struct page *page, const struct table *t, uint32_t column,
			      const char *key, const char *title)
{
	struct page_series *s = new_series(page, t->n, key, title);
	for (size_t i = 0; i < s->n; i++) {
		s->time_ms[i] = ms_since(page, t->time_ns[i]);
		s->value[i] = (uint64_t)MAX(t->values[i * t->nr_columns + column], (int64_t)0);
	}
}

/* A command under a limit: its group first, so that the axis labels usage and limit. */
static void add_cgroup(struct page *page, const struct profile *p)
{
	const struct table *t = tables_find_rows(p, TABLE_CGROUP);
	if (!page->duration_ms || !t || t->nr_columns <= CGROUP_LIMIT)
		return;
	add_cgroup_series(page, t, CGROUP_USAGE, "cgroup", "cgroup in use");
	add_cgroup_series(page, t, CGROUP_LIMIT, "limit", "limit");
}

static void add_marks(struct page *page, const struct profile *p)
{
	uint64_t kill_ns = profile_get_fact_nr(p, FACT_OOM_KILL);
	if (kill_ns && page->duration_ms)
		vec_push(&page->marks,
			 (struct page_mark){ms_since(page, p->start_ns + kill_ns), "OOM kill"});
	vec_foreach(mark, &p->marks)
		vec_push(&page->marks,
			 (struct page_mark){ms_since(page, mark->time_ns),
					    arena_strdup(&page->arena,
							 profile_text(p, mark->text))});
}

/* A call has a row with its whole time, which counts 1; the others are parts of it. */
static void add_spans(struct maker *m)
{
	const struct table *t = tables_find_rows(m->p, TABLE_SLOWEST_SPANS);
	for (size_t i = 0; t && i < t->n; i++) {
		const int64_t *v = &t->values[i * t->nr_columns];
		if (v[0] <= 0)
			continue;
		const char *name = profile_text(m->p, m->p->tags.p[t->tag[i]].object);
		const struct page_span span = {.time_ms = ms_since(m->page, t->time_ns[i]),
					       .len_us = (uint32_t)MIN(MAX(v[1], 0) / 1000,
								       (int64_t)UINT32_MAX),
					       .thread = m->thread_of[t->task[i]],
					       .text = arena_strdup(&m->page->arena, name)};
		vec_push(&m->page->spans, span);
	}
}

/* ---- the page ------------------------------------------------------------------------------- */

struct job {
	struct page *page;
	const struct profile *p;
	const char *input;
	const struct code_access *code;
	struct err err[3]; /* of the items */
	int rc[3];
};

static int add_pages(struct job *job, struct err *err)
{
	const struct view_limits limits = {.max_rows = PAGE_TABLE_ROWS};
	const struct select_spec spec = {0};
	struct page *page = job->page;
	struct report *first = page->first;
	TRY(views_page(first, job->p, &spec, job->input, &limits, err));
	vec_foreach(text, &first->findings)
		vec_push(&page->sentences, *text);
	const char *target = report_get_fact(first, FACT_TARGET);
	const struct view *v = views_default(job->p);
	const char *title = v == views_at(VIEW_CPU) ? first->title : v->title;
	page->title = target ? arena_fmt(&first->arena, "%s: %s", target, title) : title;
	return 0;
}

static int add_rows(struct job *job, struct err *err)
{
	struct page *page = job->page;
	const struct profile *p = job->p;
	CLEANUP(maker_release)
	struct maker m = {.page = page, .p = p, .names = &page->tree_report->names};
	m.tree = calltree_new(page->tree_report, 0);
	page->bins = waitbins_new(p);
	m.frames = waitframes_new(&m.arena, p);
	add_threads(&m);
	add_states(page);
	add_cgroup(page, p);
	add_memory(page, p);
	add_marks(page, p);
	add_spans(&m);
	TRY(add_lines(&m, job->code, err));
	TRY(add_streams(&m, err));
	finish_tree(&m);
	return 0;
}

static int add_diagnosis(struct job *job, struct err *err)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(rules_release) struct rules rules = {0};
	const struct select_spec spec = {0};
	(void)err;
	rules_add_builtin(&rules, &a);
	diagnosis_report(job->page->diagnosis, job->p, &spec, &rules, job->input, 0);
	return 0;
}

/* They write different members of the page. */
static void run_item(void *ctx, size_t item, unsigned worker)
{
	static int (*const items[])(struct job *, struct err *) = {add_rows, add_pages,
								   add_diagnosis};
	struct job *job = ctx;
	(void)worker;
	job->rc[item] = items[item](job, &job->err[item]);
}

int page_make(struct page *page, const struct profile *p, const char *input,
	      const struct code_access *code, struct work_pool *pool, struct err *err)
{
	*page = (struct page){.wall_start_ns = p->wall_start_ns, .is_incomplete = p->is_incomplete};
	page->first = report_new();
	page->diagnosis = report_new();
	page->tree_report = report_new();
	struct window all = window_of_profile(p);
	page->start_ns = all.from_ns;
	if (!heap_time_unit(p)) /* else nothing of it is over time */
		page->duration_ms = (all.to_ns - all.from_ns + NS_PER_MS - 1) / NS_PER_MS;
	struct job job = {.page = page, .p = p, .input = input, .code = code};
	work_run(pool, ARRAY_LEN(job.rc), run_item, &job);
	int rc = 0;
	for (size_t i = ARRAY_LEN(job.rc); i--;) {
		if (job.rc[i] && !rc)
			rc = err_move(err, &job.err[i]);
		err_release(&job.err[i]);
	}
	if (rc)
		page_release(page);
	return rc;
}

void page_release(struct page *page)
{
	waitbins_free(page->bins);
	report_free(page->first);
	report_free(page->diagnosis);
	report_free(page->tree_report);
	vec_release(&page->sentences);
	vec_release(&page->threads);
	vec_release(&page->states);
	vec_release(&page->streams);
	vec_release(&page->series);
	vec_release(&page->marks);
	vec_release(&page->spans);
	arena_release(&page->arena);
	*page = (struct page){0};
}
