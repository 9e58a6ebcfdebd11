/*
 * Frames that tail calls removed; see tailframes.h.
 *
 *	1. what each return address calls       once per location
 *	2. pairs (location of the caller, function of the callee) where that is another function
 *	3. the functions between the two        once per pair
 *	4. their names                          as locations of their own, by the symbol worker
 *	5. locations with these frames          by pair (location of the callee, chain)
 */
#include "base/base.h"
#include "ingest/tailframes.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/sort.h"
#include "base/vec.h"
#include "symbol/tailcode.h"
#include "unwind/table.h"

/* Functions between a caller and a callee, in the order of the calls; 0 = none. */
struct chain {
	loc_id locs[TAIL_CHAIN_MAX];
	size_t nr;
};

/* A node that gets inferred frames. */
struct change {
	stack_id node;
	uint32_t chain;
};

struct tailframes {
	struct profile *p;
	const struct modules *modules;
	struct symbolworker *worker;
	struct tailcode **codes; /* by module */
	bool *is_tried;          /* by module */
	uint64_t *targets;       /* by location: what it calls; 0 = no direct call */
	uint64_t *called;        /* by location: place() of what it calls, or 0 */
	uint64_t *own;           /* by location: place() of its function, or 0 */
	uint8_t *exact;   /* by location: 1 + whether its caller is exact; 0 = not known yet */
	struct map pairs; /* location << 32 | function -> index of its chain + 1 */
	VEC(struct chain) chains;
	VEC(struct change) changes;
};

static void tailframes_release(struct tailframes *t)
{
	for (size_t i = 0; i < t->p->modules.n && t->codes; i++)
		tailcode_free(t->codes[i]);
	free(t->codes);
	free(t->is_tried);
	free(t->targets);
	free(t->called);
	free(t->own);
	free(t->exact);
	map_release(&t->pairs);
	vec_release(&t->chains);
	vec_release(&t->changes);
}

static struct tailcode *code_of(struct tailframes *t, module_id module)
{
	if (t->is_tried[module])
		return t->codes[module];
	t->is_tried[module] = true;
	struct symbolizer *s = t->p->modules.p[module].kind == MODULE_ELF
				       ? symbolworker_symbolizer(t->worker, module)
				       : NULL;
	t->codes[module] = s ? tailcode_new(s) : NULL;
	return t->codes[module];
}

/* ---- 1. calls ----------------------------------------------------------------------------- */

/* A function as one number, for comparisons; different functions could have the same. */
static uint64_t place(module_id module, uint64_t start)
{
	return (uint64_t)module << 44 ^ start;
}

struct call {
	uint64_t order; /* module and offset: code is read in blocks, each once */
	loc_id loc;
};

static void find_targets(struct tailframes *t)
{
	const struct profile *p = t->p;
	VEC(struct call) calls = {0};
	for (size_t i = 1; i < p->locations.n; i++) {
		const struct location *l = &p->locations.p[i];
		if ((l->flags & (LOCATION_CALL | LOCATION_KERNEL)) == LOCATION_CALL &&
		    code_of(t, l->module))
			vec_push(&calls,
				 (struct call){(uint64_t)l->module << 40 ^ l->offset, (loc_id)i});
	}
	sort_records(calls.p, calls.n, sizeof(*calls.p), UINT64_MAX);
	vec_foreach(c, &calls) {
		const struct location *l = &p->locations.p[c->loc];
		const struct ingest_module *im = modules_by_id(t->modules, l->module);
		if (im)
			t->targets[c->loc] =
				tailcode_target(t->codes[l->module], module_vaddr(im, l->offset));
		if (t->targets[c->loc])
			t->called[c->loc] = place(l->module, t->targets[c->loc]);
	}
	vec_release(&calls);
	for (size_t i = 1; i < p->locations.n; i++) {
		const struct location *l = &p->locations.p[i];
		const struct frame *f = profile_physical_frame(p, l);
		uint64_t start = f ? p->functions.p[f->func].start : 0;
		if (start && !(l->flags & LOCATION_KERNEL))
			t->own[i] = place(l->module, start);
	}
}

