/* The first page of memory; see heapsum.h. */
#include "base/base.h"
#include "analyze/heapsum.h"

#include <errno.h>
#include <math.h>

#include "analyze/heapfigures.h"
#include "analyze/heapviews.h"
#include "analyze/heapweights.h"
#include "analyze/leaktable.h"
#include "analyze/overview.h"
#include "analyze/window.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/num.h"
#include "base/stat.h"
#include "base/sv.h"
#include "model/heap.h"

#define FEW_ROWS 8 /* of tables below the first */

/* ---- totals -------------------------------------------------------------------------------- */

static const struct report_column total_columns[] = {
	{"bytes", "bytes", CELL_BYTES_ESTIMATE, "half of the 95 % interval beside it"},
	{"count", "number", CELL_COUNT_ESTIMATE, "allocations, frees, blocks, faults"},
	{"bytes_per_s", "bytes/s", CELL_BYTES_ESTIMATE, NULL},
	{"count_per_s", "per second", CELL_FLOAT, NULL},
	{"what", "what", CELL_TEXT, NULL},
	{"remark", "remark", CELL_TEXT, NULL},
};

static const char *const spare[] = {"count_per_s", "bytes_per_s", NULL};

struct page {
	struct report *r;
	struct report_table *totals;
	struct heapfigures *f;
	double seconds;
};

enum total_kind { TOTAL_FLOW, TOTAL_LEVEL };

static void add_total(struct page *g, const struct heap_sum *s, enum total_kind kind,
		      const char *what, const char *remark)
{
	bool is_flow = kind == TOTAL_FLOW && g->seconds > 0;
	union cell rate = {.estimate = {.value = CELL_NO_ESTIMATE}};
	if (is_flow) {
		rate = heap_cell_bytes(s);
		rate.estimate.value = (uint64_t)((double)rate.estimate.value / g->seconds);
		rate.estimate.error = 0; /* as a share it is that of the bytes beside it */
	}
	bool is_unsized = !s->bytes && s->nr > 0;
	if (is_unsized)
		rate.estimate.value = CELL_NO_ESTIMATE;
	union cell cells[] = {
		is_unsized ? rate : heap_cell_bytes(s),
		heap_cell_count(s),
		rate,
		{.d = is_flow ? (double)MAX(s->nr, 0) / g->seconds : (double)NAN},
		{.text = what},
		{.text = remark},
	};
	report_add_row(g->r, g->totals, cells);
	g->totals->nr_rows_total = g->totals->nr_rows;
}

static void add_moment(struct buf *to, const struct profile *p, uint64_t time_ns)
{
	struct window w = window_of_profile(p);
	num_add_ns(to, time_ns > w.from_ns ? time_ns - w.from_ns : 0);
}

static const char *peak_remark(struct page *g)
{
	CLEANUP(buf_release) struct buf b = {0};
	if (!g->f->peak_ns)
		return "";
	if (g->f->nr_peaks > 1) {
		buf_addf(&b, "sum of %zu processes, each at its own moment", g->f->nr_peaks);
	} else {
		buf_add_str(&b, "after ");
		add_moment(&b, g->f->p, g->f->peak_ns);
	}
	return arena_strdup(g->f->arena, buf_str(&b));
}

static const char *leak_remark(struct page *g)
{
	CLEANUP(buf_release) struct buf b = {0};
	switch (g->f->leaks.rule) {
	case LEAKS_ALL:
		return "all that lived when the program ended";
	case LEAKS_UNKNOWN:
		return "";
	case LEAKS_OLDER:
		break;
	}
	buf_add_str(&b, "of it older than ");
	num_add_ns(&b, g->f->leaks.min_age_ns);
	return arena_strdup(g->f->arena, buf_str(&b));
}

static const char *share_remark(struct page *g, int64_t part, int64_t whole, const char *of)
{
	CLEANUP(buf_release) struct buf b = {0};
	if (part < 0 || whole <= 0)
		return "";
	num_add_pct(&b, 100.0 * (double)part / (double)whole);
	buf_addf(&b, " %% of %s", of);
	return arena_strdup(g->f->arena, buf_str(&b));
}

