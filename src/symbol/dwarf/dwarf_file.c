/* Sections, unit headers and unit DIEs; see dwarf_file.h. */
#include "base/base.h"
#include "symbol/dwarf/dwarf_file.h"

#define TOP_SPECS_MAX 64 /* attributes of a unit DIE; compilers write fewer than twenty */

static const char *const section_names[DW_SEC_NR] = {
	[DW_SEC_INFO] = ".debug_info",         [DW_SEC_ABBREV] = ".debug_abbrev",
	[DW_SEC_STR] = ".debug_str",           [DW_SEC_LINE] = ".debug_line",
	[DW_SEC_LINE_STR] = ".debug_line_str", [DW_SEC_STR_OFFSETS] = ".debug_str_offsets",
	[DW_SEC_ADDR] = ".debug_addr",         [DW_SEC_RANGES] = ".debug_ranges",
	[DW_SEC_RNGLISTS] = ".debug_rnglists", [DW_SEC_ARANGES] = ".debug_aranges",
};

static const char *const dwo_section_names[DW_SEC_NR] = {
	[DW_SEC_INFO] = ".debug_info.dwo",
	[DW_SEC_ABBREV] = ".debug_abbrev.dwo",
	[DW_SEC_STR] = ".debug_str.dwo",
	[DW_SEC_LINE] = ".debug_line.dwo",
	[DW_SEC_STR_OFFSETS] = ".debug_str_offsets.dwo",
	[DW_SEC_RNGLISTS] = ".debug_rnglists.dwo",
};

int dw_file_load(struct dw_file *f, struct elf *e, bool is_dwo, struct err *err)
{
	const char *const *names = is_dwo ? dwo_section_names : section_names;
	f->is_dwo = is_dwo;
	for (int i = 0; i < DW_SEC_NR; i++) {
		if (!names[i])
			continue;
		int r = elf_named_bytes(e, names[i], &f->sec[i], err);
		if (r < 0 && i <= DW_SEC_ABBREV)
			return err_wrap(err, "reading '%s'", names[i]);
		if (r < 0) { /* without one of the other sections there are still results */
			f->sec[i] = sv_from("", 0);
			err_release(err);
		}
	}
	return 0;
}

void dw_file_release(struct dw_file *f)
{
	vec_release(&f->units);
}

struct rd dw_section_rd(const struct dw_file *f, enum dw_section s, uint64_t offset)
{
	struct sv bytes = f->sec[s];
	struct rd r = rd_from(bytes.p ? bytes.p : "", bytes.n);
	if (offset > bytes.n) {
		r.is_bad = true;
		r.p = r.end;
	} else {
		r.p += offset;
	}
	return r;
}

struct rd dw_unit_rd(const struct dw_unit *u, uint64_t offset)
{
	const uint8_t *info = (const uint8_t *)u->file->sec[DW_SEC_INFO].p;
	struct rd r = rd_from(info + u->die_offset, u->end - u->die_offset);
	if (offset < u->die_offset || offset > u->end) {
		r.is_bad = true;
		r.p = r.end;
	} else {
		r.p = info + offset;
	}
	return r;
}

uint64_t dw_rd_offset(struct rd *r, unsigned offset_bytes)
{
	return offset_bytes == 8 ? rd_u64(r) : rd_u32(r);
}

uint64_t dw_rd_length(struct rd *r, uint8_t *ret_offset_bytes)
{
	uint64_t n = rd_u32(r);
	*ret_offset_bytes = n == 0xffffffff ? 8 : 4;
	return n == 0xffffffff ? rd_u64(r) : n;
}

/* Returns the index of the first unit that ends after the offset. */
static const struct dw_unit *first_unit_behind(const struct dw_file *f, uint64_t offset)
{
	size_t i = upper_bound(f->units.p, f->units.n, end, offset);
	return i < f->units.n ? &f->units.p[i] : NULL;
}

