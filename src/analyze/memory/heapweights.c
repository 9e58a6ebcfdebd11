/*
 * Memory as a selection; see heapweights.h.
 *
 * Tables of levels cannot be added up by select_run, and some weights are made of two tables or of
 * a part of one; so rows are made here, from the samples that its filters let through.
 */
#include "base/base.h"
#include "analyze/memory/heapweights.h"

#include <errno.h>
#include <stdlib.h>

#include "analyze/memory/heapframes.h"
#include "analyze/memory/leaks.h"
#include "analyze/memory/suppress.h"
#include "analyze/select/window.h"
#include "base/clock.h"
#include "base/text/num.h"
#include "base/sv.h"
#include "base/vec.h"
#include "model/heap.h"

#define NOTHING_LIVES "everything allocated in the capture was freed in it"
#define NOTHING_ALLOCATED \
	"nothing was allocated in the capture, or this profile is a dump of live blocks"

static const struct {
	const char *key;
	enum table_id table;
	uint32_t column; /* weight column */
	const char *title;
	const char *noun;  /* of rows */
	const char *count; /* what weights count; NULL: bytes */
	const char *empty; /* reason shown if the table does not exist */
} weights[HEAP_WEIGHT_NR] = {
	[HEAP_WEIGHT_LIVE] = {"live", TABLE_LIVE, HEAP_BYTES, "live bytes at the end", "blocks",
			      NULL, NOTHING_LIVES},
	[HEAP_WEIGHT_PEAK] = {"peak", TABLE_PEAK, HEAP_BYTES, "live bytes at the peak", "blocks",
			      NULL, "this profile has no peak"},
	[HEAP_WEIGHT_LEAKED] = {"leaked", TABLE_LIVE, HEAP_BYTES, "leaked bytes", "blocks", NULL,
				NOTHING_LIVES},
	[HEAP_WEIGHT_ALLOCATED] = {"allocated", TABLE_ALLOCATED, HEAP_ALLOCATED_BYTES,
				   "bytes allocated", "allocations", NULL, NOTHING_ALLOCATED},
	[HEAP_WEIGHT_CALLS] = {"calls", TABLE_ALLOCATED, HEAP_ALLOCATED_CALLS, "allocations",
			       "allocations", "allocations", NOTHING_ALLOCATED},
	[HEAP_WEIGHT_TEMPORARY] = {"temporary", TABLE_ALLOCATED, HEAP_ALLOCATED_TEMPORARY,
				   "temporary allocations", "allocations", "allocations",
				   NOTHING_ALLOCATED},
	[HEAP_WEIGHT_TEMPORARY_BYTES] = {"temporary-bytes", TABLE_ALLOCATED,
					 HEAP_ALLOCATED_TEMPORARY_BYTES,
					 "bytes of temporary allocations", "allocations", NULL,
					 NOTHING_ALLOCATED},
	[HEAP_WEIGHT_FREED] = {"freed", TABLE_FREED, HEAP_BYTES, "bytes freed, by allocation site",
			       "frees", NULL,
			       "nothing that was allocated in the capture was freed in it"},
	[HEAP_WEIGHT_HELD] = {"held", TABLE_FREED, HEAP_BYTES, "bytes held at exit", "blocks", NULL,
			      "no process ended or executed another program while others were "
			      "recorded; assay heap --children"},
	[HEAP_WEIGHT_MAPPED] = {"mapped", TABLE_MAPPED, HEAP_BYTES,
				"bytes mapped by the program itself", "calls", NULL,
				"the program mapped no memory itself (mmap, brk outside of its "
				"allocator)"},
	[HEAP_WEIGHT_GROWTH] = {"growth", TABLE_GROWTH, HEAP_BYTES,
				"memory touched for the first time", "faults", NULL,
				"no memory was touched for the first time"},
};

const char *heap_weight_key(enum heap_weight w)
{
	return weights[w].key;
}

/* Growth in a recording without page faults. */
static bool is_allocated_less_freed(const struct profile *p, enum heap_weight w)
{
	return w == HEAP_WEIGHT_GROWTH && !tables_find_rows(p, TABLE_GROWTH);
}