/* @live: blocks of the capture, -1 where their share says nothing. */
static const char *resident_remark(struct page *g, int64_t live, int64_t resident,
				   size_t nr_processes)
{
	CLEANUP(buf_release) struct buf b = {0};
	if (nr_processes > 1)
		buf_addf(&b, "sum of %zu processes, what they share counts once for each%s",
			 nr_processes, live < 0 ? "" : "; ");
	buf_add_str(&b, share_remark(g, live, resident,
				     "it are live blocks of the capture; the rest: older blocks, "
				     "the allocator's reserves, stacks, code, files"));
	return arena_strdup(g->f->arena, buf_str(&b));
}

/* What the kernel said at the end, and the most that it said. */
static void add_resident(struct page *g)
{
	const struct table *t = tables_find_rows(g->f->p, TABLE_MEMORY);
	const struct profile *p = g->f->p;
	if (!t)
		return;
	CLEANUP(map_release) struct map last = {0}; /* sample by process */
	struct heap_sum end = {0};
	struct heap_sum most = {0};
	uint64_t most_ns = 0;
	for (size_t i = 0; i < t->n; i++) {
		int64_t rss = t->values[i * t->nr_columns + HEAP_MEMORY_RSS];
		*map_put(&last, (uint32_t)p->tasks.p[t->task[i]].pid, NULL) = (uint32_t)i;
		if (rss <= most.bytes)
			continue;
		most.bytes = rss;
		most_ns = t->time_ns[i];
	}
	for (size_t i = 0; i < t->n; i++) {
		const uint32_t *at = map_get(&last, (uint32_t)p->tasks.p[t->task[i]].pid);
		if (at && *at == i)
			end.bytes += t->values[i * t->nr_columns + HEAP_MEMORY_RSS];
	}
	if (!most.bytes) /* a file of a tool that did not look */
		return;
	CLEANUP(buf_release) struct buf b = {0};
	buf_add_str(&b, "of one process, after ");
	add_moment(&b, p, most_ns);
	/* A reading from before the end may be smaller than what was allocated since. */
	bool has_live = g->f->total.live.bytes > 0 && g->f->total.live.bytes <= end.bytes &&
			g->f->leaks.rule != LEAKS_ALL;
	add_total(g, &end, TOTAL_LEVEL, "resident at the end",
		  resident_remark(g, has_live ? g->f->total.live.bytes : -1, end.bytes, last.n));
	add_total(g, &most, TOTAL_LEVEL, "most resident", arena_strdup(g->f->arena, buf_str(&b)));
}

static bool fact_u64(const struct profile *p, enum fact_id id, int64_t *ret_v)
{
	const char *text = profile_get_fact(p, id);
	uint64_t v;
	if (!text || !sv_to_u64(sv_from_str(text), &v) || v > INT64_MAX)
		return false;
	*ret_v = (int64_t)v;
	return true;
}

/* What the recorder counted beside its samples is the truth about all of them. */
static void add_counted(struct page *g)
{
	struct heap_sum s = {0};
	if (g->f->is_sampled && fact_u64(g->f->p, FACT_HEAP_BYTES, &s.bytes) &&
	    fact_u64(g->f->p, FACT_HEAP_ALLOCATIONS, &s.nr))
		add_total(g, &s, TOTAL_FLOW, "counted",
			  "all of them, exactly; whatever is in view");
}

static const char *mapped_by(const struct page *g)
{
	bool has_heap = g->f->total.allocated.nr > 0 || g->f->total.live.nr > 0;
	return has_heap ? "by the program itself" : "by the program and its allocator";
}

