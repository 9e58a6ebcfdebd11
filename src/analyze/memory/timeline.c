/* Memory over time; see timeline.h. */
#include "base/base.h"
#include "analyze/memory/timeline.h"

#include <errno.h>
#include <math.h>

#include "analyze/diagnose/diagnose.h"
#include "analyze/memory/watchpage.h"
#include "analyze/stacks/calltext.h"
#include "analyze/stacks/calltree.h"
#include "analyze/select/select.h"
#include "base/map.h"
#include "base/text/num.h"
#include "model/tables.h"

#define SLICE_NS 1000000000ull
#define STALE_NS 200000000u /* the last reading takes place while the capture stops */

/* ---- snapshots ---------------------------------------------------------------------------- */

static uint64_t value_at(const struct table *t, size_t i, uint32_t column)
{
	if (column >= t->nr_columns)
		return 0;
	return (uint64_t)MAX(t->values[i * t->nr_columns + column], (int64_t)0);
}

/* Adds the reading of one process to the sum. */
static void add_reading(struct memtime_row *sum, const struct table *t, size_t i)
{
	uint64_t *pss = &sum->bytes[HEAP_MEMORY_PSS];
	bool is_first = !sum->nr_processes++;
	uint64_t before = *pss;
	for (uint32_t c = 0; c < HEAP_MEMORY_NR; c++)
		sum->bytes[c] += value_at(t, i, c);
	/* Page tables are walked less often than counters are read. */
	if (!value_at(t, i, HEAP_MEMORY_PSS) || (!is_first && before == CELL_NO_BYTES))
		*pss = CELL_NO_BYTES;
	if (is_first || value_at(t, i, HEAP_MEMORY_SHMEM) > sum->shmem_most_bytes) {
		sum->shmem_most_bytes = value_at(t, i, HEAP_MEMORY_SHMEM);
		sum->shmem_space_bytes = value_at(t, i, HEAP_MEMORY_VIRTUAL);
	}
}

/* A snapshot ends when one of its processes is read again. */
static void gather(struct memtime *ret_t, struct arena *a, const struct profile *p,
		   const struct table *t)
{
	CLEANUP(map_release) struct map seen = {0};
	CLEANUP(map_release) struct map all = {0};
	ret_t->rows = arena_calloc(a, t->n, sizeof(*ret_t->rows));
	for (size_t i = 0; i < t->n; i++) {
		uint64_t pid = (uint32_t)p->tasks.p[t->task[i]].pid;
		bool is_new;
		(void)map_put(&all, pid, NULL);
		(void)map_put(&seen, pid, &is_new);
		if (!is_new) {
			map_clear(&seen);
			(void)map_put(&seen, pid, NULL);
		}
		if (!ret_t->nr_rows || !is_new)
			ret_t->rows[ret_t->nr_rows++].time_ns = t->time_ns[i];
		add_reading(&ret_t->rows[ret_t->nr_rows - 1], t, i);
		uint64_t rss = value_at(t, i, HEAP_MEMORY_RSS);
		ret_t->has_live |= value_at(t, i, HEAP_MEMORY_LIVE) != 0;
		ret_t->has_rss |= rss != 0;
		ret_t->has_split |= rss && value_at(t, i, HEAP_MEMORY_ANON);
		ret_t->has_pss |= value_at(t, i, HEAP_MEMORY_PSS) != 0;
	}
	ret_t->nr_processes = (uint32_t)all.n;
}

/* ---- live bytes --------------------------------------------------------------------------- */

/*
 * Adds @sign * the bytes of each slice to the snapshots, in proportion to the part of the slice
 * before them.
 */
