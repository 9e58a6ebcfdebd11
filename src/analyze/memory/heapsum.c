/* The first page of memory; see heapsum.h. */
#include "base/base.h"
#include "analyze/memory/heapsum.h"

#include <math.h>

#include "analyze/diagnose/diagnose.h"
#include "analyze/memory/heapfigures.h"
#include "analyze/memory/heapviews.h"
#include "analyze/memory/heapweights.h"
#include "analyze/memory/leaktable.h"
#include "analyze/memory/timeline.h"
#include "analyze/overview.h"
#include "analyze/runtimes.h"
#include "analyze/select/window.h"
#include "base/buf.h"
#include "base/text/num.h"
#include "base/stat.h"
#include "model/heap.h"
#include "model/heapcalibrate.h"

#define FEW_ROWS 8 /* rows of tables below the first */

/* ---- totals -------------------------------------------------------------------------------- */

static const struct report_column total_columns[] = {
	{"bytes", "bytes", CELL_BYTES_ESTIMATE,
	 "with the half width of its 95 % confidence interval, or its upper end if that is wider"},
	{"count", "count", CELL_COUNT_ESTIMATE, "allocations, frees, blocks, faults"},
	{"bytes_per_s", "bytes/s", CELL_BYTES_ESTIMATE, NULL},
	{"count_per_s", "per second", CELL_FLOAT, NULL},
	{"what", "what", CELL_TEXT, NULL},
	{"note", "note", CELL_TEXT, .is_prose = true},
};

static const char *const hide_first[] = {"count_per_s", "bytes_per_s", NULL};

struct page {
	struct report *r;
	struct heapfigures *f;
	double seconds;
	enum select_scope scope; /* with filters, figures of the whole process are left out */
};

struct total {
	bool is_there;
	/* flows also have rates; of blocks: not known if no block was sampled */
	enum { LEVEL, FLOW, LEVEL_OF_BLOCKS, FLOW_OF_BLOCKS } kind;
	const struct heap_sum *sum;
	const char *what;
	const char *note;
};

/* Allocations were counted, but none was sampled, so nothing is known about their blocks. */
bool heapsum_has_no_sample(const struct heapfigures *f)
{
	return f->not_sampled_bytes &&
	       f->not_sampled_bytes == f->total.of[HEAP_SUM_ALLOCATED].bytes;
}

static void add_total(const struct page *g, struct report_table *to, const struct total *t)
{
	const struct heap_sum *s = t->sum;
	bool is_flow = (t->kind == FLOW || t->kind == FLOW_OF_BLOCKS) && g->seconds > 0;
	bool is_known = t->kind == LEVEL || t->kind == FLOW || !heapsum_has_no_sample(g->f);
	union cell rate = {.estimate = {.value = CELL_NO_ESTIMATE}};
	if (is_flow) {
		rate = heap_cell_bytes(s);
		rate.estimate.value = (uint64_t)((double)rate.estimate.value / g->seconds);
		rate.estimate.error = 0; /* relative error as of the bytes beside it */
	}
	bool is_unsized = !s->bytes && s->nr > 0;
	if (is_unsized)
		rate.estimate.value = CELL_NO_ESTIMATE;
	if (!is_known)
		rate.estimate.value = CELL_NO_ESTIMATE;
	union cell cells[] = {
		is_unsized || !is_known ? rate : heap_cell_bytes(s),
		is_known ? heap_cell_count(s) : rate,
		rate,
		{.d = is_flow && is_known ? (double)MAX(s->nr, 0) / g->seconds : (double)NAN},
		{.text = t->what},
		{.text = t->note},
	};
	report_add_row(g->r, to, cells);
}

static struct num_text moment(const struct profile *p, uint64_t time_ns)
{
	struct window w = window_of_profile(p);
	return heap_time_text(p, time_ns > w.from_ns ? time_ns - w.from_ns : 0);
}

static const char *peak_note(const struct heapfigures *f)
{
	if (!f->peak_ns)
		return "";
	if (f->nr_peaks > 1)
		return arena_fmt(f->arena,
				 "sum of %zu processes, each at its own peak; at one time at "
				 "least %s",
				 f->nr_peaks, num_bytes(f->together_bytes).s);
	return arena_fmt(f->arena, "after %s%s", moment(f->p, f->peak_ns).s,
			 f->is_sampled ? ", by the samples" : "");
}