/* ---- 2. pairs ----------------------------------------------------------------------------- */

/*
 * Whether call frame information gave the caller of this frame: not in a signal frame, whose caller
 * was interrupted, nor in code whose rules were derived from instructions.
 */
static bool has_exact_caller(const struct tailframes *t, const struct location *l)
{
	struct ingest_module *im = modules_by_id(t->modules, l->module);
	if (!im || im->kind != MODULE_ELF || !im->unwind.table)
		return false;
	uint64_t at = module_vaddr(im, l->offset - (l->flags & LOCATION_CALL ? 1 : 0));
	const struct unwind_row *row = unwind_table_find(im->unwind.table, at);
	struct ehframe_fde fde;
	struct ehframe_cie cie;
	if (!row || !unwind_table_fde(im->unwind.table, at, &fde, &cie))
		return false;
	uint32_t kind = row_kind(row->rule);
	if (kind == ROW_SPECIAL)
		return !(im->unwind.table->specials[row_special_idx(row->rule)].flags &
			 SPECIAL_IS_SIGNAL);
	return kind == ROW_SP || kind == ROW_FP;
}

static bool is_exact(struct tailframes *t, loc_id loc)
{
	if (!t->exact[loc])
		t->exact[loc] = 1 + has_exact_caller(t, &t->p->locations.p[loc]);
	return t->exact[loc] == 2;
}

/* ---- 3. chains ---------------------------------------------------------------------------- */

static loc_id location_of(struct tailframes *t, const struct tail_function *f, module_id a,
			  module_id b)
{
	module_id module = f->in == t->codes[a] ? a : b;
	const struct ingest_module *im = modules_by_id(t->modules, module);
	uint64_t offset;
	for (size_t i = 0; i < im->nr_segments; i++) {
		const struct elf_segment *s = &im->segments[i];
		if (f->vaddr < s->vaddr || f->vaddr - s->vaddr >= s->nr_file_bytes)
			continue;
		offset = f->vaddr - s->vaddr + s->offset;
		if (module_vaddr(im, offset) == f->vaddr)
			return profile_location(t->p, module, offset, 0);
	}
	return 0;
}

static void find_chain(struct tailframes *t, loc_id caller, const struct function *callee,
		       struct chain *to)
{
	module_id from = t->p->locations.p[caller].module;
	struct tail_function hidden[TAIL_CHAIN_MAX];
	if (!code_of(t, from) || !code_of(t, callee->module))
		return;
	size_t nr = tailcode_hidden(t->codes[from], t->targets[caller], t->codes[callee->module],
				    callee->start, hidden);
	for (size_t i = 0; i < nr; i++) {
		to->locs[i] = location_of(t, &hidden[i], from, callee->module);
		if (!to->locs[i])
			return;
	}
	to->nr = nr;
}

/* Index of the chain between a call and the function of the frame above it. */
static uint32_t chain_of(struct tailframes *t, loc_id caller, func_id callee)
{
	bool is_new;
	uint32_t *idx = map_put(&t->pairs, (uint64_t)caller << 32 | callee, &is_new);
	if (is_new) {
		vec_push(&t->chains, (struct chain){0});
		*idx = (uint32_t)t->chains.n;
		struct function f = t->p->functions.p[callee];
		find_chain(t, caller, &f, vec_last(&t->chains));
	}
	return *idx - 1;
}

static void check_node(struct tailframes *t, stack_id node)
{
	const struct profile *p = t->p;
	const struct stack_node *s = &p->stacks.p[node];
	loc_id caller = p->stacks.p[s->parent].loc;
	if (!t->called[caller] || !t->own[s->loc] || t->own[s->loc] == t->called[caller])
		return; /* most nodes */
	const struct location *l = &p->locations.p[s->loc];
	func_id callee = profile_physical_frame(p, l)->func;
	const struct function *f = &p->functions.p[callee];
	if (f->flags & FUNC_GUESSED || f->module != l->module || !is_exact(t, s->loc))
		return;
	uint32_t chain = chain_of(t, caller, callee);
	if (t->chains.p[chain].nr)
		vec_push(&t->changes, (struct change){node, chain});
}