static void add_flow(struct memtime *t, double *live, const struct profile *p,
		     const struct table *flow, double sign)
{
	struct heap_slices slices = heap_slices_of(p);
	size_t next = 0;
	double before = 0; /* sum of completed slices */
	double inside = 0; /* bytes of the current slice */
	uint64_t begun_ns = 0;
	uint64_t end_ns = 0;
	for (size_t i = 0; i < t->nr_rows; i++) {
		uint64_t now = t->rows[i].time_ns;
		for (; next < flow->n && flow->time_ns[next] <= now; next++) {
			if (flow->time_ns[next] >= end_ns) {
				before += inside;
				inside = 0;
				begun_ns = flow->time_ns[next];
				end_ns = heap_slices_end(&slices, begun_ns);
			}
			bool is_step = heap_is_freed_by_end(p, flow, next);
			*(is_step ? &before : &inside) += (double)value_at(flow, next, HEAP_BYTES);
		}
		double share = (double)(MIN(now, end_ns) - MIN(begun_ns, now)) /
			       (double)MAX(end_ns - begun_ns, (uint64_t)1);
		live[i] += sign * (before + share * inside);
	}
}

/* Replaces interpolated live bytes by what the recorder noted last before each reading. */
static void take_levels(struct memtime *t, double *live, const struct profile *p)
{
	const struct table *levels = heap_levels_of(p);
	size_t next = 0;
	for (size_t i = 0; levels && i < t->nr_rows; i++) {
		while (next < levels->n && levels->time_ns[next] <= t->rows[i].time_ns)
			next++;
		if (next && next < levels->n) /* behind the last one slices are as fine */
			live[i] = (double)value_at(levels, next - 1, HEAP_BYTES);
	}
}

static void add_live(struct memtime *t, struct arena *a, const struct profile *p)
{
	const struct table *allocated = tables_find(p, TABLE_ALLOCATED);
	const struct table *freed = tables_find(p, TABLE_FREED);
	if (t->has_live || !allocated || !allocated->n)
		return;
	double *live = arena_calloc(a, t->nr_rows, sizeof(*live));
	add_flow(t, live, p, allocated, 1);
	if (freed)
		add_flow(t, live, p, freed, -1);
	take_levels(t, live, p);
	for (size_t i = 0; i < t->nr_rows; i++)
		t->rows[i].bytes[HEAP_MEMORY_LIVE] = (uint64_t)MAX(live[i], 0.0);
	t->has_live = true;
}

/* Makes one snapshot per second from the flows: files of other tools, captures of heaps only. */
static void make_slices(struct memtime *t, struct arena *a, const struct profile *p)
{
	const struct table *flow = tables_find(p, TABLE_ALLOCATED);
	if (!flow || !flow->n || !flow->time_ns[flow->n - 1])
		return;
	uint64_t first = flow->time_ns[0];
	uint64_t last = MAX(flow->time_ns[flow->n - 1] + SLICE_NS, p->end_ns);
	uint64_t step = MAX(SLICE_NS, (last - first) / 100000);
	size_t nr = (size_t)((last - first) / step) + 1;
	t->rows = arena_calloc(a, nr, sizeof(*t->rows));
	t->nr_rows = nr;
	for (size_t i = 0; i < nr; i++)
		t->rows[i].time_ns = first + i * step;
}

/* Returns the reading nearest to a time. */
static size_t nearest(const struct memtime *t, uint64_t time_ns)
{
	size_t best = 0;
	uint64_t best_ns = UINT64_MAX;
	for (size_t i = 0; i < t->nr_rows; i++) {
		uint64_t at = t->rows[i].time_ns;
		uint64_t off = at > time_ns ? at - time_ns : time_ns - at;
		if (off < best_ns) {
			best_ns = off;
			best = i;
		}
	}
	return best;
}

/* Sums per second do not have the peak within a second; the table "peak" has it. */
static bool take_exact_peak(struct memtime *t, const struct profile *p)
{
	const struct table *peak = tables_find(p, TABLE_PEAK);
	uint64_t sum = 0;
	if (!t->has_live || !peak || !peak->n || !peak->time_ns[0])
		return false;
	for (size_t i = 0; i < peak->n; i++) {
		if (peak->time_ns[i] != peak->time_ns[0] ||
		    p->tasks.p[peak->task[i]].pid != p->tasks.p[peak->task[0]].pid)
			return false; /* several processes, each with its own peak */
		sum += value_at(peak, i, HEAP_BYTES);
	}
	size_t i = nearest(t, peak->time_ns[0]);
	if (sum < t->rows[i].bytes[HEAP_MEMORY_LIVE])
		return false;
	t->rows[i].bytes[HEAP_MEMORY_LIVE] = sum;
	t->peak_idx = i;
	return true;
}