static const char *leak_note(const struct heapfigures *f)
{
	if (f->leaks.rule != LEAKS_OLDER)
		return f->leaks.rule == LEAKS_ALL ? "all blocks live at program exit" : "";
	return arena_fmt(f->arena,
			 "live blocks older than %s; ages are known to %s, and rounded down",
			 num_ns(f->leaks.min_age_ns).s, num_ns(f->leaks.step_ns).s);
}

static const char *share_note(const struct heapfigures *f, int64_t part, int64_t whole,
			      const char *of)
{
	if (part < 0 || whole <= 0)
		return "";
	return arena_fmt(f->arena, "%s %% of %s", num_pct(100.0 * (double)part / (double)whole).s,
			 of);
}

/* @live: live bytes allocated in the capture; -1: no share is shown. */
static const char *resident_note(const struct heapfigures *f, int64_t live, int64_t resident,
				 size_t nr_processes)
{
	const char *share =
		share_note(f, live, resident,
			   "it are live blocks allocated in the capture; the rest: older "
			   "blocks, free memory in the allocator, stacks, code, files");
	if (nr_processes <= 1)
		return share;
	return arena_fmt(f->arena, "sum of %zu processes, shared pages count once per process%s%s",
			 nr_processes, live < 0 ? "" : "; ", share);
}

/* Its rings and tables are part of the process's RSS: some MiB. */
static bool has_recorder(const struct profile *p)
{
	const char *method = profile_get_fact(p, FACT_HEAP_METHOD);
	return method && (!strncmp(method, "patch", strlen("patch")) ||
			  !strncmp(method, "hooks", strlen("hooks")));
}