const struct dw_unit *dw_unit_at(const struct dw_file *f, uint64_t offset)
{
	const struct dw_unit *u = first_unit_behind(f, offset);
	if (u && u->die_offset <= offset)
		return u;
	if (f->is_unit_missing)
		atomic_store_explicit(f->is_unit_missing, true, memory_order_relaxed);
	return NULL;
}

const struct dw_unit *dw_unit_from_header(const struct dw_file *f, uint64_t offset)
{
	const struct dw_unit *u = first_unit_behind(f, offset);
	return u && u->offset == offset ? u : NULL;
}

/*
 * Reads the abbreviation of a unit DIE directly from the section. It is nearly always the first one
 * of its table, so the rest of the table need not be parsed. Returns the number of specs or -1.
 */
static int find_abbrev(const struct dw_unit *u, uint64_t code, struct dw_spec *specs,
		       struct dw_unit *ret)
{
	struct rd r = dw_section_rd(u->file, DW_SEC_ABBREV, u->abbrev_offset);
	for (;;) {
		uint64_t c = rd_uleb(&r);
		if (!c || r.is_bad)
			return -1;
		uint64_t tag = rd_uleb(&r);
		uint8_t has_children = rd_u8(&r);
		int nr = 0, more;
		struct dw_spec spec;
		while ((more = dw_spec_read(&r, &spec)) > 0) {
			if (nr == TOP_SPECS_MAX)
				return -1;
			specs[nr++] = spec;
		}
		if (more < 0)
			return -1;
		if (c == code) {
			ret->tag = (uint16_t)MIN(tag, UINT16_MAX);
			ret->has_children = has_children;
			return nr;
		}
	}
}

static void take_offset(const struct dw_attrs *a, enum dw_slot slot, uint64_t *to)
{
	if (a->v[slot].cls == DW_CLASS_OFFSET || a->v[slot].cls == DW_CLASS_CONST)
		*to = a->v[slot].u;
}

/* Sets the bases first: other attributes are resolved through them. */
static void take_top(struct dw_unit *u, const struct dw_attrs *a)
{
	take_offset(a, DW_SLOT_ADDR_BASE, &u->addr_base);
	take_offset(a, DW_SLOT_STR_OFFSETS_BASE, &u->str_offsets_base);
	take_offset(a, DW_SLOT_RNGLISTS_BASE, &u->rnglists_base);
	take_offset(a, DW_SLOT_RANGES_BASE, &u->ranges_base);
	take_offset(a, DW_SLOT_STMT_LIST, &u->stmt_list);
	take_offset(a, DW_SLOT_DWO_ID, &u->dwo_id);
	if (a->v[DW_SLOT_LANGUAGE].cls == DW_CLASS_CONST)
		u->language = (uint16_t)a->v[DW_SLOT_LANGUAGE].u;
	if (a->v[DW_SLOT_COMP_DIR].cls)
		u->comp_dir = dw_text(u, &a->v[DW_SLOT_COMP_DIR]);
	if (a->v[DW_SLOT_DWO_NAME].cls)
		u->dwo_name = dw_text(u, &a->v[DW_SLOT_DWO_NAME]);

	u->has_low_pc = dw_addr(u, &a->v[DW_SLOT_LOW_PC], &u->low_pc);
	const struct dw_value *high = &a->v[DW_SLOT_HIGH_PC];
	u->has_high_pc = high->cls && u->has_low_pc;
	if (u->has_high_pc && !dw_addr(u, high, &u->high_pc))
		u->high_pc = u->low_pc + high->u;
	const struct dw_value *ranges = &a->v[DW_SLOT_RANGES];
	u->has_ranges = ranges->cls != DW_CLASS_NONE;
	u->is_ranges_idx = ranges->cls == DW_CLASS_LISTX;
	u->ranges = ranges->u;
}