static void find_peak(struct memtime *t, const struct profile *p)
{
	uint64_t most = 0;
	if (take_exact_peak(t, p))
		return;
	for (size_t i = 0; i < t->nr_rows; i++) {
		uint64_t v = t->rows[i].bytes[t->has_live ? HEAP_MEMORY_LIVE : HEAP_MEMORY_RSS];
		if (v > most) {
			most = v;
			t->peak_idx = i;
		}
	}
}

bool memtime_is_stale(const struct profile *p, int32_t pid, uint64_t ns)
{
	if (p->is_incomplete || profile_get_fact(p, FACT_HEAP_ENDED) ||
	    profile_get_fact(p, FACT_TARGET_END))
		return true;
	for (size_t i = 1; pid && i < p->tasks.n; i++)
		if (p->tasks.p[i].pid == pid && p->tasks.p[i].tid == pid && p->tasks.p[i].end_ns)
			return true;
	return ns + STALE_NS < p->end_ns;
}

int memtime_make(struct arena *a, const struct profile *p, struct memtime *ret_t, struct err *err)
{
	struct memtime t = {.start_ns = p->start_ns};
	const struct table *memory = tables_find(p, TABLE_MEMORY);
	if (memory && memory->n) {
		size_t last = memory->n - 1;
		gather(&t, a, p, memory);
		t.is_stale = memtime_is_stale(p, p->tasks.p[memory->task[last]].pid,
					      memory->time_ns[last]);
	} else
		make_slices(&t, a, p);
	if (!t.nr_rows) {
		err_set(err, -ENODATA, "this profile has no memory readings over time");
		return err_hint(err, "to record them: assay heap, assay watch -o FILE");
	}
	add_live(&t, a, p);
	if (!t.start_ns)
		t.start_ns = t.rows[0].time_ns;
	const char *attached = profile_get_fact(p, FACT_HEAP_ATTACHED);
	t.time_unit = heap_time_unit(p);
	t.is_live_whole = t.has_live && !(attached && !strcmp(attached, "attach"));
	find_peak(&t, p);
	*ret_t = t;
	return 0;
}

/* ---- verdict ------------------------------------------------------------------------------ */

/* The allocator's own answers: at the times of readings, of two at one time the last. */
static void take_answers(struct mempoint *points, const struct memtime *t, const struct table *from)
{
	size_t next = 0;
	for (size_t i = 0; i < t->nr_rows; i++) {
		points[i].in_use_bytes = points[i].resident_bytes = MEMPOINT_UNKNOWN;
		for (; next < from->n && from->time_ns[next] <= t->rows[i].time_ns; next++) {
			points[i].in_use_bytes = value_at(from, next, ALLOCATOR_IN_USE);
			points[i].resident_bytes = value_at(from, next, ALLOCATOR_RESIDENT);
		}
	}
}

/* Readings before and after the recording would give a verdict on more time than was recorded. */
static size_t drop_outside(struct mempoint *points, size_t n, const struct profile *p)
{
	size_t nr = 0;
	for (size_t i = 0; i < n; i++)
		if (points[i].time_ns >= p->start_ns &&
		    (!p->end_ns || points[i].time_ns <= p->end_ns))
			points[nr++] = points[i];
	return nr;
}

