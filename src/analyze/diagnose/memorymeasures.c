/* Measures of memory over time and of allocations; see measures.h. */
#include "base/base.h"
#include "analyze/diagnose/measurebase.h"

#include <math.h>

#include "analyze/memory/heapsum.h"
#include "analyze/memory/leaktable.h"
#include "analyze/memory/timeline.h"
#include "analyze/wait/frames.h"
#include "base/intern.h"
#include "base/text/num.h"

#define NUMBER(name) static double name(struct measures *m)
#define TEXT(name)   static const char *name(struct measures *m)

struct memorymeasures {
	const struct memverdict *verdict; /* NULL: no readings */
	struct memverdict own_verdict;
	bool has_growth; /* those below */
	const char *growth_where;
	double growth_pct;
};

struct heapmeasures {
	const struct heapfigures *f; /* NULL: no allocations, or filters that fit none */
	struct heapfigures own_f;
	struct heap_answer answer;
	double seconds;
};

/* ---- memory over time ------------------------------------------------------------------------ */

void measures_give_memory(struct measures *m, const struct memverdict *v)
{
	m->memory = arena_calloc(&m->a, 1, sizeof(*m->memory));
	m->memory->verdict = v;
}

static const struct memverdict *verdict_of(struct measures *m)
{
	struct memtime t;
	if (m->memory)
		return m->memory->verdict;
	measures_give_memory(m, NULL);
	if (select_scope(&m->spec) != SELECT_ALL || m->spec.time ||
	    memtime_make(&m->a, m->p, &t, NULL) || !t.has_split)
		return NULL; /* readings are of whole processes */
	m->memory->own_verdict = memtime_verdict(&m->a, m->p, &t);
	m->memory->verdict = &m->memory->own_verdict;
	return m->memory->verdict;
}

TEXT(memory_verdict)
{
	const struct memverdict *v = verdict_of(m);
	return v ? memverdict_key(v->kind) : NULL;
}

TEXT(memory_evidence)
{
	const struct memverdict *v = verdict_of(m);
	return v ? v->evidence : NULL;
}

/* In the whole recording. */
NUMBER(memory_grown_pct)
{
	const struct memverdict *v = verdict_of(m);
	return v && v->kept.is_known && v->kept_bytes > 0
		       ? 100 * v->kept.per_s * (double)v->span_ns / 1e9 / v->kept_bytes
		       : (double)NAN;
}

/* Of memory that the kernel cannot reclaim. */
NUMBER(memory_growth)
{
	const struct memverdict *v = verdict_of(m);
	return v && v->kept.is_known ? v->kept.per_s * 60 : (double)NAN;
}

NUMBER(memory_readings)
{
	const struct memverdict *v = verdict_of(m);
	return v ? (double)v->nr_points : (double)NAN;
}

/*
 * The function that touched most of the new pages first: it grew the memory, and is not necessarily the one that
 * does not free it.
 */
static void find_growth(struct measures *m)
{
	CLEANUP(arena_release) struct arena a = {0};
	const struct select_spec spec = {.event = table_key(TABLE_GROWTH)};
	struct selection sel;
	str_id most = 0;
	m->memory->growth_where = "";
	m->memory->growth_pct = (double)NAN;
	if (!tables_has_rows(m->p, TABLE_GROWTH) || select_run(&a, m->p, &spec, &sel, NULL))
		return;
	struct waitframes *frames = waitframes_new(&a, m->p);
	uint64_t *by_name = arena_calloc(&a, intern_count(&m->p->strings) + 1, sizeof(*by_name));
	for (size_t i = 0; i < sel.nr_rows; i++) {
		str_id name = waitframe_of(frames, sel.rows[i].stack).own;
		by_name[name] += sel.rows[i].weight;
		if (name && (!most || by_name[name] > by_name[most]))
			most = name;
	}
	if (!most)
		return;
	m->memory->growth_where = measures_name(m, profile_text(m->p, most));
	m->memory->growth_pct = view_pct(by_name[most], sel.weight);
}

static const struct memorymeasures *growth_of(struct measures *m)
{
	if (!verdict_of(m))
		return NULL;
	if (!m->memory->has_growth)
		find_growth(m);
	m->memory->has_growth = true;
	return m->memory;
}

TEXT(growth_where)
{
	const struct memorymeasures *g = growth_of(m);
	return g ? g->growth_where : NULL;
}

NUMBER(growth_pct)
{
	const struct memorymeasures *g = growth_of(m);
	return g ? g->growth_pct : (double)NAN;
}

/* ---- allocations ----------------------------------------------------------------------------- */

static void set_heap(struct measures *m, const struct heapfigures *f, double seconds)
{
	m->heap->f = f;
	m->heap->seconds = seconds;
	heapsum_answer(&m->heap->answer, f);
}

void measures_give_heap(struct measures *m, const struct heapfigures *f, double seconds)
{
	m->heap = arena_calloc(&m->a, 1, sizeof(*m->heap));
	set_heap(m, f, seconds);
}