/* Adds RSS at the end, and its maximum. */
static void add_resident(const struct page *g, struct report_table *to)
{
	const struct profile *p = g->f->p;
	const struct table *t = tables_find_rows(p, TABLE_MEMORY);
	if (!t)
		return;
	CLEANUP(map_release) struct map round = {0}; /* pids of a reading of all */
	struct heap_sum end = {0};
	struct heap_sum most = {0};
	uint64_t most_ns = 0;
	int64_t nr_read = 0;
	for (size_t i = 0; i < t->n; i++) {
		int64_t rss = t->values[i * t->nr_columns + HEAP_MEMORY_RSS];
		bool is_new;
		(void)map_put(&round, (uint32_t)p->tasks.p[t->task[i]].pid, &is_new);
		if (!is_new) { /* the next one; who is not read any more has exited */
			map_clear(&round);
			(void)map_put(&round, (uint32_t)p->tasks.p[t->task[i]].pid, NULL);
			end.bytes = nr_read = 0;
		}
		end.bytes += rss;
		nr_read++;
		if (rss <= most.bytes)
			continue;
		most.bytes = rss;
		most_ns = t->time_ns[i];
	}
	if (!most.bytes) /* a file of a tool that does not record RSS */
		return;
	/* The last reading may be older than the last allocations, and smaller. */
	int64_t live = g->f->total.of[HEAP_SUM_LIVE].bytes;
	bool has_live = live > 0 && live <= end.bytes && g->f->leaks.rule != LEAKS_ALL;
	struct heap_sum peak = {
		.bytes = (int64_t)MIN(profile_get_fact_nr(p, FACT_MEMORY_PEAK_RSS), INT64_MAX)};
	const char *recorder = has_recorder(p) ? "; with the recorder's memory in the process" : "";
	const char *peak_at = arena_fmt(g->f->arena, "of one process, after %s%s",
					moment(p, most_ns).s, recorder);
	if (peak.bytes > most.bytes)
		peak_at = arena_fmt(g->f->arena,
				    "of one process, the kernel's own count: between "
				    "two readings%s",
				    recorder);
	else
		peak = most;
	uint64_t last_ns = t->time_ns[t->n - 1];
	bool is_stale = memtime_is_stale(p, p->tasks.p[t->task[t->n - 1]].pid, last_ns);
	const char *note =
		resident_note(g->f, has_live && !is_stale ? live : -1, end.bytes, (size_t)nr_read);
	if (is_stale)
		note = arena_fmt(g->f->arena, "after %s%s%s", moment(p, last_ns).s,
				 *note ? "; " : "", note);
	const struct total rows[] = {
		{true, LEVEL, &end, is_stale ? "RSS, last reading" : "RSS at the end", note},
		{true, LEVEL, &peak, p->is_incomplete ? "highest RSS reading" : "peak RSS",
		 peak_at},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		add_total(g, to, &rows[i]);
}

/* A format without a mark of its end: a file that was cut between two snapshots looks whole. */
static bool has_no_end_mark(const struct profile *p)
{
	const char *source = profile_get_fact(p, FACT_SOURCE);
	return source && !strcmp(source, "massif");
}

/* Blocks of sizes of which none was sampled may be live, too. */
static const char *live_note(const struct heapfigures *f, bool has_flow)
{
	if (profile_get_fact(f->p, FACT_DAMAGED))
		return "in what is left of the damaged recording";
	if (f->p->is_incomplete)
		return "where the data end: allocated in the capture, not freed until then";
	if (has_no_end_mark(f->p))
		return "at the last snapshot";
	if (!has_flow)
		return "at the end";
	if (f->not_sampled_bytes <= 0)
		return "at the end, allocated in the capture";
	return arena_fmt(f->arena,
			 "at the end, allocated in the capture; at most %s more of blocks that "
			 "were not sampled",
			 num_bytes((uint64_t)f->not_sampled_bytes).s);
}

static const char *held_note(const struct heapfigures *f)
{
	uint64_t nr = profile_get_fact_nr(f->p, FACT_HEAP_PROGRAMS_ENDED);
	const char *who = nr ? num_noun(nr, "programs").s : "programs";
	return arena_fmt(f->arena, "by %s when %s ended or executed another one, which freed it",
			 who, nr == 1 ? "it" : "they");
}

static struct heap_sum counted_sum(const struct profile *p, enum fact_id nr, enum fact_id bytes)
{
	uint64_t nr_bytes = bytes < FACT_NR ? profile_get_fact_nr(p, bytes) : 0;
	return (struct heap_sum){.nr = (int64_t)MIN(profile_get_fact_nr(p, nr), INT64_MAX),
				 .bytes = (int64_t)MIN(nr_bytes, INT64_MAX)};
}

static void add_those(const struct page *g, struct report_table *to, const struct total *rows,
		      size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (rows[i].is_there)
			add_total(g, to, &rows[i]);
}

/* The rows that are read first come first: a page may have no room for all. */
static void add_totals(const struct page *g)
{
	const struct heapfigures *f = g->f;
	const struct heap_sum *of = f->total.of;
	bool has_flow = tables_find_rows(f->p, TABLE_ALLOCATED) != NULL;
	bool is_whole = g->scope == SELECT_ALL;
	bool has_heap = of[HEAP_SUM_ALLOCATED].nr > 0 || of[HEAP_SUM_LIVE].nr > 0;
	bool has[HEAP_SUM_NR];
	for (size_t i = 0; i < HEAP_SUM_NR; i++)
		has[i] = !heap_sum_is_none(&of[i]);
	/* The recorder also counts all calls exactly, besides sampling. */
	const struct heap_sum counted = counted_sum(f->p, FACT_HEAP_ALLOCATIONS, FACT_HEAP_BYTES);
	const struct heap_sum frees = counted_sum(f->p, FACT_HEAP_FREES, FACT_NR);
	bool has_counts = has_flow && (f->is_sampled || f->is_exact);
	const char *mapped_by = has_heap ? "mmap calls outside the allocator"
					 : "mmap calls of the program and its allocator";
	const struct total rows[] = {
		{has_flow, FLOW, &of[HEAP_SUM_ALLOCATED], "allocated",
		 f->is_exact && is_whole ? "exact: counted besides the sampling" : ""},
		{has_counts && !f->is_exact && counted.nr && counted.bytes && is_whole, FLOW,
		 &counted, "counted", "exact count of all allocations"},
		{has_flow || has[HEAP_SUM_LIVE], LEVEL_OF_BLOCKS, &of[HEAP_SUM_LIVE], "live",
		 live_note(f, has_flow)},
		{f->leaks.rule != LEAKS_UNKNOWN && (has_flow || has[HEAP_SUM_LEAKED]),
		 LEVEL_OF_BLOCKS, &of[HEAP_SUM_LEAKED], "leaked", leak_note(f)},
		{has[HEAP_SUM_HELD], LEVEL_OF_BLOCKS, &of[HEAP_SUM_HELD], "held at exit",
		 held_note(f)},
		{has[HEAP_SUM_PEAK], LEVEL, &of[HEAP_SUM_PEAK], "peak", peak_note(f)},
	};
	const struct total parts[] = {
		{has_flow && of[HEAP_SUM_TEMPORARY].nr > 0, FLOW, &of[HEAP_SUM_TEMPORARY],
		 "temporary",
		 share_note(f, of[HEAP_SUM_TEMPORARY].nr, of[HEAP_SUM_ALLOCATED].nr,
			    "allocations: freed before the next one of their thread")},
		{has_flow, FLOW_OF_BLOCKS, &of[HEAP_SUM_FREED], "freed",
		 "blocks allocated in the capture"},
		{has_counts && frees.nr, FLOW, &frees, "frees counted",
		 "exact count of all frees; filters do not apply"},
		{has[HEAP_SUM_FREED_PREEXISTING], FLOW, &of[HEAP_SUM_FREED_PREEXISTING],
		 "freed, preexisting",
		 of[HEAP_SUM_FREED_PREEXISTING].bytes
			 ? "blocks allocated before the capture; size not always known"
			 : "blocks allocated before the capture; size not known"},
		{has[HEAP_SUM_SUPPRESSED], LEVEL, &of[HEAP_SUM_SUPPRESSED], "suppressed",
		 "known leaks, part of leaked"},
		{has[HEAP_SUM_MAPPED], FLOW, &of[HEAP_SUM_MAPPED], "mapped", mapped_by},
		{has[HEAP_SUM_UNMAPPED], FLOW, &of[HEAP_SUM_UNMAPPED], "unmapped", mapped_by},
		{has[HEAP_SUM_GROWTH], FLOW, &of[HEAP_SUM_GROWTH], "first touched",
		 "anonymous memory, by page faults"},
	};
	struct report_table *to =
		report_add_table(g->r, "memory", "memory", total_columns, ARRAY_LEN(total_columns));
	to->hide_first = hide_first;
	to->nr_first = has[HEAP_SUM_HELD] ? 8 : 7;
	add_those(g, to, rows, ARRAY_LEN(rows));
	if (is_whole)
		add_resident(g, to);
	add_those(g, to, parts, ARRAY_LEN(parts));
	to->nr_rows_total = to->nr_rows;
}

/* ---- notes --------------------------------------------------------------------------------- */

/*
 * The 95 % limit of a Poisson count of 0 is 3: an unsampled site has at most three mean intervals.
 */
static void note_sampling(struct report *r, const struct profile *p)
{
	uint64_t interval = heap_sampling_bytes(p);
	if (!interval)
		return;
	const char *full_for = profile_get_fact(p, FACT_HEAP_FULL_FOR);
	if (full_for)
		report_detail(r,
			      "recorded in full: %s; the rest is sampled, because that costs less",
			      full_for);
	report_detail(
		r,
		"sampled: one block per %s allocated on average; %s, +- is the half width of "
		"the 95 %% confidence interval, <= the end of one that begins at 0; unsampled sites: at most %s each (95 %% "
		"confidence)",
		num_bytes(interval).s,
		heapcalibrate_is_exact(p)
			? "estimates are scaled to the exact count of allocations of each size"
			: "numbers are unbiased estimates",
		num_bytes(3 * interval).s);
}

static void note_not_sampled(const struct page *g)
{
	if (g->f->not_sampled_bytes > 0)
		report_note(g->r, HEAP_NOT_SAMPLED
			    ": allocations of sizes of which none was sampled; their number and "
			    "bytes are exact, their call stacks and frees are not known");
}

static void note_few_samples(struct report *r, const struct heapfigures *f)
{
	bool is_recorded = heap_sampling_bytes(f->p) && !profile_get_fact(f->p, FACT_HEAP_DUMP);
	if (heapfigures_has_shares(f))
		return;
	report_note(r,
		    "only %s for all allocations that were not recorded, too few for "
		    "percentages: shares, sites and what was freed are rough estimates%s",
		    num_noun((uint64_t)f->nr_samples, "samples").s,
		    is_recorded ? "; --all-allocations records every one" : "");
}

static void note_dropped(struct report *r, const struct profile *p)
{
	uint64_t nr_dropped = p->losses.nr[LOSS_HEAP_DROPPED];
	if (nr_dropped)
		report_note(r,
			    "%" PRIu64
			    " allocator events were dropped: totals are too low, and blocks whose "
			    "free was dropped count as live",
			    nr_dropped);
}

/* The list of mapped files, needed for symbolization, is the last part of a dump. */
static void note_cut(struct report *r, const struct profile *p)
{
	if (profile_get_fact(p, FACT_HEAP_DUMP))
		report_note(
			r,
			"the dump is truncated, so function names are missing: the disk was full "
			"or the dump is still being written; to write a new one: assay heap "
			"--dump -p PID");
}

static void note_unit(struct report *r, const struct profile *p)
{
	const char *unit = heap_time_unit(p);
	if (unit)
		report_note(
			r,
			"positions in the recording are numbers of %s, not times (massif's time "
			"unit '%s'); valgrind --tool=massif --time-unit=ms writes times",
			unit, profile_get_fact(p, FACT_MASSIF_UNIT));
}

static void note_no_end_mark(struct report *r, const struct profile *p)
{
	if (has_no_end_mark(p) && !p->is_incomplete)
		report_note(
			r,
			"massif's format has no mark of its end, so the file may be incomplete: its "
			"last snapshot is the program's end only if nothing was cut off");
}

static void note_merged(const struct page *g)
{
	if (g->f->has_merged)
		report_note(
			g->r,
			"a site without a number at the peak or at the end ('-') is not in massif's "
			"tree of that moment: it had none, or is part of '" HEAP_BELOW
			"' (below 1 %% of the heap, or massif's --threshold)");
}

static void note_suppressed(struct report *r, const struct selection *sel)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < sel->nr_rows; i++)
		if (sel->rows[i].synth_leaf == SELECT_LEAF_SUPPRESSED)
			bytes += sel->rows[i].weight;
	if (bytes)
		report_note(
			r,
			"known leaks (%s) are shown as '[suppressed]' in trees, '[no stack]' in "
			"tables",
			num_bytes(bytes).s);
}

