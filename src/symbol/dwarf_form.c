/* Attribute values of every form; see dwarf_file.h. DWARF 5 section 7.5.6. */
#include "base/base.h"
#include "symbol/dwarf_file.h"

uint8_t dw_slot_from_attr(uint64_t attr)
{
	switch (attr) {
	case DW_AT_low_pc:
		return DW_SLOT_LOW_PC;
	case DW_AT_high_pc:
		return DW_SLOT_HIGH_PC;
	case DW_AT_ranges:
		return DW_SLOT_RANGES;
	case DW_AT_abstract_origin:
		return DW_SLOT_ORIGIN;
	case DW_AT_specification:
		return DW_SLOT_SPECIFICATION;
	case DW_AT_name:
		return DW_SLOT_NAME;
	case DW_AT_linkage_name:
	case DW_AT_MIPS_linkage_name:
		return DW_SLOT_LINKAGE_NAME;
	case DW_AT_call_file:
		return DW_SLOT_CALL_FILE;
	case DW_AT_call_line:
		return DW_SLOT_CALL_LINE;
	case DW_AT_stmt_list:
		return DW_SLOT_STMT_LIST;
	case DW_AT_comp_dir:
		return DW_SLOT_COMP_DIR;
	case DW_AT_dwo_name:
	case DW_AT_GNU_dwo_name:
		return DW_SLOT_DWO_NAME;
	case DW_AT_GNU_dwo_id:
		return DW_SLOT_DWO_ID;
	case DW_AT_addr_base:
	case DW_AT_GNU_addr_base:
		return DW_SLOT_ADDR_BASE;
	case DW_AT_str_offsets_base:
		return DW_SLOT_STR_OFFSETS_BASE;
	case DW_AT_rnglists_base:
		return DW_SLOT_RNGLISTS_BASE;
	case DW_AT_GNU_ranges_base:
		return DW_SLOT_RANGES_BASE;
	case DW_AT_language:
		return DW_SLOT_LANGUAGE;
	default:
		return DW_SLOT_NONE;
	}
}

int dw_form_bytes(uint64_t form, unsigned version, unsigned addr_bytes, unsigned offset_bytes)
{
	switch (form) {
	case DW_FORM_implicit_const:
	case DW_FORM_flag_present:
		return 0;
	case DW_FORM_data1:
	case DW_FORM_ref1:
	case DW_FORM_flag:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		return 1;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		return 2;
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		return 3;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
	case DW_FORM_ref_sup4:
		return 4;
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8:
		return 8;
	case DW_FORM_data16:
		return 16;
	case DW_FORM_addr:
		return (int)addr_bytes;
	case DW_FORM_ref_addr:
		return (int)(version <= 2 ? addr_bytes : offset_bytes);
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_strp_sup:
	case DW_FORM_sec_offset:
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt:
		return (int)offset_bytes;
	default:
		return -1;
	}
}

static uint64_t rd_bytes_le(struct rd *r, unsigned n)
{
	uint64_t v = 0;
	const uint8_t *p = rd_bytes(r, n);
	if (p)
		memcpy(&v, p, n);
	return v;
}

/* What a form's number means; the forms of blocks and signatures carry nothing for us. */
static uint8_t class_of(uint64_t form)
{
	switch (form) {
	case DW_FORM_addr:
		return DW_CLASS_ADDR;
	case DW_FORM_addrx:
	case DW_FORM_addrx1:
	case DW_FORM_addrx2:
	case DW_FORM_addrx3:
	case DW_FORM_addrx4:
	case DW_FORM_GNU_addr_index:
		return DW_CLASS_ADDRX;
	case DW_FORM_data1:
	case DW_FORM_data2:
	case DW_FORM_data4:
	case DW_FORM_data8:
	case DW_FORM_udata:
	case DW_FORM_sdata:
	case DW_FORM_implicit_const:
	case DW_FORM_flag:
	case DW_FORM_flag_present:
		return DW_CLASS_CONST;
	case DW_FORM_string:
		return DW_CLASS_TEXT;
	case DW_FORM_strp:
		return DW_CLASS_STRP;
	case DW_FORM_line_strp:
		return DW_CLASS_LINE_STRP;
	case DW_FORM_strx:
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
	case DW_FORM_GNU_str_index:
		return DW_CLASS_STRX;
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_strp_alt:
		return DW_CLASS_STRP_ALT;
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata:
	case DW_FORM_ref_addr:
		return DW_CLASS_REF;
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_ref_sup4:
	case DW_FORM_ref_sup8:
		return DW_CLASS_REF_ALT;
	case DW_FORM_sec_offset:
		return DW_CLASS_OFFSET;
	case DW_FORM_rnglistx:
		return DW_CLASS_LISTX;
	default:
		return DW_CLASS_NONE;
	}
}

/* The forms whose size their bytes tell. */
static bool read_variable(struct rd *r, uint64_t form, struct dw_value *v)
{
	switch (form) {
	case DW_FORM_string:
		v->text = rd_cstr(r);
		return !r->is_bad;
	case DW_FORM_sdata:
		v->u = (uint64_t)rd_sleb(r);
		return !r->is_bad;
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_rnglistx:
	case DW_FORM_loclistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		v->u = rd_uleb(r);
		return !r->is_bad;
	case DW_FORM_block1:
		rd_skip(r, rd_u8(r));
		return !r->is_bad;
	case DW_FORM_block2:
		rd_skip(r, rd_u16(r));
		return !r->is_bad;
	case DW_FORM_block4:
		rd_skip(r, rd_u32(r));
		return !r->is_bad;
	case DW_FORM_block:
	case DW_FORM_exprloc:
		rd_skip(r, rd_uleb(r));
		return !r->is_bad;
	default:
		r->is_bad = true;
		return false;
	}
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
	struct dw_value v = {.cls = class_of(form)};
	int n = dw_form_bytes(form, u->version, u->addr_bytes, u->offset_bytes);
	if (form == DW_FORM_implicit_const)
		v.u = (uint64_t)s->implicit;
	else if (form == DW_FORM_flag_present)
		v.u = 1;
	else if (n > 8)
		rd_skip(r, (size_t)n);
	else if (n > 0)
		v.u = rd_bytes_le(r, (unsigned)n);
	else if (!read_variable(r, form, &v))
		return false;
	/* References are given from the unit's header, but for DW_FORM_ref_addr. */
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
	int n = dw_form_bytes(form, u->version, u->addr_bytes, u->offset_bytes);
	if (n >= 0) {
		rd_skip(r, (size_t)n);
		return !r->is_bad;
	}
	struct dw_value v;
	return read_variable(r, form, &v);
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