static const struct heapmeasures *heap_of(struct measures *m)
{
	CLEANUP(report_free_p) struct report *scratch = report_new();
	if (m->heap)
		return m->heap->f ? m->heap : NULL;
	m->heap = arena_calloc(&m->a, 1, sizeof(*m->heap));
	struct heapfigures *f = &m->heap->own_f;
	struct select_spec own = m->spec;
	own.event = NULL;
	if (heapfigures_collect(f, &m->a, m->p, &own, NULL))
		return NULL;
	if (!heap_sum_is_none(&f->total.of[HEAP_SUM_LEAKED]) &&
	    leaktable_add(scratch, f, &own, &(struct view_limits){0}, NULL))
		return NULL;
	set_heap(m, f, heapsum_seconds(m->p, &own));
	return m->heap;
}

void heap_measures_release(struct measures *m)
{
	if (m->heap)
		heapfigures_release(&m->heap->own_f);
}

static const struct heap_sum *sum_of(struct measures *m, enum heap_sum_id of)
{
	const struct heapmeasures *h = heap_of(m);
	return h && of < HEAP_SUM_NR ? &h->f->total.of[of] : NULL;
}

static const struct heap_group *most_of(struct measures *m, enum heap_sum_id of)
{
	const struct heap_group *most = NULL;
	if (!sum_of(m, of))
		return NULL;
	vec_foreach(s, &m->heap->f->functions.rows)
		if (!most || s->f.of[of].bytes > most->f.of[of].bytes)
			most = s;
	return most;
}

static double bytes_of(struct measures *m, enum heap_sum_id of)
{
	const struct heap_sum *sum = sum_of(m, of);
	return sum ? (double)MAX(sum->bytes, 0) : (double)NAN;
}

static double most_pct(struct measures *m, enum heap_sum_id of)
{
	const struct heap_group *most = most_of(m, of);
	return most ? view_pct((uint64_t)MAX(most->f.of[of].bytes, 0),
			       (uint64_t)MAX(sum_of(m, of)->bytes, 0))
		    : (double)NAN;
}

static const char *most_by(struct measures *m, enum heap_sum_id of)
{
	const struct heap_group *most = most_of(m, of);
	return most ? measures_name(m, heapframe_name(m->p, &most->frame)) : NULL;
}

/* "most (62 %)", without a percentage if the samples are too few for one. */
static const char *most_share(struct measures *m, enum heap_sum_id of)
{
	double pct = most_pct(m, of);
	if (isnan(pct))
		return NULL;
	if (!heapfigures_has_shares(m->heap->f))
		return "the largest part (few samples)";
	return arena_fmt(&m->a, "%s (%s %%)", view_most(pct), num_double(pct, 0).s);
}

static enum heap_sum_id answer_of(struct measures *m)
{
	const struct heapmeasures *h = heap_of(m);
	return h && h->answer.what ? h->answer.of : HEAP_SUM_NR;
}

TEXT(held_what)
{
	return answer_of(m) < HEAP_SUM_NR ? m->heap->answer.what : NULL;
}

NUMBER(held_bytes)
{
	return bytes_of(m, answer_of(m));
}

NUMBER(held_pct)
{
	return most_pct(m, answer_of(m));
}

TEXT(held_share)
{
	return most_share(m, answer_of(m));
}

TEXT(held_by)
{
	return most_by(m, answer_of(m));
}

NUMBER(allocated_bytes)
{
	const struct heapmeasures *h = heap_of(m);
	return h && !heapsum_has_no_sample(h->f) ? bytes_of(m, HEAP_SUM_ALLOCATED) : (double)NAN;
}

NUMBER(allocated_rate)
{
	const struct heapmeasures *h = heap_of(m);
	return h && h->seconds > 0 ? allocated_bytes(m) / h->seconds : (double)NAN;
}

NUMBER(allocations_rate)
{
	const struct heap_sum *sum = sum_of(m, HEAP_SUM_ALLOCATED);
	return sum && m->heap->seconds > 0 ? (double)MAX(sum->nr, 0) / m->heap->seconds
					   : (double)NAN;
}

NUMBER(allocated_pct)
{
	return most_pct(m, HEAP_SUM_ALLOCATED);
}

TEXT(allocated_share)
{
	return most_share(m, HEAP_SUM_ALLOCATED);
}

TEXT(allocated_by)
{
	return most_by(m, HEAP_SUM_ALLOCATED);
}

NUMBER(temporary_pct)
{
	const struct heap_sum *all = sum_of(m, HEAP_SUM_ALLOCATED);
	const struct heap_sum *part = sum_of(m, HEAP_SUM_TEMPORARY);
	bool has_shares = all && all->nr > 0 && heapfigures_has_shares(m->heap->f);
	return has_shares ? view_pct((uint64_t)MAX(part->nr, 0), (uint64_t)all->nr) : (double)NAN;
}

TEXT(temporary_by)
{
	const struct heap_group *most = NULL;
	if (!sum_of(m, HEAP_SUM_TEMPORARY))
		return NULL;
	vec_foreach(s, &m->heap->f->functions.rows)
		if (!most || s->f.of[HEAP_SUM_TEMPORARY].nr > most->f.of[HEAP_SUM_TEMPORARY].nr)
			most = s;
	return most ? measures_name(m, heapframe_name(m->p, &most->frame)) : "";
}