const char *heap_weight_title(const struct profile *p, enum heap_weight w)
{
	if (w == HEAP_WEIGHT_LIVE && profile_get_fact(p, FACT_DAMAGED))
		return "live bytes in what is left of the damaged recording";
	if (w == HEAP_WEIGHT_LIVE && p->is_incomplete)
		return "live bytes where the data of the incomplete recording end";
	return is_allocated_less_freed(p, w) ? "bytes allocated less bytes freed"
					     : weights[w].title;
}

enum table_id heap_weight_table(enum heap_weight w)
{
	return weights[w].table;
}

bool heap_weight_from_key(const char *key, enum heap_weight *ret_w)
{
	for (int w = 0; w < HEAP_WEIGHT_NR; w++)
		if (!strcmp(weights[w].key, key)) {
			*ret_w = (enum heap_weight)w;
			return true;
		}
	return false;
}

uint64_t heap_sampling_bytes(const struct profile *p)
{
	uint64_t interval = profile_get_fact_nr(p, FACT_HEAP_SAMPLING);
	return interval >= 2 ? interval : 0;
}

bool heapweights_exist(const struct profile *p)
{
	for (int w = 0; w < HEAP_WEIGHT_NR; w++)
		if (tables_find_rows(p, weights[w].table))
			return true;
	return tables_find_rows(p, TABLE_FREED_PREEXISTING) != NULL;
}

/* Rows of TABLE_FREED are of two weights. */
static bool is_of_weight(const struct profile *p, enum heap_weight w, const struct table *t,
			 size_t i)
{
	if (w != HEAP_WEIGHT_FREED && w != HEAP_WEIGHT_HELD)
		return true;
	return heap_is_freed_by_end(p, t, i) == (w == HEAP_WEIGHT_HELD);
}

static bool has_rows_of(const struct profile *p, enum heap_weight w, const struct table *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (is_of_weight(p, w, t, i))
			return true;
	return false;
}

bool heap_weight_has_rows(const struct profile *p, enum heap_weight w)
{
	const struct table *t = tables_find_rows(
		p, is_allocated_less_freed(p, w) ? TABLE_ALLOCATED : weights[w].table);
	bool is_temporary = w == HEAP_WEIGHT_TEMPORARY || w == HEAP_WEIGHT_TEMPORARY_BYTES;
	return t && (!is_temporary || t->nr_columns > HEAP_ALLOCATED_TEMPORARY) &&
	       has_rows_of(p, w, t);
}

enum heap_weight heap_weight_default(const struct profile *p)
{
	const char *attached = profile_get_fact(p, FACT_HEAP_ATTACHED);
	/* files of other programs do not say so: those with a peak are of launched programs */
	bool is_launched = !attached || !strncmp(attached, "launch", strlen("launch"));
	if (is_launched && tables_find_rows(p, TABLE_PEAK))
		return HEAP_WEIGHT_PEAK;
	for (int w = 0; w < HEAP_WEIGHT_NR; w++)
		if (tables_find_rows(p, weights[w].table))
			return (enum heap_weight)w;
	return HEAP_WEIGHT_LIVE;
}

/* ---- rows of a table ----------------------------------------------------------------------- */

static uint32_t find_table(const struct profile *p, const struct table *t)
{
	return (uint32_t)(t - p->tables.p);
}

static struct heaprows rows_of(const struct profile *p, const struct table *t,
			       struct row_filter *row_filter)
{
	bool is_blocks = t && t->id != TABLE_MAPPED && t->id != TABLE_GROWTH;
	return (struct heaprows){.p = p,
				 .t = t,
				 .row_filter = row_filter,
				 .is_blocks = is_blocks,
				 .has_temporary = !profile_get_fact(p, FACT_HEAP_FULL_FOR)};
}

int heaprows_open(struct heaprows *ret_r, struct arena *a, const struct profile *p,
		  enum table_id id, const struct select_spec *spec, struct err *err)
{
	const struct table *t = tables_find_rows(p, id);
	struct row_filter *row_filter = NULL;
	if (t)
		TRY(select_compile(a, p, find_table(p, t), spec, &row_filter, err));
	*ret_r = rows_of(p, t, row_filter);
	return 0;
}

static int64_t value(const struct heaprows *r, size_t i, uint32_t column)
{
	return column < r->t->nr_columns ? r->t->values[i * r->t->nr_columns + column] : 0;
}

