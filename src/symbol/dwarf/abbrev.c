/* Abbreviation tables; see abbrev.h. DWARF 5 section 7.5.3. */
#include "base/base.h"
#include "symbol/dwarf/abbrev.h"

#include "base/hash.h"

static void abbrevs_free(struct dw_abbrevs *t)
{
	vec_release(&t->codes);
	vec_release(&t->abbrevs);
	vec_release(&t->specs);
	vec_release(&t->skips);
	free(t);
}

void dw_abbrevs_put_p(struct dw_abbrevs **t)
{
	if (*t && !--(*t)->nr_refs)
		abbrevs_free(*t);
	*t = NULL;
}

void dw_abbrev_cache_release(struct dw_abbrev_cache *c)
{
	for (size_t i = 0; i < DW_ABBREV_SLOTS; i++)
		dw_abbrevs_put_p(&c->slots[i]);
}

static bool is_scope_tag(uint64_t tag)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_interface_type:
	case DW_TAG_subprogram:
		return true;
	default:
		return false;
	}
}

static void add_skip(struct dw_abbrevs *t, struct dw_abbrev *a, uint16_t form, int nr_bytes)
{
	if (nr_bytes < 0) {
		vec_push(&t->skips, (struct dw_skip){.form = form});
		a->nr_skips++;
		return;
	}
	struct dw_skip *last = a->nr_skips ? vec_last(&t->skips) : NULL;
	if (last && !last->form && last->nr_bytes + nr_bytes < DW_ABBREV_VARIABLE) {
		last->nr_bytes = (uint16_t)(last->nr_bytes + nr_bytes);
		return;
	}
	vec_push(&t->skips, (struct dw_skip){.nr_bytes = (uint16_t)nr_bytes});
	a->nr_skips++;
}

static void classify(struct dw_abbrev *a, uint64_t tag, unsigned has_slots)
{
	bool has_code = has_slots & (1u << DW_SLOT_LOW_PC | 1u << DW_SLOT_RANGES);
	a->is_scope = is_scope_tag(tag);
	if (tag == DW_TAG_subprogram && has_code)
		a->kind = DW_KIND_SUBPROGRAM;
	else if (tag == DW_TAG_inlined_subroutine && has_code)
		a->kind = DW_KIND_INLINED;
}

static bool read_abbrev(struct dw_abbrevs *t, struct rd *r, const struct dw_unit *u)
{
	struct dw_abbrev a = {.first_spec = (uint32_t)t->specs.n,
			      .first_skip = (uint32_t)t->skips.n};
	uint64_t tag = rd_uleb(r);
	a.tag = (uint16_t)MIN(tag, UINT16_MAX);
	a.has_children = rd_u8(r);
	unsigned has_slots = 0;
	struct dw_spec s;
	int more;
	while ((more = dw_spec_read(r, &s)) > 0) {
		if (a.nr_specs == UINT16_MAX)
			return false;
		has_slots |= 1u << s.slot;
		vec_push(&t->specs, s);
		a.nr_specs++;
		add_skip(t, &a, s.form, dw_form_bytes(s.form, u));
	}
	if (more < 0)
		return false;
	a.fixed_bytes = DW_ABBREV_VARIABLE;
	if (!a.nr_skips)
		a.fixed_bytes = 0;
	else if (a.nr_skips == 1 && !vec_last(&t->skips)->form)
		a.fixed_bytes = vec_last(&t->skips)->nr_bytes;
	classify(&a, tag, has_slots);
	vec_push(&t->abbrevs, a);
	return true;
}