/*
 * Returns why the allocating function is unsymbolized; one with only a guessed start is stripped.
 */
static enum loss_kind unsymbolized_cause(const struct profile *p, const struct heapframe *f)
{
	const struct location *l = &p->locations.p[p->stacks.p[f->node].loc];
	bool is_known = f->node && !l->nr_frames && l->unsym < LOSS_NR &&
			loss_class((enum loss_kind)l->unsym) == LOSS_CLASS_UNSYM;
	return is_known ? (enum loss_kind)l->unsym : LOSS_UNSYM_STRIPPED;
}

/*
 * The loss counters count unsymbolized leaves. The leaf of an allocation is in the allocator, whose
 * library is often stripped; what matters is whether the allocating function is symbolized.
 */
static void note_unsymbolized(struct report *r, const struct selection *sel)
{
	CLEANUP(arena_release) struct arena a = {0};
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
		if (!sel->rows[i].stack || (strcmp(name, "[unknown]") && !strstr(name, "!fn_")))
			continue;
		nameless += sel->rows[i].weight;
		by_kind[unsymbolized_cause(sel->p, f)] += sel->rows[i].weight;
	}
	if (!sel->weight || 100 * nameless < sel->weight ||
	    profile_get_fact(sel->p, FACT_HEAP_DUMP))
		return;
	for (enum loss_kind k = 0; k < LOSS_NR; k++)
		if (100 * by_kind[k] >= sel->weight)
			buf_addf(&why, "%s%s", why.n ? ", " : ": ", loss_text(k));
	report_note(r, "%s %% of the total shown was allocated by unsymbolized functions%s",
		    num_pct(view_pct(nameless, sel->weight)).s, buf_str(&why));
}