static void fill_row(const struct heaprows *r, size_t i, struct heaprow *row)
{
	*row = (struct heaprow){.i = i,
				.stack = r->t->stack[i],
				.task = r->t->task[i],
				.time_ns = r->t->time_ns[i],
				.tag = &r->p->tags.p[r->t->tag[i]],
				.nr = value(r, i, HEAP_BLOCKS),
				.bytes = value(r, i, HEAP_BYTES)};
	if (!r->is_blocks) {
		row->unmapped_bytes = value(r, i, 2);
		return;
	}
	row->samples = value(r, i, HEAP_SAMPLES);
	row->variance = (double)MAX(value(r, i, HEAP_VARIANCE), 0);
	if (r->has_temporary) {
		row->nr_temporary = value(r, i, HEAP_ALLOCATED_TEMPORARY);
		row->temporary_bytes = value(r, i, HEAP_ALLOCATED_TEMPORARY_BYTES);
	}
	if (row->bytes > 0) {
		double per_byte = (double)row->nr / (double)row->bytes;
		row->count_variance = row->variance * per_byte * per_byte;
	}
}

/*
 * True for pages touched and memory mapped by the injected recorder, not by the program: the leaf
 * is its code, or a system call that assay made in the process by ptrace, which begins in the vDSO
 * or in an unnamed page and has no callers.
 */
static bool is_recorders(const struct heaprows *r, size_t i)
{
	const struct profile *p = r->p;
	const struct stack_node *node = &p->stacks.p[r->t->stack[i]];
	if (r->is_blocks || !r->t->stack[i])
		return false;
	const char *module = profile_module_name(p, p->locations.p[node->loc].module);
	if (heapframes_is_recorder(module))
		return true;
	if (!profile_get_fact(p, FACT_HEAP_METHOD) || r->t->id != TABLE_MAPPED)
		return false;
	bool has_callers = node->parent && p->stacks.p[node->parent].parent;
	return !strcmp(module, "[vdso]") || (!strcmp(module, "[jit]") && !has_callers);
}

bool heaprows_next(struct heaprows *r, struct heaprow *ret_row)
{
	while (r->t && r->next < r->t->n &&
	       (!select_has(r->row_filter, r->next) || is_recorders(r, r->next)))
		r->next++;
	if (!r->t || r->next >= r->t->n)
		return false;
	fill_row(r, r->next++, ret_row);
	return true;
}

/* ---- a selection --------------------------------------------------------------------------- */

struct piece {
	struct select_row row; /* first member, for select_row_compare */
	int64_t weight;        /* signed: freed bytes are subtracted */
	int64_t nr;
	double variance;
};

struct gather {
	struct arena *arena;
	const struct profile *p;
	const struct select_spec *spec;
	enum heap_weight weight;
	uint64_t until_ns; /* --at: only rows before this; 0: all */
	struct leak_limit leaks;
	struct suppress *suppress;
	struct heapframes *frames; /* SELECT_CUT_STACKS, else NULL */
	struct selection sel;
	VEC(struct piece) pieces;
};

static void gather_release(struct gather *g)
{
	vec_release(&g->pieces);
}

static bool is_net(const struct gather *g)
{
	return g->until_ns || is_allocated_less_freed(g->p, g->weight);
}

static double share_of(double variance, int64_t part, int64_t whole)
{
	return whole > 0 ? variance * (double)part / (double)whole : 0;
}

/* Sets weight, number and variance of a row. */
static struct piece piece_of(const struct gather *g, const struct heaprow *r)
{
	switch (weights[g->weight].column) {
	case HEAP_ALLOCATED_CALLS:
		return (struct piece){.weight = r->nr, .nr = r->nr, .variance = r->count_variance};
	case HEAP_ALLOCATED_TEMPORARY:
		return (struct piece){.weight = r->nr_temporary,
				      .nr = r->nr_temporary,
				      .variance =
					      share_of(r->count_variance, r->nr_temporary, r->nr)};
	case HEAP_ALLOCATED_TEMPORARY_BYTES:
		return (struct piece){.weight = r->temporary_bytes,
				      .nr = r->nr_temporary,
				      .variance =
					      share_of(r->variance, r->temporary_bytes, r->bytes)};
	}
	return (struct piece){.weight = r->bytes, .nr = r->nr, .variance = r->variance};
}

