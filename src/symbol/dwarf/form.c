/* Decodes attribute values of all forms; see dwarf_file.h. DWARF 5 section 7.5.6. */
#include "base/base.h"
#include "symbol/dwarf/dwarf_file.h"

static uint8_t slot_from_attr(uint64_t attr)
{
	static const uint8_t slots[] = {
		[DW_AT_low_pc] = DW_SLOT_LOW_PC,
		[DW_AT_high_pc] = DW_SLOT_HIGH_PC,
		[DW_AT_ranges] = DW_SLOT_RANGES,
		[DW_AT_abstract_origin] = DW_SLOT_ORIGIN,
		[DW_AT_specification] = DW_SLOT_SPECIFICATION,
		[DW_AT_name] = DW_SLOT_NAME,
		[DW_AT_linkage_name] = DW_SLOT_LINKAGE_NAME,
		[DW_AT_call_file] = DW_SLOT_CALL_FILE,
		[DW_AT_call_line] = DW_SLOT_CALL_LINE,
		[DW_AT_stmt_list] = DW_SLOT_STMT_LIST,
		[DW_AT_comp_dir] = DW_SLOT_COMP_DIR,
		[DW_AT_dwo_name] = DW_SLOT_DWO_NAME,
		[DW_AT_addr_base] = DW_SLOT_ADDR_BASE,
		[DW_AT_str_offsets_base] = DW_SLOT_STR_OFFSETS_BASE,
		[DW_AT_rnglists_base] = DW_SLOT_RNGLISTS_BASE,
		[DW_AT_language] = DW_SLOT_LANGUAGE,
	};
	if (attr < ARRAY_LEN(slots))
		return slots[attr];
	switch (attr) {
	case DW_AT_MIPS_linkage_name:
		return DW_SLOT_LINKAGE_NAME;
	case DW_AT_GNU_dwo_name:
		return DW_SLOT_DWO_NAME;
	case DW_AT_GNU_dwo_id:
		return DW_SLOT_DWO_ID;
	case DW_AT_GNU_addr_base:
		return DW_SLOT_ADDR_BASE;
	case DW_AT_GNU_ranges_base:
		return DW_SLOT_RANGES_BASE;
	default:
		return DW_SLOT_NONE;
	}
}

int dw_spec_read(struct rd *r, struct dw_spec *ret_s)
{
	uint64_t attr = rd_uleb(r);
	uint64_t form = rd_uleb(r);
	int64_t implicit = form == DW_FORM_implicit_const ? rd_sleb(r) : 0;
	if (r->is_bad || form > UINT16_MAX)
		return -1;
	*ret_s = (struct dw_spec){
		.form = (uint16_t)form, .slot = slot_from_attr(attr), .implicit = implicit};
	return attr || form;
}

/* The size of a value: a number of bytes, or one of these. */
enum form_size {
	SIZE_UNKNOWN = 0, /* no such form */
	SIZE_FIXED_MAX = 16,
	SIZE_NONE, /* nothing is stored */
	SIZE_ADDR,
	SIZE_OFFSET,
	SIZE_REF_ADDR, /* an address up to version 2, an offset since version 3 */
	/* The size is encoded in the data. */
	SIZE_ULEB,
	SIZE_SLEB,
	SIZE_TEXT,
	SIZE_BLOCK1, /* preceded by a length of 1, 2, 4 bytes or LEB128 */
	SIZE_BLOCK2,
	SIZE_BLOCK4,
	SIZE_BLOCK,
};

struct form {
	uint8_t cls; /* enum dw_class; blocks and signatures are not used */
	uint8_t size;
};