/* What nr_samples counts: of a profile with a peak not all allocations. */
static const char *counted(const struct selection *sel)
{
	enum heap_weight w;
	if (!heap_weight_from_key(sel->event, &w))
		return select_noun(sel);
	return w == HEAP_WEIGHT_PEAK     ? "blocks live at the peak"
	       : w == HEAP_WEIGHT_LIVE   ? "live blocks"
	       : w == HEAP_WEIGHT_LEAKED ? "leaked blocks"
					 : select_noun(sel);
}

void heapsum_begin(struct report *r, const struct profile *p, const struct selection *sel)
{
	view_begin(r, sel, "memory allocations");
	note_cut(r, p);
	note_unit(r, p);
	note_no_end_mark(r, p);
	note_unsymbolized(r, sel);
	r->noun = counted(sel);
	r->has_no_samples = sel->weight && !sel->nr_samples; /* a source that knows only bytes */
	r->is_estimated = sel->variance != NULL; /* else every block shown was recorded */
	if (view_duration_ns(sel))
		report_fact(r, FACT_DURATION, heap_time_text(p, view_duration_ns(sel)).s);
	note_sampling(r, p);
	note_dropped(r, p);
	note_suppressed(r, sel);
	runtimes_note_heap(r, sel);
	if (sel->why_empty)
		report_note(r, "nothing to show by weight '%s': %s", sel->event, sel->why_empty);
}