static void count_out(struct gather *g, const struct piece *piece, unsigned verdict)
{
	g->sel.nr_out[verdict - 1] += (uint64_t)MAX(piece->nr, 0);
	g->sel.weight_out += (uint64_t)MAX(piece->weight, 0);
}

/* Not outside of the root of the selection, where a stack has no frames. */
static stack_id cut_stack(const struct gather *g, stack_id stack)
{
	stack_id cut = heapframes_of(g->frames, stack)->node;
	stack_id root = g->sel.roots ? g->sel.roots[stack] : 0;
	return cut && (!root || g->sel.roots[cut]) ? cut : root ? root : stack;
}

static void add_piece(struct gather *g, const struct heaprow *r, uint32_t phase, struct piece piece,
		      int sign)
{
	bool is_leaked = g->weight == HEAP_WEIGHT_LEAKED;
	if (is_leaked && !leaks_has(&g->leaks, r->time_ns))
		return;
	piece.row =
		(struct select_row){.stack = r->stack, .task = r->task, .phase = phase & 0xffffff};
	if (g->frames && r->stack)
		piece.row.stack = cut_stack(g, r->stack);
	if (is_leaked && suppress_has(g->suppress, r->stack)) {
		piece.row.stack = 0;
		piece.row.synth_leaf = SELECT_LEAF_SUPPRESSED;
	}
	piece.weight *= sign;
	piece.nr *= sign;
	piece.variance *= sign; /* what was sampled and freed is certain to be gone */
	vec_push(&g->pieces, piece);
}

static void add_rows(struct gather *g, const struct table *t, struct row_filter *row_filter,
		     int sign)
{
	struct heaprows rows = rows_of(g->p, t, row_filter);
	struct heaprow row;
	for (size_t i = 0; i < t->n; i++) {
		if ((g->until_ns && t->time_ns[i] >= g->until_ns) || is_recorders(&rows, i) ||
		    !is_of_weight(g->p, g->weight, t, i))
			continue;
		fill_row(&rows, i, &row);
		struct piece piece = piece_of(g, &row);
		unsigned verdict = select_verdict(row_filter, i);
		if (!verdict)
			add_piece(g, &row, select_phase(row_filter, i), piece, sign);
		else if (sign > 0)
			count_out(g, &piece, verdict);
	}
}

/*
 * A missing table counts as empty, if another table of memory exists; its shape is taken from that
 * one.
 */
static int open_table(struct gather *g, enum table_id id, struct row_filter **ret_s,
		      const struct table **ret_t, struct err *err)
{
	const struct table *t = tables_find_rows(g->p, id);
	const struct table *any = t;
	for (int w = 0; w < HEAP_WEIGHT_NR && !any; w++)
		any = tables_find_rows(g->p, weights[w].table);
	any = any ? any : tables_find_rows(g->p, TABLE_FREED_PREEXISTING);
	*ret_t = t;
	return select_open(g->arena, g->p, find_table(g->p, any), g->spec, &g->sel, ret_s, err);
}

static int gather_rows(struct gather *g, struct err *err)
{
	struct row_filter *row_filter;
	const struct table *t;
	bool nets = is_net(g);
	if (nets) { /* second table first: the selection is that of allocated memory */
		TRY(open_table(g, TABLE_FREED, &row_filter, &t, err));
		if (t)
			add_rows(g, t, row_filter, -1);
		g->sel = (struct selection){0};
	}
	enum table_id id = nets ? TABLE_ALLOCATED : weights[g->weight].table;
	TRY(open_table(g, id, &row_filter, &t, err));
	if (t)
		add_rows(g, t, row_filter, 1);
	return 0;
}

/* Values in files are not trusted. */
static int64_t add_i64(int64_t a, int64_t b)
{
	int64_t sum;
	return !__builtin_add_overflow(a, b, &sum) ? sum : a < 0 ? INT64_MIN : INT64_MAX;
}

static size_t merge_pieces(struct piece *p, size_t n)
{
	size_t to = 0;
	if (n)
		qsort(p, n, sizeof(*p), select_row_compare);
	for (size_t i = 0; i < n; i++) {
		if (to && !select_row_compare(&p[to - 1].row, &p[i].row)) {
			p[to - 1].weight = add_i64(p[to - 1].weight, p[i].weight);
			p[to - 1].nr = add_i64(p[to - 1].nr, p[i].nr);
			p[to - 1].variance += p[i].variance;
			continue;
		}
		p[to++] = p[i];
	}
	return to;
}