/* Codes out of order: insertion sort, which is fast for nearly sorted input. */
static bool sort_codes(struct dw_abbrevs *t)
{
	if (t->codes.n > 100000)
		return false;
	for (size_t i = 1; i < t->codes.n; i++) {
		uint64_t code = t->codes.p[i];
		struct dw_abbrev a = t->abbrevs.p[i];
		/* After equal ones, so that the first of them is found. */
		size_t lo = code < UINT64_MAX ? u64_lower_bound(t->codes.p, i, code + 1) : i;
		memmove(&t->codes.p[lo + 1], &t->codes.p[lo], (i - lo) * sizeof(code));
		memmove(&t->abbrevs.p[lo + 1], &t->abbrevs.p[lo], (i - lo) * sizeof(a));
		t->codes.p[lo] = code;
		t->abbrevs.p[lo] = a;
	}
	return true;
}

static struct dw_abbrevs *abbrevs_new(const struct dw_unit *u)
{
	struct dw_abbrevs *t = xcalloc(1, sizeof(*t));
	struct rd r = dw_section_rd(u->file, DW_SEC_ABBREV, u->abbrev_offset);
	t->nr_refs = 1;
	t->is_dense = true;
	for (;;) {
		uint64_t code = rd_uleb(&r);
		if (!code || r.is_bad) /* a table truncated by the section's end is used as it is */
			break;
		if (!t->codes.n)
			t->first_code = code;
		else if (code != t->first_code + t->codes.n)
			t->is_dense = false;
		if (!read_abbrev(t, &r, u))
			break;
		vec_push(&t->codes, code);
	}
	if (!t->codes.n || (!t->is_dense && !sort_codes(t))) {
		abbrevs_free(t);
		return NULL;
	}
	return t;
}

struct dw_abbrevs *dw_abbrevs_get(struct dw_abbrev_cache *c, const struct dw_unit *u)
{
	uint64_t rest = (uint64_t)u->file->number << 24 | (uint64_t)(u->version <= 2) << 16 |
			(uint64_t)u->addr_bytes << 8 | u->offset_bytes;
	size_t slot = hash_mix(u->abbrev_offset, rest) % DW_ABBREV_SLOTS;
	struct dw_abbrevs *t = c->slots[slot];
	if (!t || t->key_offset != u->abbrev_offset || t->key_rest != rest) {
		t = c->budget_bytes ? abbrevs_new(u) : NULL;
		if (!t)
			return NULL;
		c->budget_bytes -= MIN(c->budget_bytes, 2 * t->specs.n + 5 * t->abbrevs.n);
		t->key_offset = u->abbrev_offset;
		t->key_rest = rest;
		dw_abbrevs_put_p(&c->slots[slot]);
		c->slots[slot] = t;
	}
	t->nr_refs++;
	return t;
}

const struct dw_abbrev *dw_abbrev_find_slow(const struct dw_abbrevs *t, uint64_t code)
{
	if (t->is_dense)
		return NULL;
	size_t lo = u64_lower_bound(t->codes.p, t->codes.n, code);
	return lo < t->codes.n && t->codes.p[lo] == code ? &t->abbrevs.p[lo] : NULL;
}

bool dw_abbrev_skip_slow(const struct dw_abbrevs *t, const struct dw_abbrev *a, struct rd *r,
			 const struct dw_unit *u)
{
	const struct dw_skip *s = &t->skips.p[a->first_skip];
	for (unsigned i = 0; i < a->nr_skips; i++, s++) {
		if (!s->form)
			rd_skip(r, s->nr_bytes);
		else
			dw_form_skip(r, u, s->form);
	}
	return !r->is_bad;
}

bool dw_attrs_read(const struct dw_abbrevs *t, const struct dw_abbrev *a, struct rd *r,
		   const struct dw_unit *u, struct dw_attrs *ret_a)
{
	for (int i = 0; i < DW_SLOT_NR; i++)
		ret_a->v[i].cls = DW_CLASS_NONE;
	const struct dw_spec *s = &t->specs.p[a->first_spec];
	for (unsigned i = 0; i < a->nr_specs; i++, s++) {
		if (!s->slot) {
			if (!dw_form_skip(r, u, s->form))
				return false;
		} else if (!dw_form_read(r, u, s, &ret_a->v[s->slot])) {
			return false;
		}
	}
	return true;
}