/* ---- the page ------------------------------------------------------------------------------ */

/* Suggests a finer sampling interval, if the process still runs and samples were few. */
static void add_capture_hints(struct report *r, const struct heapfigures *f)
{
	const struct table *t = tables_find_rows(f->p, TABLE_MEMORY);
	uint64_t interval = heap_sampling_bytes(f->p);
	const struct heap_sum *live = &f->total.of[HEAP_SUM_LIVE];
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
	if (!heap_sum_is_none(&f->total.of[HEAP_SUM_LEAKED]) &&
	    overview_add_regex(&name, heapframe_name(f->p, &f->sites.rows.p[0].frame)))
		report_hint(r, &(struct report_hint){HINT_REPORT,
						     input,
						     {{HINT_WEIGHT, "leaked"},
						      {HINT_CALLERS, buf_str(&name)}}});
	add_capture_hints(r, f);
}

/* Estimates from a few samples are no answer. */
static bool is_vague(const struct heap_sum *s)
{
	return stat_estimate_error((double)s->bytes, s->variance) > (double)s->bytes;
}

/* The end of a damaged recording is there; rows before it are missing. */
static const char *live_answer(const struct profile *p)
{
	if (profile_get_fact(p, FACT_DAMAGED))
		return "live in what is left of the damaged recording";
	if (p->is_incomplete)
		return "live where the data end";
	return has_no_end_mark(p) ? "live at the last snapshot" : "live at the end";
}

void heapsum_answer(struct heap_answer *ret_answer, const struct heapfigures *f)
{
	const struct heap_sum *of = f->total.of;
	*ret_answer = (struct heap_answer){0};
	if (heapsum_has_no_sample(f))
		return;
	if (of[HEAP_SUM_HELD].bytes > of[HEAP_SUM_LIVE].bytes && !is_vague(&of[HEAP_SUM_HELD]))
		*ret_answer =
			(struct heap_answer){HEAP_SUM_HELD, "held by processes when they ended"};
	else if (of[HEAP_SUM_LIVE].bytes > 0 && !is_vague(&of[HEAP_SUM_LIVE]))
		*ret_answer = (struct heap_answer){HEAP_SUM_LIVE, live_answer(f->p)};
	else if (of[HEAP_SUM_PEAK].bytes > 0 && !is_vague(&of[HEAP_SUM_PEAK]))
		*ret_answer = (struct heap_answer){
			HEAP_SUM_PEAK,
			f->nr_peaks > 1 ? arena_fmt(f->arena, "sum of the peaks of %zu processes",
						    f->nr_peaks)
					: "live at the peak"};
}

static double seconds_of(const struct profile *p, const struct selection *sel)
{
	return heap_time_unit(p) ? 0 : (double)view_duration_ns(sel) / 1e9;
}

double heapsum_seconds(const struct profile *p, const struct select_spec *spec)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct selection sel;
	return heapweights_select(&a, p, spec, &sel, NULL) ? 0 : seconds_of(p, &sel);
}