static void finish_rows(struct gather *g)
{
	struct selection *sel = &g->sel;
	size_t n = merge_pieces(g->pieces.p, g->pieces.n);
	double *variance = arena_calloc(g->arena, n + 1, sizeof(*variance));
	bool has_variance = false;
	sel->rows = arena_calloc(g->arena, n + 1, sizeof(*sel->rows));
	for (size_t i = 0; i < n; i++) {
		const struct piece *piece = &g->pieces.p[i];
		if (piece->weight <= 0)
			continue;
		struct select_row *row = &sel->rows[sel->nr_rows];
		*row = piece->row;
		row->weight = (uint64_t)piece->weight;
		row->nr_samples = (uint64_t)MAX(piece->nr, 0);
		variance[sel->nr_rows++] = MAX(piece->variance, 0);
		has_variance |= piece->variance > 0;
		sel->weight += row->weight;
		sel->nr_samples += row->nr_samples;
	}
	sel->variance = has_variance ? variance : NULL;
	sel->unit = weights[g->weight].count ? UNIT_COUNT : UNIT_BYTES;
	sel->id = weights[g->weight].table;
	sel->event = weights[g->weight].key;
	sel->noun = is_net(g) ? "blocks" : weights[g->weight].noun;
	sel->count_name = weights[g->weight].count;
}

/* ---- the spec ------------------------------------------------------------------------------ */

static int parse_weight(struct gather *g, struct err *err)
{
	const char *key = g->spec->heap.weight;
	g->weight = g->spec->heap.at && !key ? HEAP_WEIGHT_LIVE : heap_weight_default(g->p);
	if (!key && g->spec->event && table_from_key(g->spec->event) == TABLE_FREED_PREEXISTING) {
		err_set(err, -EINVAL, "frees of blocks from before the capture have no stacks");
		return err_hint(err, "assay report shows how many they were");
	}
	if (!key && g->spec->event)
		key = g->spec->event; /* tables have the names of the weights */
	if (!key || heap_weight_from_key(key, &g->weight))
		return 0;
	err_set(err, -EINVAL, "'%s' is not a weight of memory profiles", key);
	return err_hint(err, "weights: allocated, calls, live, leaked, peak, temporary, "
			     "temporary-bytes, freed, held, mapped, growth");
}

static int parse_moment(struct gather *g, struct err *err)
{
	const char *at = g->spec->heap.at;
	struct window all = window_of_profile(g->p);
	uint64_t ns;
	if (!at)
		return 0;
	if (!clock_parse_duration(sv_from_str(at), &ns)) {
		err_set(err, -EINVAL, "--at: '%s' is not a time", at);
		return err_hint(err, "write the time since the capture's start: 12s, 500ms, 2m");
	}
	if (g->weight != HEAP_WEIGHT_LIVE)
		return err_set(err, -EINVAL, "--at shows live memory at a time, not what was %s",
			       weights[g->weight].key);
	if (!tables_find_rows(g->p, TABLE_ALLOCATED)) {
		err_set(err, -EINVAL, "--at: this profile has one point in time only");
		return err_hint(err, "omit --at, or record allocations and frees: assay heap");
	}
	uint64_t length_ns = all.to_ns - all.from_ns;
	if (ns > length_ns + length_ns / 100) { /* lengths are shown rounded */
		err_set(err, -EINVAL, "--at %s is after the end of the capture", at);
		return err_hint(err, "it took %s", num_ns(length_ns).s);
	}
	g->until_ns = all.from_ns + MAX(ns, 1u);
	return 0;
}

static bool is_at_end(enum heap_weight w)
{
	return w == HEAP_WEIGHT_PEAK || w == HEAP_WEIGHT_LEAKED;
}

