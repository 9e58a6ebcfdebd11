/* The pass over a unit's DIEs; see scan.h. */
#include "base/base.h"
#include "symbol/dwarf/scan.h"

#include "symbol/dwarf/dwarf.h"
#include "symbol/dwarf/range.h"

void dw_scan_release(struct dw_scan *s)
{
	vec_release(&s->nodes);
	vec_release(&s->open);
}

/*
 * Assigns the addresses in the DIE's ranges to the node that will be added next. Returns whether
 * there were any; *ret_start is the start of the DIE's code.
 */
static bool assign_addresses(struct dw_scan *s, const struct dw_attrs *a, uint64_t *ret_start)
{
	struct dw_ranges it;
	uint64_t lo, hi;
	uint32_t node = (uint32_t)s->nodes.n;
	bool has_hit = false, has_start = false;

	dw_ranges_init(&it, s->unit, &a->v[DW_SLOT_LOW_PC], &a->v[DW_SLOT_HIGH_PC],
		       &a->v[DW_SLOT_RANGES]);
	while (it.nr_read < s->range_budget && dw_ranges_next(&it, &lo, &hi)) {
		if (lo < s->min_vaddr)
			continue;
		if (!has_start)
			*ret_start = lo;
		has_start = true;
		if (hi <= s->vaddrs[0] || lo > s->vaddrs[s->nr_vaddrs - 1])
			continue;
		size_t i = u64_lower_bound(s->vaddrs, s->nr_vaddrs, lo);
		for (; i < s->nr_vaddrs && s->vaddrs[i] < hi; i++) {
			s->leaves[i] = node;
			has_hit = true;
		}
	}
	s->range_budget -= MIN(it.nr_read, s->range_budget);
	return has_hit;
}

/*
 * Returns the DIE where the search for the name starts: this one if named, else the referenced one.
 */
static struct dw_ref name_ref(const struct dw_attrs *a, uint64_t die_offset)
{
	if (!a->v[DW_SLOT_LINKAGE_NAME].cls && !a->v[DW_SLOT_NAME].cls) {
		const struct dw_value *v = &a->v[DW_SLOT_ORIGIN];
		if (!v->cls)
			v = &a->v[DW_SLOT_SPECIFICATION];
		if (v->cls == DW_CLASS_REF || v->cls == DW_CLASS_REF_ALT)
			return (struct dw_ref){v->u, v->cls == DW_CLASS_REF_ALT};
	}
	return (struct dw_ref){die_offset, false};
}

static uint32_t const_u32(const struct dw_value *v)
{
	return v->cls == DW_CLASS_CONST ? (uint32_t)MIN(v->u, UINT32_MAX) : 0;
}

/*
 * Reads a DIE with code, assigns addresses to it, and opens its node if it has children and hits.
 */
static bool visit(struct dw_scan *s, const struct dw_abbrev *a, struct rd *r, uint64_t die_offset,
		  uint32_t depth)
{
	struct dw_attrs attrs;
	if (!dw_attrs_read(s->abbrevs, a, r, s->unit, &attrs))
		return false;
	uint64_t start = 0;
	if (s->nodes.n >= DW_NO_NODE || !assign_addresses(s, &attrs, &start))
		return true;
	struct dw_node node = {
		.name_at = name_ref(&attrs, die_offset),
		.parent = DW_NO_NODE,
		.call_file = const_u32(&attrs.v[DW_SLOT_CALL_FILE]),
		.call_line = const_u32(&attrs.v[DW_SLOT_CALL_LINE]),
		.is_inlined = a->kind == DW_KIND_INLINED,
		.func_start = start,
	};
	if (node.is_inlined)
		node.parent = vec_last(&s->open)->node;
	struct dw_open_node open = {(uint32_t)s->nodes.n, depth};
	vec_push(&s->nodes, node);
	if (a->has_children)
		vec_push(&s->open, open);
	return true;
}

bool dw_scan_run(struct dw_scan *s)
{
	const struct dw_unit *u = s->unit;
	const struct dw_abbrevs *t = s->abbrevs;
	const uint8_t *info = (const uint8_t *)u->file->sec[DW_SEC_INFO].p;
	struct rd r = dw_unit_rd(u, u->die_offset);
	bool has_inlines = !(s->flags & DWARF_NO_INLINES);
	uint32_t depth = 0;

	for (size_t i = 0; i < s->nr_vaddrs; i++)
		s->leaves[i] = DW_NO_NODE;
	vec_clear(&s->nodes);
	vec_clear(&s->open);
	if (!s->nr_vaddrs)
		return true;
	s->range_budget = 4 * (u->end - u->offset) + 16 * s->nr_vaddrs + 65536;

	while (r.p < r.end) {
		uint64_t die_offset = (uint64_t)(r.p - info);
		uint64_t code = rd_uleb(&r);
		if (!code) {
			if (depth <= 1)
				break;
			depth--;
			while (s->open.n && vec_last(&s->open)->depth >= depth)
				s->open.n--;
			continue;
		}
		const struct dw_abbrev *a = dw_abbrev_find(t, code);
		if (UNLIKELY(!a))
			return false;
		bool is_ok;
		if (a->kind == DW_KIND_SUBPROGRAM ||
		    (a->kind == DW_KIND_INLINED && s->open.n && has_inlines))
			is_ok = visit(s, a, &r, die_offset, depth);
		else
			is_ok = dw_abbrev_skip(t, a, &r, u);
		if (UNLIKELY(!is_ok))
			return false;
		if (a->has_children)
			depth++;
		else if (UNLIKELY(!depth))
			break; /* a unit DIE without children */
	}
	return !r.is_bad;
}

bool dw_scan_functions(const struct dw_unit *u, const struct dw_abbrevs *t, dw_range_fn fn,
		       void *ctx)
{
	struct rd r = dw_unit_rd(u, u->die_offset);
	uint64_t budget = 4 * (u->end - u->offset) + 65536;

	while (r.p < r.end) {
		uint64_t code = rd_uleb(&r);
		if (!code)
			continue;
		const struct dw_abbrev *a = dw_abbrev_find(t, code);
		if (!a)
			return false;
		if (a->kind != DW_KIND_SUBPROGRAM) {
			if (!dw_abbrev_skip(t, a, &r, u))
				return false;
			continue;
		}
		struct dw_attrs attrs;
		if (!dw_attrs_read(t, a, &r, u, &attrs))
			return false;
		struct dw_ranges it;
		uint64_t lo, hi;
		dw_ranges_init(&it, u, &attrs.v[DW_SLOT_LOW_PC], &attrs.v[DW_SLOT_HIGH_PC],
			       &attrs.v[DW_SLOT_RANGES]);
		while (it.nr_read < budget && dw_ranges_next(&it, &lo, &hi))
			fn(ctx, lo, hi);
		budget -= MIN(it.nr_read, budget);
	}
	return !r.is_bad;
}