struct memverdict memtime_verdict(struct arena *a, const struct profile *p, const struct memtime *t)
{
	struct mempoint *points = arena_calloc(a, t->nr_rows, sizeof(*points));
	for (size_t i = 0; i < t->nr_rows; i++) {
		const uint64_t *v = t->rows[i].bytes;
		uint64_t live = v[HEAP_MEMORY_LIVE];
		points[i] = (struct mempoint){
			.time_ns = t->rows[i].time_ns,
			.rss_bytes = v[HEAP_MEMORY_RSS],
			.anon_bytes = v[HEAP_MEMORY_ANON],
			.file_bytes = v[HEAP_MEMORY_FILE],
			.shmem_bytes = t->rows[i].shmem_most_bytes,
			.shmem_space_bytes = t->rows[i].shmem_space_bytes,
			.swap_bytes = v[HEAP_MEMORY_SWAP],
			.stack_bytes = v[HEAP_MEMORY_STACKS],
			.in_use_bytes = t->has_live ? live : MEMPOINT_UNKNOWN,
			.resident_bytes =
				t->is_live_whole && live ? v[HEAP_MEMORY_ANON] : MEMPOINT_UNKNOWN,
		};
	}
	const struct table *answers = tables_find_rows(p, TABLE_ALLOCATOR);
	if (answers)
		take_answers(points, t, answers);
	const struct memverdict_host host = {
		.machine_bytes = profile_get_fact_nr(p, FACT_MEMORY_MACHINE),
		.limit_bytes = profile_get_fact_nr(p, FACT_MEMORY_LIMIT),
		.has_sites = tables_find_rows(p, TABLE_LIVE) != NULL,
		.is_in_use_partial = !answers && !t->is_live_whole};
	size_t n = drop_outside(points, t->nr_rows, p);
	return memverdict_of(a, points, n, &host);
}

/* ---- report ------------------------------------------------------------------------------- */

/* Columns of memory, in the order shown. */
static const struct {
	enum heap_memory_column of;
	struct report_column column;
} parts[] = {
	{HEAP_MEMORY_LIVE,
	 {"live_bytes", "heap live", CELL_BYTES, "allocated in the capture, not freed yet"}},
	{HEAP_MEMORY_RSS, {"rss_bytes", "RSS", CELL_BYTES, NULL}},
	{HEAP_MEMORY_PSS,
	 {"pss_bytes", "PSS", CELL_BYTES,
	  "shared pages divided by the number of processes that map them; read less often"}},
	{HEAP_MEMORY_ANON,
	 {"anon_bytes", "anonymous", CELL_BYTES, "part of RSS: heap, stacks, private copies"}},
	{HEAP_MEMORY_FILE,
	 {"file_bytes", "file", CELL_BYTES, "part of RSS: pages of mapped files"}},
	{HEAP_MEMORY_SHMEM, {"shmem_bytes", "shared", CELL_BYTES, "part of RSS: shared memory"}},
	{HEAP_MEMORY_SWAP, {"swap_bytes", "swap", CELL_BYTES, NULL}},
	{HEAP_MEMORY_STACKS,
	 {"stack_bytes", "stacks", CELL_BYTES, "part of anonymous: thread stacks"}},
	{HEAP_MEMORY_VIRTUAL, {"virtual_bytes", "virtual", CELL_BYTES, NULL}},
};
#define NR_TIME_COLUMNS (ARRAY_LEN(parts) + 2)

/* Columns without values in this profile are not shown. */
static bool is_shown(const struct memtime *m, enum heap_memory_column of)
{
	return of == HEAP_MEMORY_LIVE  ? m->has_live
	       : of == HEAP_MEMORY_RSS ? m->has_rss
	       : of == HEAP_MEMORY_PSS ? m->has_pss
				       : m->has_split;
}

static void add_time_row(struct report *r, struct report_table *t, const struct memtime *m,
			 size_t i, const char *mark)
{
	const struct memtime_row *row = &m->rows[i];
	union cell cells[NR_TIME_COLUMNS];
	size_t n = 0;
	cells[n++].u = row->time_ns - MIN(m->start_ns, row->time_ns);
	for (size_t k = 0; k < ARRAY_LEN(parts); k++)
		if (is_shown(m, parts[k].of))
			cells[n++].u = row->bytes[parts[k].of];
	cells[n].text = mark;
	report_add_row(r, t, cells);
}