TEXT(growing_site)
{
	const struct heapmeasures *h = heap_of(m);
	return !h ? NULL : h->f->growing.site ? measures_name(m, h->f->growing.site) : "";
}

NUMBER(growing_per_min)
{
	const struct heapmeasures *h = heap_of(m);
	return h && h->f->growing.site ? h->f->growing.per_min : (double)NAN;
}

NUMBER(growing_low)
{
	const struct heapmeasures *h = heap_of(m);
	return h && h->f->growing.site ? h->f->growing.per_min - h->f->growing.per_min_error
				       : (double)NAN;
}

NUMBER(growing_high)
{
	const struct heapmeasures *h = heap_of(m);
	return h && h->f->growing.site ? h->f->growing.per_min + h->f->growing.per_min_error
				       : (double)NAN;
}

TEXT(growing_more)
{
	const struct heapmeasures *h = heap_of(m);
	size_t nr = h ? h->f->growing.nr_more : 0;
	return nr ? arena_strdup(&m->a, num_noun(nr, "more sites").s) : "";
}

/* ---- the rows -------------------------------------------------------------------------------- */

static const struct measure memory_rows[] = {
	{"memory.verdict", FORMULA_TEXT, NULL,
	 "verdict on memory: leak, fragmentation, bloat, first-use, page-cache, steady, inconclusive (assay watch)",
	 .text = memory_verdict},
	{"memory.evidence", FORMULA_TEXT, NULL, "the measured values behind it",
	 .text = memory_evidence},
	{"memory.growth", FORMULA_BYTES, NULL, "growth a minute of memory that cannot be reclaimed",
	 .number = memory_growth},
	{"memory.grown.pct", FORMULA_PERCENT, "memory that cannot be reclaimed",
	 "its growth in the recording", .number = memory_grown_pct},
	{"memory.readings", FORMULA_COUNT, NULL, "readings", .number = memory_readings},
	{"growth.where", FORMULA_TEXT, NULL,
	 "the function that touched most of the new pages first; empty: not recorded",
	 .text = growth_where},
	{"growth.pct", FORMULA_PERCENT, "new pages", "first touched by the function with most",
	 .number = growth_pct},
};

static const struct measure heap_rows[] = {
	{"heap.what", FORMULA_TEXT, NULL,
	 "which blocks the measures below are of: live at the end, or at the peak",
	 .text = held_what},
	{"heap.bytes", FORMULA_BYTES, NULL,
	 "bytes of the blocks that were live at the end, or at the peak", .number = held_bytes},
	{"heap.top.pct", FORMULA_PERCENT, "these bytes", "of the function with most of them",
	 .number = held_pct},
	{"heap.top.share", FORMULA_TEXT, NULL, "\"most (62 %)\" or \"the largest part (31 %)\"",
	 .text = held_share},
	{"heap.top.by", FORMULA_TEXT, NULL, "that function", .text = held_by},
	{"allocated.bytes", FORMULA_BYTES, NULL, "bytes allocated", .number = allocated_bytes},
	{"allocated.rate", FORMULA_BYTES, NULL, "bytes allocated a second",
	 .number = allocated_rate},
	{"allocated.top.pct", FORMULA_PERCENT, "allocated bytes", "of the function with most",
	 .number = allocated_pct},
	{"allocated.top.share", FORMULA_TEXT, NULL,
	 "\"most (62 %)\" or \"the largest part (31 %)\"", .text = allocated_share},
	{"allocated.top.by", FORMULA_TEXT, NULL, "that function", .text = allocated_by},
	{"allocations.rate", FORMULA_COUNT, NULL, "allocations a second",
	 .number = allocations_rate},
	{"temporary.pct", FORMULA_PERCENT, "allocations",
	 "allocations freed before the next one of their thread", .number = temporary_pct},
	{"temporary.by", FORMULA_TEXT, NULL, "function with most of them", .text = temporary_by},
	{"growing.site", FORMULA_TEXT, NULL, "the fastest growing allocation site; empty: none",
	 .text = growing_site},
	{"growing.per-min", FORMULA_BYTES, NULL,
	 "growth a minute of the fastest growing allocation site", .number = growing_per_min},
	{"growing.low", FORMULA_BYTES, NULL, "lower end of the 95 % interval of that growth",
	 .number = growing_low},
	{"growing.high", FORMULA_BYTES, NULL, "upper end of the 95 % interval of that growth",
	 .number = growing_high},
	{"growing.more", FORMULA_TEXT, NULL, "further sites that grow: \"2 more sites\"",
	 .text = growing_more},
};

const struct measure *memory_measures(size_t *ret_nr)
{
	*ret_nr = ARRAY_LEN(memory_rows);
	return memory_rows;
}

const struct measure *heap_measures(size_t *ret_nr)
{
	*ret_nr = ARRAY_LEN(heap_rows);
	return heap_rows;
}