static void add_totals(struct page *g)
{
	const struct heap_figures *t = &g->f->total;
	g->totals =
		report_add_table(g->r, "memory", "memory", total_columns, ARRAY_LEN(total_columns));
	g->totals->spare = spare;
	bool has_flow = tables_find_rows(g->f->p, TABLE_ALLOCATED) != NULL;
	if (has_flow) {
		add_total(g, &t->allocated, TOTAL_FLOW, "allocated", "");
		add_counted(g);
		if (t->temporary.nr > 0)
			add_total(g, &t->temporary, TOTAL_FLOW, "temporary",
				  share_remark(
					  g, t->temporary.nr, t->allocated.nr,
					  "allocations are freed before their thread's next one"));
		add_total(g, &t->freed, TOTAL_FLOW, "freed",
			  "of what was allocated in the capture");
	}
	if (!heap_sum_is_none(&t->older))
		add_total(g, &t->older, TOTAL_FLOW, "older blocks freed",
			  t->older.bytes
				  ? "allocated before the capture; their size is not always known"
				  : "allocated before the capture; their size is not known");
	if (has_flow || !heap_sum_is_none(&t->live))
		add_total(g, &t->live, TOTAL_LEVEL, "live",
			  has_flow ? "at the end, allocated in the capture" : "at the end");
	if (g->f->leaks.rule != LEAKS_UNKNOWN && (has_flow || !heap_sum_is_none(&t->leaked)))
		add_total(g, &t->leaked, TOTAL_LEVEL, "leaked", leak_remark(g));
	if (!heap_sum_is_none(&t->suppressed))
		add_total(g, &t->suppressed, TOTAL_LEVEL, "suppressed", "known leaks, of leaked");
	if (!heap_sum_is_none(&t->peak))
		add_total(g, &t->peak, TOTAL_LEVEL, "peak", peak_remark(g));
	if (!heap_sum_is_none(&t->mapped))
		add_total(g, &t->mapped, TOTAL_FLOW, "mapped", mapped_by(g));
	if (!heap_sum_is_none(&t->unmapped))
		add_total(g, &t->unmapped, TOTAL_FLOW, "unmapped", mapped_by(g));
	if (!heap_sum_is_none(&t->growth))
		add_total(g, &t->growth, TOTAL_FLOW, "touched first",
			  "page faults of anonymous memory");
	add_resident(g);
}

/* ---- notes --------------------------------------------------------------------------------- */

/* Sites that no sample hit: three mean intervals are the 95 % limit of a Poisson count of 0. */
static void note_sampling(struct report *r, const struct profile *p)
{
	uint64_t interval = heap_sampling_bytes(p);
	if (!interval)
		return;
	CLEANUP(buf_release) struct buf every = {0};
	CLEANUP(buf_release) struct buf unseen = {0};
	num_add_bytes(&every, interval);
	num_add_bytes(&unseen, 3 * interval);
	report_note(r,
		    "sampled, one block every %s on average: numbers are unbiased estimates, +- is "
		    "half of the 95 %% interval; what no sample hit may be up to %s",
		    buf_str(&every), buf_str(&unseen));
}

static void note_dropped(struct report *r, const struct profile *p)
{
	uint64_t nr_dropped = p->losses.nr[LOSS_HEAP_DROPPED];
	if (nr_dropped)
		report_note(r,
			    "%" PRIu64
			    " events of the allocator were dropped: numbers are that much too "
			    "small, and blocks whose free was dropped count as live",
			    nr_dropped);
}

/* The list of mapped files, without which no address has a name, is a dump's last part. */
static void note_cut(struct report *r, const struct profile *p)
{
	if (profile_get_fact(p, FACT_HEAP_DUMP))
		report_note(r,
			    "the dump is cut short, so names are missing: was the disk "
			    "full, or is it still being written? A new one, if the process runs: "
			    "assay heap --dump -p PID");
}

static void note_suppressed(struct report *r, const struct selection *sel)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < sel->nr_rows; i++)
		if (sel->rows[i].tip == SELECT_TIP_SUPPRESSED)
			bytes += sel->rows[i].weight;
	CLEANUP(buf_release) struct buf b = {0};
	num_add_bytes(&b, bytes);
	if (bytes)
		report_note(r,
			    "known leaks, %s, are '[suppressed]' in trees, '[no stack]' in tables",
			    buf_str(&b));
}