bool dw_unit_read_top(struct dw_unit *u)
{
	struct dw_spec specs[TOP_SPECS_MAX];
	struct rd r = dw_unit_rd(u, u->die_offset);
	uint64_t code = rd_uleb(&r);
	if (!code || r.is_bad)
		return false;
	int nr = find_abbrev(u, code, specs, u);
	if (nr < 0)
		return false;
	struct dw_attrs a;
	memset(&a, 0, sizeof(a));
	for (int i = 0; i < nr; i++) {
		struct dw_value v;
		if (!dw_form_read(&r, u, &specs[i], &v))
			return false;
		if (specs[i].slot)
			a.v[specs[i].slot] = v;
	}
	take_top(u, &a);
	return true;
}

/* DWARF 5 section 7.5.1; before version 5 the abbreviation offset preceded the address size. */
static bool read_header(struct rd *r, struct dw_unit *u)
{
	unsigned version = rd_u16(r);
	if (version < 2 || version > 5)
		return false;
	u->version = (uint8_t)version;
	u->type = DW_UT_compile;
	if (u->version == 5) {
		u->type = rd_u8(r);
		u->addr_bytes = rd_u8(r);
		u->abbrev_offset = dw_rd_offset(r, u->offset_bytes);
		if (u->type == DW_UT_skeleton || u->type == DW_UT_split_compile)
			u->dwo_id = rd_u64(r);
	} else {
		u->abbrev_offset = dw_rd_offset(r, u->offset_bytes);
		u->addr_bytes = rd_u8(r);
	}
	return !r->is_bad && (u->addr_bytes == 8 || u->addr_bytes == 4);
}

static bool is_type_unit(const struct dw_unit *u)
{
	return u->type == DW_UT_type || u->type == DW_UT_split_type;
}

/* Computes the end of the unit at u->offset; false if it is invalid. */
static bool read_extent(struct dw_unit *u, struct rd *ret_body)
{
	struct rd r = dw_section_rd(u->file, DW_SEC_INFO, u->offset);
	const uint8_t *start = r.p - u->offset;
	uint64_t nr_bytes = dw_rd_length(&r, &u->offset_bytes);
	if (r.is_bad || nr_bytes > rd_left(&r))
		return false;
	*ret_body = rd_sub(&r, nr_bytes);
	u->end = (uint64_t)(r.p - start);
	return true;
}

/* Reads the header after the unit's length, up to the unit DIE. */
static bool read_body(struct rd *body, struct dw_unit *u)
{
	if (!read_header(body, u))
		return false;
	u->die_offset = u->end - rd_left(body);
	if (u->version == 5) { /* of a .dwo, which has no DW_AT_*_base */
		u->str_offsets_base = u->offset_bytes == 8 ? 16 : 8;
		u->rnglists_base = u->offset_bytes == 8 ? 20 : 12;
		u->addr_base = 8;
	}
	return true;
}

static struct dw_unit unit_from(const struct dw_file *f, uint64_t offset)
{
	return (struct dw_unit){
		.file = f, .addr_file = f, .stmt_list = DW_NO_OFFSET, .offset = offset};
}

bool dw_unit_read_header(struct dw_unit *ret_u, const struct dw_file *f, uint64_t offset)
{
	struct rd body;
	struct dw_unit u = unit_from(f, offset);
	if (!read_extent(&u, &body) || !read_body(&body, &u))
		return false;
	*ret_u = u;
	return true;
}

void dw_file_index(struct dw_file *f)
{
	for (uint64_t at = 0; at < f->sec[DW_SEC_INFO].n && f->units.n < DW_NR_UNITS_MAX;) {
		struct rd body;
		struct dw_unit u = unit_from(f, at);
		if (!read_extent(&u, &body)) {
			f->nr_units_bad++;
			return;
		}
		at = u.end;
		if (!rd_left(&body)) /* padding between units */
			continue;
		if (!read_body(&body, &u)) {
			f->nr_units_bad++;
			continue;
		}
		if (is_type_unit(&u))
			continue;
		if (!dw_unit_read_top(&u)) {
			f->nr_units_bad++;
			continue;
		}
		vec_push(&f->units, u);
	}
}