static void add_snapshots(struct report *r, const struct memtime *m, uint64_t max_rows)
{
	struct report_column columns[NR_TIME_COLUMNS] = {
		{"time_ns", "time", CELL_NS, "since the capture's start"}};
	size_t nr_columns = 1;
	if (m->time_unit)
		columns[0] = (struct report_column){"position", m->time_unit, CELL_COUNT, NULL};
	for (size_t k = 0; k < ARRAY_LEN(parts); k++)
		if (is_shown(m, parts[k].of))
			columns[nr_columns++] = parts[k].column;
	columns[nr_columns++] = (struct report_column){"mark", "", CELL_TEXT, NULL};
	struct report_table *t =
		report_add_table(r, "memory_time", "snapshots", columns, nr_columns);
	size_t nr = max_rows ? MIN((size_t)MAX(max_rows, (uint64_t)2), m->nr_rows) : m->nr_rows;
	t->cut = CUT_EVERY;
	t->cut_by = 1;
	const char *peak = m->has_live ? "peak of the heap" : "peak";
	bool has_peak = false;
	for (size_t k = 0; k < nr; k++) {
		size_t i = nr > 1 ? k * (m->nr_rows - 1) / (nr - 1) : 0;
		if (!has_peak && i > m->peak_idx)
			add_time_row(r, t, m, m->peak_idx, peak);
		has_peak |= i >= m->peak_idx;
		add_time_row(r, t, m, i, i == m->peak_idx ? peak : "");
	}
	t->nr_rows_total = m->nr_rows;
	if (m->nr_processes > 1)
		t->note = arena_fmt(&r->arena,
				    "sum of %u processes: RSS, file and shared count shared pages "
				    "once per process, PSS once in total",
				    m->nr_processes);
}

static const struct report_column growth_columns[] = {
	{"what", "what", CELL_TEXT, NULL},
	{"first_bytes", "first", CELL_BYTES, NULL},
	{"last_bytes", "last", CELL_BYTES, NULL},
	{"peak_bytes", "peak", CELL_BYTES, NULL},
	{"growth_per_min", "growth/min", CELL_BYTES_CHANGE,
	 "median of the slopes between all pairs of readings; -: its interval is wider than what was read"},
};

static void add_growth_row(struct report *r, struct report_table *t, const struct memtime *m,
			   const char *what, enum heap_memory_column of)
{
	CLEANUP(arena_release) struct arena a = {0};
	uint64_t *times = arena_calloc(&a, m->nr_rows, sizeof(*times));
	double *values = arena_calloc(&a, m->nr_rows, sizeof(*values));
	uint64_t first = 0, last = 0, peak = 0, least = UINT64_MAX;
	size_t n = 0;
	for (size_t i = 0; i < m->nr_rows; i++) {
		if (m->rows[i].bytes[of] == CELL_NO_BYTES)
			continue;
		last = m->rows[i].bytes[of];
		first = n ? first : last;
		peak = MAX(peak, last);
		least = MIN(least, last);
		times[n] = m->rows[i].time_ns;
		values[n++] = (double)last;
	}
	if (!peak)
		return;
	struct memslope s = memslope_of(times, values, n);
	union cell growth = {.estimate = {.change = CELL_NO_CHANGE}};
	uint64_t span_ns = n ? times[n - 1] - times[0] : 0;
	double widest =
		(s.high - s.low) / 2 * (double)span_ns / 1e9; /* change within the interval */
	bool is_bounded = span_ns >= MEMVERDICT_SPAN_MIN_NS && widest <= (double)(peak - least);
	if (s.is_known && is_bounded && !m->time_unit) { /* as the verdict */
		growth.estimate.change = llround(s.per_s * 60);
		growth.estimate.error = (uint64_t)llround((s.high - s.low) * 30);
	}
	const union cell cells[] = {
		{.text = what}, {.u = first}, {.u = last}, {.u = peak}, growth,
	};
	report_add_row(r, t, cells);
}