/* Why the function of an allocation has no name; what has only a guessed start is stripped. */
static enum loss_kind nameless_why(const struct profile *p, const struct heapframe *f)
{
	const struct location *l = &p->locations.p[p->stacks.p[f->node].loc];
	bool is_known = f->node && !l->nr_frames && l->unsym < LOSS_NR &&
			loss_class((enum loss_kind)l->unsym) == LOSS_CLASS_UNSYM;
	return is_known ? (enum loss_kind)l->unsym : LOSS_UNSYM_STRIPPED;
}

/*
 * The ledger counts leaves without a name, and the leaf of an allocation is the allocator's, whose
 * library rarely has any: what matters is whether the allocating function has one.
 */
static void note_nameless(struct report *r, const struct selection *sel)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(buf_release) struct buf b = {0};
	CLEANUP(buf_release) struct buf why = {0};
	struct heapframes *frames = heapframes_new(&a, sel->p);
	uint64_t nameless = 0;
	uint64_t by_kind[LOSS_NR] = {0};
	for (enum loss_kind k = 0; k < LOSS_NR; k++)
		if (loss_class(k) == LOSS_CLASS_UNSYM)
			r->losses.nr[k] = 0;
	for (size_t i = 0; i < sel->nr_rows; i++) {
		const struct heapframe *f = heapframes_of(frames, sel->rows[i].stack);
		const char *name = heapframe_name(sel->p, f);
		if (!sel->rows[i].stack || (f->function && !strstr(name, "!fn_")))
			continue;
		nameless += sel->rows[i].weight;
		by_kind[nameless_why(sel->p, f)] += sel->rows[i].weight;
	}
	if (!sel->weight || 100 * nameless < sel->weight ||
	    profile_get_fact(sel->p, FACT_HEAP_DUMP))
		return;
	for (enum loss_kind k = 0; k < LOSS_NR; k++)
		if (100 * by_kind[k] >= sel->weight)
			buf_addf(&why, "%s%s", why.n ? ", " : ": ", loss_text(k));
	num_add_pct(&b, view_pct(nameless, sel->weight));
	report_note(r, "%s %% of what is shown belongs to functions without a name%s", buf_str(&b),
		    buf_str(&why));
}

void heapsum_begin(struct report *r, const struct profile *p, const struct selection *sel)
{
	CLEANUP(buf_release) struct buf b = {0};
	view_begin(r, sel, "assay report");
	note_cut(r, p);
	note_nameless(r, sel);
	const char *sampling = profile_get_fact(p, FACT_HEAP_SAMPLING);
	bool is_sampled = sampling && sampling[0] >= '0' && sampling[0] <= '9';
	r->noun = is_sampled ? "events (estimated from samples)" : "events";
	if (view_duration_ns(sel)) {
		num_add_ns(&b, view_duration_ns(sel));
		report_fact(r, FACT_DURATION, buf_str(&b));
	}
	note_sampling(r, p);
	note_dropped(r, p);
	note_suppressed(r, sel);
	if (sel->why_empty)
		report_note(r, "nothing is shown by weight '%s': %s", sel->event, sel->why_empty);
}

/* ---- the page ------------------------------------------------------------------------------ */

/* What to record next of a process that still runs: finer, if samples were few. */
static void add_capture_hints(struct report *r, const struct heapfigures *f)
{
	const struct table *t = tables_find_rows(f->p, TABLE_MEMORY);
	uint64_t interval = heap_sampling_bytes(f->p);
	const struct heap_sum *live = &f->total.live;
	double error = stat_estimate_error((double)live->bytes, live->variance);
	if (!t || f->leaks.rule == LEAKS_ALL || interval < 16 * 1024 ||
	    error * 2 < (double)live->bytes)
		return;
	const char *pid = arena_fmt(&r->arena, "%d", f->p->tasks.p[t->task[0]].pid);
	const char *finer = arena_fmt(&r->arena, "%" PRIu64 "K", interval / 8 / 1024);
	report_hint(
		r, &(struct report_hint){HINT_HEAP, NULL, {{HINT_PID, pid}, {HINT_SAMPLE, finer}}});
}