static struct form form_of(uint64_t form)
{
	static const struct form standard[] = {
		[DW_FORM_addr] = {DW_CLASS_ADDR, SIZE_ADDR},
		[DW_FORM_addrx] = {DW_CLASS_ADDRX, SIZE_ULEB},
		[DW_FORM_addrx1] = {DW_CLASS_ADDRX, 1},
		[DW_FORM_addrx2] = {DW_CLASS_ADDRX, 2},
		[DW_FORM_addrx3] = {DW_CLASS_ADDRX, 3},
		[DW_FORM_addrx4] = {DW_CLASS_ADDRX, 4},
		[DW_FORM_data1] = {DW_CLASS_CONST, 1},
		[DW_FORM_data2] = {DW_CLASS_CONST, 2},
		[DW_FORM_data4] = {DW_CLASS_CONST, 4},
		[DW_FORM_data8] = {DW_CLASS_CONST, 8},
		[DW_FORM_data16] = {DW_CLASS_NONE, 16},
		[DW_FORM_udata] = {DW_CLASS_CONST, SIZE_ULEB},
		[DW_FORM_sdata] = {DW_CLASS_CONST, SIZE_SLEB},
		[DW_FORM_implicit_const] = {DW_CLASS_CONST, SIZE_NONE},
		[DW_FORM_flag] = {DW_CLASS_CONST, 1},
		[DW_FORM_flag_present] = {DW_CLASS_CONST, SIZE_NONE},
		[DW_FORM_string] = {DW_CLASS_TEXT, SIZE_TEXT},
		[DW_FORM_strp] = {DW_CLASS_STRP, SIZE_OFFSET},
		[DW_FORM_line_strp] = {DW_CLASS_LINE_STRP, SIZE_OFFSET},
		[DW_FORM_strx] = {DW_CLASS_STRX, SIZE_ULEB},
		[DW_FORM_strx1] = {DW_CLASS_STRX, 1},
		[DW_FORM_strx2] = {DW_CLASS_STRX, 2},
		[DW_FORM_strx3] = {DW_CLASS_STRX, 3},
		[DW_FORM_strx4] = {DW_CLASS_STRX, 4},
		[DW_FORM_strp_sup] = {DW_CLASS_STRP_ALT, SIZE_OFFSET},
		[DW_FORM_ref1] = {DW_CLASS_REF, 1},
		[DW_FORM_ref2] = {DW_CLASS_REF, 2},
		[DW_FORM_ref4] = {DW_CLASS_REF, 4},
		[DW_FORM_ref8] = {DW_CLASS_REF, 8},
		[DW_FORM_ref_udata] = {DW_CLASS_REF, SIZE_ULEB},
		[DW_FORM_ref_addr] = {DW_CLASS_REF, SIZE_REF_ADDR},
		[DW_FORM_ref_sig8] = {DW_CLASS_NONE, 8},
		[DW_FORM_ref_sup4] = {DW_CLASS_REF_ALT, 4},
		[DW_FORM_ref_sup8] = {DW_CLASS_REF_ALT, 8},
		[DW_FORM_sec_offset] = {DW_CLASS_OFFSET, SIZE_OFFSET},
		[DW_FORM_rnglistx] = {DW_CLASS_LISTX, SIZE_ULEB},
		[DW_FORM_loclistx] = {DW_CLASS_NONE, SIZE_ULEB},
		[DW_FORM_block1] = {DW_CLASS_NONE, SIZE_BLOCK1},
		[DW_FORM_block2] = {DW_CLASS_NONE, SIZE_BLOCK2},
		[DW_FORM_block4] = {DW_CLASS_NONE, SIZE_BLOCK4},
		[DW_FORM_block] = {DW_CLASS_NONE, SIZE_BLOCK},
		[DW_FORM_exprloc] = {DW_CLASS_NONE, SIZE_BLOCK},
	};
	if (LIKELY(form < ARRAY_LEN(standard)))
		return standard[form];
	switch (form) {
	case DW_FORM_GNU_addr_index:
		return (struct form){DW_CLASS_ADDRX, SIZE_ULEB};
	case DW_FORM_GNU_str_index:
		return (struct form){DW_CLASS_STRX, SIZE_ULEB};
	case DW_FORM_GNU_ref_alt:
		return (struct form){DW_CLASS_REF_ALT, SIZE_OFFSET};
	case DW_FORM_GNU_strp_alt:
		return (struct form){DW_CLASS_STRP_ALT, SIZE_OFFSET};
	default:
		return (struct form){DW_CLASS_NONE, SIZE_UNKNOWN};
	}
}

static int fixed_bytes(uint8_t size, const struct dw_unit *u)
{
	if (size > SIZE_UNKNOWN && size <= SIZE_FIXED_MAX)
		return size;
	switch (size) {
	case SIZE_NONE:
		return 0;
	case SIZE_ADDR:
		return u->addr_bytes;
	case SIZE_OFFSET:
		return u->offset_bytes;
	case SIZE_REF_ADDR:
		return u->version <= 2 ? u->addr_bytes : u->offset_bytes;
	default:
		return -1;
	}
}

int dw_form_bytes(uint64_t form, const struct dw_unit *u)
{
	return fixed_bytes(form_of(form).size, u);
}

static uint64_t rd_bytes_le(struct rd *r, unsigned n)
{
	uint64_t v = 0;
	const uint8_t *p = rd_bytes(r, n);
	if (p)
		memcpy(&v, p, n);
	return v;
}

