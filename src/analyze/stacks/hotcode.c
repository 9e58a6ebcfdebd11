/* Weights of single instructions; see hotcode.h. */
#include "base/base.h"
#include "analyze/stacks/hotcode.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/vec.h"

bool hotcode_is_insn(const struct profile *p, const struct location *loc)
{
	return !(loc->flags & LOCATION_CALL) && profile_physical_frame(p, loc) &&
	       p->modules.p[loc->module].kind != MODULE_NAMED &&
	       p->modules.p[loc->module].kind != MODULE_PSEUDO;
}

static bool is_of_insn(const struct selection *sel, const struct select_row *row)
{
	const struct profile *p = sel->p;
	return !row->synth_leaf && row->stack &&
	       hotcode_is_insn(p, &p->locations.p[p->stacks.p[row->stack].loc]);
}

struct at {
	func_id func;
	struct hot_place place;
};

static int by_place(const void *x, const void *y)
{
	const struct at *a = x;
	const struct at *b = y;
	return COMPARE(a->func, b->func) ?: COMPARE(a->place.offset, b->place.offset);
}

static int by_weight(const void *x, const void *y)
{
	const struct hot_function *a = x;
	const struct hot_function *b = y;
	return COMPARE(b->self.weight, a->self.weight) ?: COMPARE(a->func, b->func);
}

/* Adds up by location, since rows have far more stacks than leaves. */
static struct weight *weigh_leaves(struct arena *a, const struct selection *sel)
{
	const struct profile *p = sel->p;
	struct weight *by_loc = arena_calloc(a, p->locations.n, sizeof(*by_loc));
	for (size_t i = 0; i < sel->nr_rows; i++)
		if (is_of_insn(sel, &sel->rows[i]))
			weight_add_row(&by_loc[p->stacks.p[sel->rows[i].stack].loc], sel, i);
	return by_loc;
}

static void add_place(struct arena *a, struct hot_function *f, const struct at *at, size_t left)
{
	if (!f->nr_places)
		f->places = arena_alloc(a, left * sizeof(*f->places));
	weight_add(&f->self, &at->place.self);
	if (f->nr_places && f->places[f->nr_places - 1].offset == at->place.offset)
		weight_add(&f->places[f->nr_places - 1].self, &at->place.self);
	else
		f->places[f->nr_places++] = at->place;
}

size_t hotcode_find(struct arena *a, const struct selection *sel, struct hot_function **ret_f)
{
	CLEANUP(arena_release) struct arena scratch = {0};
	const struct profile *p = sel->p;
	const struct weight *by_loc = weigh_leaves(&scratch, sel);
	struct at *list = arena_calloc(&scratch, p->locations.n, sizeof(*list));
	size_t n = 0;
	for (loc_id l = 1; l < p->locations.n; l++) {
		const struct location *loc = &p->locations.p[l];
		if (by_loc[l].weight)
			list[n++] = (struct at){profile_physical_frame(p, loc)->func,
						{loc->offset, l, by_loc[l]}};
	}
	if (n)
		qsort(list, n, sizeof(*list), by_place);
	struct hot_function *f = arena_calloc(a, n, sizeof(*f));
	size_t nr = 0;
	for (size_t i = 0; i < n; i++) {
		size_t end = i;
		while (end < n && list[end].func == list[i].func)
			end++;
		f[nr] = (struct hot_function){.func = list[i].func,
					      .module = p->locations.p[list[i].place.loc].module};
		for (; i < end; i++)
			add_place(a, &f[nr], &list[i], end - i);
		i--;
		nr++;
	}
	if (nr)
		qsort(f, nr, sizeof(*f), by_weight);
	*ret_f = f;
	return nr;
}

struct code_function *hotcode_read(struct arena *a, const struct profile *p,
				   const struct code_access *code, const struct hot_function *f,
				   size_t n)
{
	struct code_function *out = arena_calloc(a, n, sizeof(*out));
	for (size_t i = 0; i < n; i++) {
		uint64_t *offsets = arena_calloc(a, f[i].nr_places, sizeof(*offsets));
		for (size_t k = 0; k < f[i].nr_places; k++)
			offsets[k] = f[i].places[k].offset;
		out[i] = (struct code_function){.module = f[i].module,
						.offsets = offsets,
						.nr_offsets = f[i].nr_places,
						.missing = "binaries are not opened here"};
	}
	if (n && code && code->read)
		code->read(code->ctx, a, p, out, n);
	return out;
}