static void add_hints(struct report *r, const struct heapfigures *f, const char *input)
{
	CLEANUP(buf_release) struct buf name = {0};
	if (!input)
		return;
	const char *key = heap_weight_key(heap_weight_default(f->p));
	report_hint(r, &(struct report_hint){HINT_FLAME, input, {{HINT_WEIGHT, key}}});
	report_hint(r, &(struct report_hint){
			       HINT_REPORT, input, {{HINT_WEIGHT, key}, {HINT_TREE, NULL}}});
	if (!heap_sum_is_none(&f->total.leaked) &&
	    overview_add_name(&name, heapframe_name(f->p, &f->sites.rows.p[0].frame)))
		report_hint(r, &(struct report_hint){HINT_REPORT,
						     input,
						     {{HINT_WEIGHT, "leaked"},
						      {HINT_CALLERS, buf_str(&name)}}});
	add_capture_hints(r, f);
}

static int add_page(struct page *g, const struct select_spec *spec, const char *input,
		    const struct view_limits *limits, struct err *err)
{
	struct view_limits few = *limits;
	few.max_rows = limits->max_rows ? MIN(limits->max_rows, (uint64_t)FEW_ROWS) : 0;
	const struct heap_figures *t = &g->f->total;
	int rc = 0;
	add_totals(g);
	heapviews_functions(g->r, g->f, limits);
	if (!heap_sum_is_none(&t->leaked))
		rc = leaktable_add(g->r, g->f, spec, &few, err);
	if (rc)
		return rc;
	add_hints(g->r, g->f, input);
	if (t->temporary.nr > 0)
		heapviews_temporary(g->r, g->f, &few);
	heapviews_sizes(g->r, g->f);
	heapviews_threads(g->r, g->f, &few);
	if (!heap_sum_is_none(&t->mapped) || !heap_sum_is_none(&t->unmapped))
		heapviews_mapped(g->r, g->f, &few);
	if (!heap_sum_is_none(&t->growth))
		heapviews_growth(g->r, g->f, limits);
	return 0;
}

/* Numbers collected and the page begun; what every one of the functions below starts with. */
static int open_page(struct page *g, struct heapfigures *f, struct arena *a, struct report *r,
		     const struct profile *p, const struct select_spec *spec, struct err *err)
{
	struct selection sel;
	TRY(heapweights_select(a, p, spec, &sel, err));
	TRY(heapfigures_collect(f, a, p, spec, err));
	*g = (struct page){.r = r, .f = f, .seconds = (double)view_duration_ns(&sel) / 1e9};
	heapsum_begin(r, p, &sel);
	return 0;
}

int heapsum_report(struct report *r, const struct profile *p, const struct select_spec *spec,
		   const char *input, const struct view_limits *limits, struct err *err)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct heapfigures f = {0};
	struct page g;
	int rc = open_page(&g, &f, &a, r, p, spec, err);
	if (!rc)
		rc = add_page(&g, spec, input, limits, err);
	heapfigures_release(&f);
	return rc;
}

int heapsum_table(struct report *r, const struct profile *p, const struct select_spec *spec,
		  const struct view_limits *limits, enum heapsum_table table, struct err *err)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct heapfigures f = {0};
	int rc = heapfigures_collect(&f, &a, p, spec, err);
	if (!rc && table == HEAPSUM_SIZES)
		heapviews_sizes(r, &f);
	else if (!rc && table == HEAPSUM_THREADS)
		heapviews_threads(r, &f, limits);
	else if (!rc)
		rc = leaktable_add(r, &f, spec, limits, err);
	heapfigures_release(&f);
	return rc;
}