static bool read_variable(struct rd *r, uint8_t size, struct dw_value *v)
{
	switch (size) {
	case SIZE_ULEB:
		v->u = rd_uleb(r);
		break;
	case SIZE_SLEB:
		v->u = (uint64_t)rd_sleb(r);
		break;
	case SIZE_TEXT:
		v->text = rd_cstr(r);
		break;
	case SIZE_BLOCK1:
		rd_skip(r, rd_u8(r));
		break;
	case SIZE_BLOCK2:
		rd_skip(r, rd_u16(r));
		break;
	case SIZE_BLOCK4:
		rd_skip(r, rd_u32(r));
		break;
	case SIZE_BLOCK:
		rd_skip(r, rd_uleb(r));
		break;
	default:
		r->is_bad = true;
	}
	return !r->is_bad;
}

bool dw_form_read(struct rd *r, const struct dw_unit *u, const struct dw_spec *s,
		  struct dw_value *ret_v)
{
	uint64_t form = s->form;
	if (UNLIKELY(form == DW_FORM_indirect)) {
		form = rd_uleb(r);
		if (form == DW_FORM_indirect || form == DW_FORM_implicit_const)
			r->is_bad = true;
		if (r->is_bad)
			return false;
	}
	struct form f = form_of(form);
	struct dw_value v = {.cls = f.cls};
	int n = fixed_bytes(f.size, u);
	if (form == DW_FORM_implicit_const)
		v.u = (uint64_t)s->implicit;
	else if (form == DW_FORM_flag_present)
		v.u = 1;
	else if (n > 8)
		rd_skip(r, (size_t)n);
	else if (n > 0)
		v.u = rd_bytes_le(r, (unsigned)n);
	else if (!read_variable(r, f.size, &v))
		return false;
	/* References are relative to the unit's header, except DW_FORM_ref_addr. */
	if (v.cls == DW_CLASS_REF && form != DW_FORM_ref_addr &&
	    __builtin_add_overflow(v.u, u->offset, &v.u))
		v.cls = DW_CLASS_NONE;
	*ret_v = v;
	return !r->is_bad;
}

bool dw_form_skip(struct rd *r, const struct dw_unit *u, uint64_t form)
{
	if (form == DW_FORM_indirect)
		form = rd_uleb(r);
	struct form f = form_of(form);
	int n = fixed_bytes(f.size, u);
	struct dw_value v;
	if (n < 0)
		return read_variable(r, f.size, &v);
	rd_skip(r, (size_t)n);
	return !r->is_bad;
}

static struct sv text_at(struct sv section, uint64_t offset)
{
	if (offset >= section.n)
		return sv_from("", 0);
	struct rd r = rd_from(section.p + offset, section.n - offset);
	return rd_cstr(&r);
}

struct sv dw_text(const struct dw_unit *u, const struct dw_value *v)
{
	const struct dw_file *f = u->file;
	switch (v->cls) {
	case DW_CLASS_TEXT:
		return v->text;
	case DW_CLASS_STRP:
		return text_at(f->sec[DW_SEC_STR], v->u);
	case DW_CLASS_LINE_STRP:
		return text_at(f->sec[DW_SEC_LINE_STR], v->u);
	case DW_CLASS_STRP_ALT:
		return f->alt ? text_at(f->alt->sec[DW_SEC_STR], v->u) : sv_from("", 0);
	case DW_CLASS_STRX: {
		uint64_t at;
		if (__builtin_mul_overflow(v->u, (uint64_t)u->offset_bytes, &at) ||
		    __builtin_add_overflow(at, u->str_offsets_base, &at))
			return sv_from("", 0);
		struct rd r = dw_section_rd(f, DW_SEC_STR_OFFSETS, at);
		uint64_t offset = dw_rd_offset(&r, u->offset_bytes);
		return r.is_bad ? sv_from("", 0) : text_at(f->sec[DW_SEC_STR], offset);
	}
	default:
		return sv_from("", 0);
	}
}

bool dw_addr_at(const struct dw_unit *u, uint64_t idx, uint64_t *ret_addr)
{
	uint64_t at;
	if (__builtin_mul_overflow(idx, (uint64_t)u->addr_bytes, &at) ||
	    __builtin_add_overflow(at, u->addr_base, &at))
		return false;
	struct rd r = dw_section_rd(u->addr_file, DW_SEC_ADDR, at);
	uint64_t addr = rd_bytes_le(&r, u->addr_bytes);
	if (r.is_bad)
		return false;
	*ret_addr = addr;
	return true;
}

bool dw_addr(const struct dw_unit *u, const struct dw_value *v, uint64_t *ret_addr)
{
	if (v->cls == DW_CLASS_ADDRX)
		return dw_addr_at(u, v->u, ret_addr);
	if (v->cls != DW_CLASS_ADDR)
		return false;
	*ret_addr = v->u;
	return true;
}