void memtime_growth_report(struct report *r, const struct memtime *m)
{
	if (m->nr_rows < 4)
		return;
	struct report_table *t = report_add_table(r, "memory_growth", "growth", growth_columns,
						  ARRAY_LEN(growth_columns));
	for (size_t k = 0; k < ARRAY_LEN(parts); k++)
		add_growth_row(r, t, m, parts[k].column.title, parts[k].of);
	t->nr_rows_total = t->nr_rows;
}

void memtime_answer(struct report *r, const struct profile *p, const struct memverdict *v,
		    unsigned flags)
{
	CLEANUP(measures_free_p)
	struct measures *m = measures_new(p, &(struct select_spec){0}, NULL);
	measures_give_memory(m, v);
	diagnose_page(r, m, 1u << MEASURE_MEMORY, 0, flags);
}

void memtime_add(struct report *r, const struct profile *p)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct memtime m;
	if (memtime_make(&a, p, &m, NULL) || !m.has_split)
		return;
	struct memverdict v = memtime_verdict(&a, p, &m);
	memtime_answer(r, p, &v, DIAGNOSE_PART);
	memtime_growth_report(r, &m);
}

/* Adds the tree of memory live at the peak, by allocating call stack. */
static int add_tree(struct report *r, const struct profile *p, double min_pct, struct err *err)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct selection sel;
	if (!tables_has_rows(p, TABLE_PEAK))
		return 0;
	const struct select_spec spec = {.event = table_key(TABLE_PEAK)};
	TRY(select_run(&a, p, &spec, &sel, err));
	const struct calltext_options options = {.flags = CALLTREE_REVERSE, .min_pct = min_pct};
	calltext_report(r, &sel, &options);
	struct report_tree *t = vec_last(&r->trees);
	t->key = "peak_tree";
	t->title = "live at the peak, by allocating call stack";
	t->is_detail = true; /* it would take the place of the times */
	return 0;
}

static void begin(struct report *r, const struct profile *p, const struct memtime *m)
{
	r->title = "memory over time";
	r->losses = p->losses;
	r->unit = UNIT_BYTES;
	r->noun = "events";
	r->nr_samples = p->losses.nr[LOSS_WRITTEN];
	r->total = m->rows[m->peak_idx].bytes[HEAP_MEMORY_RSS];
	r->has_no_samples = !m->has_live;
	vec_foreach(f, &p->facts) {
		const char *key = profile_text(p, f->key);
		enum fact_id id = fact_from_key(key);
		if (id == FACT_MEMORY_PARTS) /* a table */
			continue;
		bool is_bytes = id == FACT_MEMORY_MACHINE || id == FACT_MEMORY_LIMIT;
		report_fact_text(r, key,
				 is_bytes ? num_bytes(profile_get_fact_nr(p, id)).s
					  : profile_text(p, f->value));
	}
	view_note_incomplete(r, p);
}

int memtime_report(struct report *r, const struct profile *p, const struct view_limits *limits,
		   double min_tree_pct, struct err *err)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct memtime m;
	TRY(memtime_make(&a, p, &m, err));
	begin(r, p, &m);
	if (m.has_split) {
		struct memverdict v = memtime_verdict(&a, p, &m);
		report_fact(r, FACT_VERDICT, memverdict_key(v.kind));
		memtime_answer(r, p, &v, 0);
	}
	if (m.has_live && !m.is_live_whole)
		report_note(r, "heap live does not include blocks that were allocated before "
			       "the capture");
	if (m.is_stale) {
		uint64_t last_ns = m.rows[m.nr_rows - 1].time_ns;
		report_note(r,
			    "the last reading is of %s after the start: what changed until the end "
			    "is not in it",
			    num_ns(last_ns - MIN(m.start_ns, last_ns)).s);
	}
	add_snapshots(r, &m, limits->max_rows);
	memtime_growth_report(r, &m);
	watchpage_saved_parts(r, p, limits->max_rows);
	return add_tree(r, p, min_tree_pct, err);
}