/* ---- 5. locations ------------------------------------------------------------------------- */

/* The inferred frames of a chain, callee first; 0: not all functions have names. */
static size_t frames_of(const struct profile *p, const struct chain *c,
			struct frame ret_frames[TAIL_CHAIN_MAX])
{
	for (size_t i = 0; i < c->nr; i++) {
		const struct frame *f =
			profile_physical_frame(p, &p->locations.p[c->locs[c->nr - 1 - i]]);
		if (!f || p->functions.p[f->func].flags & FUNC_GUESSED)
			return 0;
		ret_frames[i] = *f;
		ret_frames[i].is_inlined = false;
		ret_frames[i].is_inferred = true;
	}
	return c->nr;
}

static void apply(struct tailframes *t)
{
	struct profile *p = t->p;
	CLEANUP(map_release) struct map known = {0}; /* location << 32 | chain -> new location */
	vec_foreach(c, &t->changes) {
		loc_id loc = p->stacks.p[c->node].loc;
		bool is_new;
		uint32_t *to = map_put(&known, (uint64_t)loc << 32 | c->chain, &is_new);
		if (is_new) {
			struct frame frames[TAIL_CHAIN_MAX];
			size_t nr = frames_of(p, &t->chains.p[c->chain], frames);
			*to = nr ? profile_tail_location(p, loc, frames, nr) : loc;
		}
		if (*to != loc)
			profile_set_tail(p, c->node, *to);
	}
}

/* ---- the fact ----------------------------------------------------------------------------- */

/* The share of a table's weight whose stacks have inferred frames. */
static double share_of(const struct profile *p, const struct table *t, const uint8_t *has)
{
	double all = 0;
	double with = 0;
	for (size_t i = 0; i < t->n; i++) {
		double v = (double)t->values[i * t->nr_columns + t->weight_column];
		all += v;
		with += has[t->stack[i]] ? v : 0;
	}
	(void)p;
	return all > 0 ? with / all : 0;
}

static void add_fact(struct profile *p)
{
	CLEANUP(free_p) uint8_t *has = xcalloc(p->stacks.n, 1);
	CLEANUP(buf_release) struct buf text = {0};
	for (size_t i = 1; i < p->stacks.n; i++) {
		const struct stack_node *s = &p->stacks.p[i];
		has[i] = has[s->parent] || p->locations.p[s->loc].flags & LOCATION_TAIL;
	}
	vec_foreach(t, &p->tables) {
		if (table_kind(t->id)->is_on_request)
			continue;
		double share = t->weight_column < t->nr_columns ? share_of(p, t, has) : 0;
		if (share > 0)
			buf_addf(&text, "%s%.*f %% of %s", text.n ? ", " : "", share < 0.01 ? 2 : 1,
				 100 * share, profile_text(p, t->event));
	}
	if (text.n)
		profile_fact(p, FACT_TAIL_CALLS, buf_str(&text));
}

void tailframes_add(struct profile *p, const struct modules *m, struct symbolworker *sw)
{
	symbolworker_collect(sw, SYMBOLWORKER_WAIT);
	if (p->has_guessed_stacks || !p->stacks.n)
		return;
	struct tailframes t = {.p = p, .modules = m, .worker = sw};
	t.codes = xcalloc(p->modules.n, sizeof(struct tailcode *));
	t.is_tried = xcalloc(p->modules.n, sizeof(*t.is_tried));
	t.targets = xcalloc(p->locations.n, sizeof(*t.targets));
	t.called = xcalloc(p->locations.n, sizeof(*t.called));
	t.own = xcalloc(p->locations.n, sizeof(*t.own));
	t.exact = xcalloc(p->locations.n, sizeof(*t.exact));
	find_targets(&t);
	for (size_t i = 1; i < p->stacks.n; i++)
		check_node(&t, (stack_id)i);
	if (t.changes.n) {
		symbolworker_submit(sw);
		symbolworker_collect(sw, SYMBOLWORKER_WAIT);
		apply(&t);
		add_fact(p);
	}
	tailframes_release(&t);
}