static const char *why_empty(const struct gather *g)
{
	bool is_of_every = g->weight == HEAP_WEIGHT_PEAK || g->weight == HEAP_WEIGHT_TEMPORARY ||
			   g->weight == HEAP_WEIGHT_TEMPORARY_BYTES;
	if (is_of_every && heap_sampling_bytes(g->p))
		return "not known from samples: record every allocation (assay heap "
		       "--all-allocations)";
	if (is_at_end(g->weight) && g->leaks.why_unknown &&
	    (g->p->is_incomplete || g->weight == HEAP_WEIGHT_LEAKED))
		return g->leaks.why_unknown;
	if (!heap_weight_has_rows(g->p, g->weight))
		return profile_get_fact(g->p, FACT_DAMAGED)
			       ? "the recording is damaged, and what is left of it has none"
		       : g->p->is_incomplete ? "the recording is incomplete, and has none up to "
					       "where its data end"
					     : weights[g->weight].empty;
	if (g->weight == HEAP_WEIGHT_TEMPORARY || g->weight == HEAP_WEIGHT_TEMPORARY_BYTES)
		return "no allocation shown was freed before the next one of its thread";
	if (is_net(g) && g->weight == HEAP_WEIGHT_GROWTH)
		return "everything shown that was allocated was freed";
	if (g->weight != HEAP_WEIGHT_LEAKED)
		return "the filters removed everything";
	return arena_fmt(g->arena, "no block shown that is live at the end is older than %s",
			 num_ns(g->leaks.min_age_ns).s);
}

int heapweights_select(struct arena *a, const struct profile *p, const struct select_spec *spec,
		       struct selection *ret_sel, struct err *err)
{
	struct select_spec own = *spec;
	CLEANUP(gather_release) struct gather g = {.arena = a, .p = p, .spec = spec};
	TRY(parse_weight(&g, err));
	TRY(parse_moment(&g, err));
	TRY(leaks_limit(p, spec->heap.older_than, &g.leaks, err));
	if (g.weight == HEAP_WEIGHT_LEAKED)
		TRY(suppress_new(&g.suppress, a, p, spec->heap.suppress, err));
	if (spec->flags & SELECT_CUT_STACKS)
		g.frames = heapframes_new(a, p);
	own.event = NULL;
	g.spec = &own;
	TRY(gather_rows(&g, err));
	finish_rows(&g);
	if (g.frames)
		g.sel.leaf_frames = heapframes_leaves(g.frames);
	if (!g.sel.nr_rows)
		g.sel.why_empty = why_empty(&g);
	*ret_sel = g.sel;
	return 0;
}

/* Removes the rows that are not of the weight. */
static void keep_weight(const struct profile *p, struct table *t, enum heap_weight w,
			const struct leak_limit *leaks)
{
	size_t n = 0;
	for (size_t i = 0; i < t->n; i++)
		if (w == HEAP_WEIGHT_LEAKED ? leaks_has(leaks, t->time_ns[i])
					    : is_of_weight(p, w, t, i))
			table_move_row(t, n++, i);
	t->n = n;
}

int heapweights_set(struct profile *p, enum heap_weight w, const char **ret_event, struct err *err)
{
	struct leak_limit leaks;
	TRY(leaks_limit(p, NULL, &leaks, err));
	const char *why = w == HEAP_WEIGHT_LEAKED && leaks.why_unknown ? leaks.why_unknown
			  : heap_weight_has_rows(p, w)                 ? NULL
								       : weights[w].empty;
	if (why)
		return err_set(err, -EINVAL, "nothing has weight '%s': %s", weights[w].key, why);
	*ret_event = table_key(weights[w].table);
	vec_foreach(t, &p->tables) {
		if (t->id != weights[w].table || weights[w].column >= t->nr_columns)
			continue;
		t->weight_column = weights[w].column;
		keep_weight(p, t, w, &leaks);
	}
	return 0;
}

bool heapweights_is_memory(const struct selection *sel)
{
	enum heap_weight w;
	return sel->noun && heap_weight_from_key(sel->event, &w) && heapweights_exist(sel->p);
}

bool heapweights_is_flow(const struct selection *sel)
{
	static const enum heap_weight flows[] = {HEAP_WEIGHT_ALLOCATED, HEAP_WEIGHT_CALLS,
						 HEAP_WEIGHT_TEMPORARY, HEAP_WEIGHT_TEMPORARY_BYTES,
						 HEAP_WEIGHT_FREED};
	enum heap_weight w;
	if (!heap_weight_from_key(sel->event, &w))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(flows); i++)
		if (flows[i] == w)
			return true;
	return false;
}
