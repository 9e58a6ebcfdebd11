/* Maps addresses to units; see index.h. */
#include "base/base.h"
#include "symbol/dwarf/index.h"

#include <stdlib.h>

#include "symbol/dwarf/range.h"
#include "symbol/dwarf/scan.h"

#define ACTIVE_MAX 64 /* maximum number of pieces that overlap at one address */

void dw_index_release(struct dw_index *x)
{
	vec_release(&x->pieces);
}

struct adder {
	struct dw_index *x;
	uint64_t min_vaddr;
	uint64_t budget;
	uint32_t unit;
	uint32_t nr_added;
};

static void add_piece(void *ctx, uint64_t lo, uint64_t hi)
{
	struct adder *a = ctx;
	if (lo >= hi || lo < a->min_vaddr || !a->budget)
		return;
	a->budget--;
	a->nr_added++;
	/* Merge adjacent pieces of one unit. */
	struct dw_piece *last = a->x->pieces.n ? vec_last(&a->x->pieces) : NULL;
	if (last && last->unit == a->unit && last->hi == lo)
		last->hi = hi;
	else
		vec_push(&a->x->pieces, (struct dw_piece){lo, hi, a->unit});
}

static void add_aranges(struct adder *a, const struct dw_file *f, const bool *has_no_ranges,
			bool *has_aranges)
{
	struct dw_aranges it;
	struct dw_arange range;
	const struct dw_unit *u = NULL;
	dw_aranges_init(&it, f);
	while (dw_aranges_next(&it, &range)) {
		if (!u || u->offset != range.unit_offset)
			u = dw_unit_from_header(f, range.unit_offset);
		if (!u || !has_no_ranges[u - f->units.p])
			continue;
		a->unit = (uint32_t)(u - f->units.p);
		has_aranges[a->unit] = true;
		add_piece(a, range.lo, range.hi);
	}
}

static int by_lo(const void *pa, const void *pb)
{
	const struct dw_piece *a = pa, *b = pb;
	if (a->lo != b->lo)
		return a->lo < b->lo ? -1 : 1;
	if (a->unit != b->unit)
		return a->unit < b->unit ? -1 : 1;
	return a->hi < b->hi ? -1 : a->hi > b->hi;
}

/* Adds units that may have code but give no ranges. */
static void add_units_without_ranges(struct adder *a, const struct dw_file *f,
				     const bool *has_no_ranges, struct dw_abbrev_cache *abbrevs)
{
	bool *has_aranges = xcalloc(f->units.n + 1, sizeof(*has_aranges));
	add_aranges(a, f, has_no_ranges, has_aranges);
	for (size_t i = 0; i < f->units.n; i++) {
		if (!has_no_ranges[i] || has_aranges[i])
			continue;
		const struct dw_unit *u = &f->units.p[i];
		CLEANUP(dw_abbrevs_put_p) struct dw_abbrevs *t = dw_abbrevs_get(abbrevs, u);
		a->unit = (uint32_t)i;
		if (t)
			dw_scan_functions(u, t, add_piece, a);
	}
	free(has_aranges);
}

void dw_index_build(struct dw_index *x, const struct dw_file *f, struct dw_abbrev_cache *abbrevs,
		    uint64_t min_vaddr)
{
	struct adder a = {.x = x, .min_vaddr = min_vaddr};
	a.budget = f->units.n + f->sec[DW_SEC_RANGES].n + f->sec[DW_SEC_RNGLISTS].n +
		   f->sec[DW_SEC_ARANGES].n + f->sec[DW_SEC_INFO].n;
	bool *has_no_ranges = xcalloc(f->units.n + 1, sizeof(*has_no_ranges));
	size_t nr_silent = 0;

	for (size_t i = 0; i < f->units.n; i++) {
		const struct dw_unit *u = &f->units.p[i];
		struct dw_ranges it;
		uint64_t lo, hi;
		a.unit = (uint32_t)i;
		dw_ranges_init_unit(&it, u);
		bool has_ranges = it.is_single || it.is_list;
		while (it.nr_read < a.budget && dw_ranges_next(&it, &lo, &hi))
			add_piece(&a, lo, hi);
		a.budget -= MIN(it.nr_read, a.budget);
		has_no_ranges[i] = !has_ranges && u->has_children && u->tag != DW_TAG_partial_unit;
		nr_silent += has_no_ranges[i];
	}
	if (nr_silent)
		add_units_without_ranges(&a, f, has_no_ranges, abbrevs);
	free(has_no_ranges);
	if (x->pieces.n)
		qsort(x->pieces.p, x->pieces.n, sizeof(*x->pieces.p), by_lo);
}

struct active {
	uint32_t pieces[ACTIVE_MAX];
	size_t n;
};

/* Removes pieces that ended before @addr and adds those that have begun; the newest are kept. */
static size_t update_active(const struct dw_index *x, struct active *act, size_t next,
			    uint64_t addr)
{
	size_t kept = 0;
	for (size_t i = 0; i < act->n; i++) {
		if (x->pieces.p[act->pieces[i]].hi > addr)
			act->pieces[kept++] = act->pieces[i];
	}
	act->n = kept;
	for (; next < x->pieces.n && x->pieces.p[next].lo <= addr; next++) {
		if (x->pieces.p[next].hi <= addr)
			continue;
		if (act->n == ACTIVE_MAX)
			memmove(act->pieces, act->pieces + 1, --act->n * sizeof(*act->pieces));
		act->pieces[act->n++] = (uint32_t)next;
	}
	return next;
}

void dw_index_find(const struct dw_index *x, const uint64_t *vaddrs, size_t nr, dw_hits *hits)
{
	struct active act = {.n = 0};
	size_t next = 0;
	for (size_t q = 0; q < nr; q++) {
		next = update_active(x, &act, next, vaddrs[q]);
		size_t first = hits->n;
		/* First the piece that began last: in practice it is the narrowest. */
		for (size_t i = act.n; i-- > 0 && hits->n - first < DW_CANDIDATES_MAX;) {
			struct dw_hit hit = {x->pieces.p[act.pieces[i]].unit, (uint32_t)q};
			bool is_known = false;
			for (size_t k = first; k < hits->n; k++)
				is_known |= hits->p[k].unit == hit.unit;
			if (!is_known)
				vec_push(hits, hit);
		}
	}
}