static void add_answer(struct report *r, const struct heapfigures *f, double seconds,
		       const struct select_spec *spec, unsigned flags)
{
	CLEANUP(measures_free_p) struct measures *m = measures_new(f->p, spec, NULL);
	measures_give_heap(m, f, seconds);
	diagnose_page(r, m, 1u << MEASURE_HEAP, 0, flags);
}

static int add_page(struct page *g, const struct select_spec *spec, const char *input,
		    const struct view_limits *limits, struct err *err)
{
	struct view_limits few = *limits;
	few.max_rows = limits->max_rows ? MIN(limits->max_rows, (uint64_t)FEW_ROWS) : 0;
	const struct heap_sum *of = g->f->total.of;
	note_few_samples(g->r, g->f);
	note_not_sampled(g);
	note_merged(g);
	add_totals(g);
	heapviews_functions(g->r, g->f, limits);
	if (!heap_sum_is_none(&of[HEAP_SUM_LEAKED]))
		TRY(leaktable_add(g->r, g->f, spec, &few, err));
	add_answer(g->r, g->f, g->seconds, spec, 0);
	add_hints(g->r, g->f, input);
	if (of[HEAP_SUM_TEMPORARY].nr > 0)
		heapviews_temporary(g->r, g->f, &few);
	heapviews_sizes(g->r, g->f);
	heapviews_threads(g->r, g->f, &few);
	if (!heap_sum_is_none(&of[HEAP_SUM_MAPPED]) || !heap_sum_is_none(&of[HEAP_SUM_UNMAPPED]))
		heapviews_mapped(g->r, g->f, &few);
	if (!heap_sum_is_none(&of[HEAP_SUM_GROWTH]))
		heapviews_growth(g->r, g->f, limits);
	return 0;
}

/* Notes what the table of first touches does not show, if the page is by another weight. */
static int note_growth(struct report *r, struct arena *a, const struct profile *p,
		       const struct select_spec *spec, const struct selection *shown,
		       struct err *err)
{
	struct selection growth;
	struct select_spec own = *spec;
	own.event = table_key(TABLE_GROWTH);
	if (!tables_has_rows(p, TABLE_GROWTH) || shown->id == TABLE_GROWTH)
		return 0;
	TRY(select_run(a, p, &own, &growth, err));
	runtimes_note_stacks(r, &growth);
	return 0;
}

/* Collects the sums and begins the page; the first step of all functions below. */
static int open_page(struct page *g, struct heapfigures *f, struct arena *a, struct report *r,
		     const struct profile *p, const struct select_spec *spec, struct err *err)
{
	struct selection sel;
	TRY(heapweights_select(a, p, spec, &sel, err));
	TRY(heapfigures_collect(f, a, p, spec, err));
	*g = (struct page){
		.r = r, .f = f, .seconds = seconds_of(p, &sel), .scope = select_scope(spec)};
	heapsum_begin(r, p, &sel);
	if (f->is_exact && sel.id == TABLE_ALLOCATED) /* scaled to the exact counts */
		r->is_estimated = false;
	return note_growth(r, a, p, spec, &sel, err);
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
	if (!rc && table == HEAPSUM_LEAKS)
		add_answer(r, &f, 0, spec, DIAGNOSE_WRONG);
	heapfigures_release(&f);
	return rc;
}

int heapsum_add(struct report *r, const struct profile *p, const struct select_spec *spec,
		const struct view_limits *limits, struct err *err)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct heapfigures f = {0};
	struct view_limits few = *limits;
	few.max_rows = limits->max_rows ? MIN(limits->max_rows, (uint64_t)FEW_ROWS) : 0;
	int rc = heapfigures_collect(&f, &a, p, spec, err);
	if (!rc && !heapsum_has_no_sample(&f)) {
		note_sampling(r, p);
		note_few_samples(r, &f);
		note_dropped(r, p);
		heapviews_functions(r, &f, &few);
	}
	if (!rc && !heap_sum_is_none(&f.total.of[HEAP_SUM_LEAKED]))
		rc = leaktable_add(r, &f, spec, &few, err);
	if (!rc)
		add_answer(r, &f, 0, spec, DIAGNOSE_WRONG);
	heapfigures_release(&f);
	return rc;
}
