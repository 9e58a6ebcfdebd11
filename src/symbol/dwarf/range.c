/* Address ranges; see range.h. DWARF 4 section 2.17.3, DWARF 5 sections 2.17.3 and 7.25. */
#include "base/base.h"
#include "symbol/dwarf/range.h"

static uint64_t rd_addr(struct rd *r, const struct dw_unit *u)
{
	return u->addr_bytes == 8 ? rd_u64(r) : rd_u32(r);
}

static uint64_t max_addr(const struct dw_unit *u)
{
	return u->addr_bytes == 8 ? UINT64_MAX : UINT32_MAX;
}

/* DW_FORM_rnglistx is an index into the unit's offset table; its entries are relative to it. */
static bool list_offset_at(const struct dw_unit *u, uint64_t idx, uint64_t *ret_offset)
{
	uint64_t at;
	if (__builtin_mul_overflow(idx, (uint64_t)u->offset_bytes, &at) ||
	    __builtin_add_overflow(at, u->rnglists_base, &at))
		return false;
	struct rd r = dw_section_rd(u->file, DW_SEC_RNGLISTS, at);
	uint64_t offset = dw_rd_offset(&r, u->offset_bytes);
	return !r.is_bad && !__builtin_add_overflow(offset, u->rnglists_base, ret_offset);
}

static void init_list(struct dw_ranges *it, uint64_t offset, bool is_idx)
{
	const struct dw_unit *u = it->unit;
	it->base = u->has_low_pc ? u->low_pc : 0;
	it->is_list = true;
	if (u->version >= 5) {
		if (is_idx && !list_offset_at(u, offset, &offset))
			it->is_list = false;
		else
			it->r = dw_section_rd(u->file, DW_SEC_RNGLISTS, offset);
		return;
	}
	/* The list of a GNU split unit is in the executable, relative to the skeleton's base. */
	if (__builtin_add_overflow(offset, u->ranges_base, &offset))
		it->is_list = false;
	else
		it->r = dw_section_rd(u->addr_file, DW_SEC_RANGES, offset);
}

void dw_ranges_init(struct dw_ranges *it, const struct dw_unit *u, const struct dw_value *low,
		    const struct dw_value *high, const struct dw_value *ranges)
{
	*it = (struct dw_ranges){.unit = u};
	if (ranges->cls == DW_CLASS_LISTX || ranges->cls == DW_CLASS_OFFSET ||
	    ranges->cls == DW_CLASS_CONST) {
		init_list(it, ranges->u, ranges->cls == DW_CLASS_LISTX);
		return;
	}
	if (!dw_addr(u, low, &it->lo) || !high->cls)
		return;
	if (!dw_addr(u, high, &it->hi)) {
		if (high->cls != DW_CLASS_CONST || __builtin_add_overflow(it->lo, high->u, &it->hi))
			return;
	}
	it->is_single = true;
}

void dw_ranges_init_unit(struct dw_ranges *it, const struct dw_unit *u)
{
	*it = (struct dw_ranges){.unit = u};
	if (u->has_ranges) {
		init_list(it, u->ranges, u->is_ranges_idx);
		/* DW_AT_GNU_ranges_base does not apply to the skeleton's own DW_AT_ranges. */
		if (u->version < 5 && u->ranges_base && it->is_list)
			it->r = dw_section_rd(u->addr_file, DW_SEC_RANGES, u->ranges);
		return;
	}
	it->lo = u->low_pc;
	it->hi = u->high_pc;
	it->is_single = u->has_low_pc && u->has_high_pc;
}

/* Reads one entry of .debug_ranges: 1 a range, 0 skip it, -1 the end. */
static int next_v4(struct dw_ranges *it, uint64_t *lo, uint64_t *hi)
{
	*lo = rd_addr(&it->r, it->unit);
	*hi = rd_addr(&it->r, it->unit);
	if (it->r.is_bad || (!*lo && !*hi))
		return -1;
	if (*lo == max_addr(it->unit)) {
		it->base = *hi;
		return 0;
	}
	*lo += it->base;
	*hi += it->base;
	return 1;
}

static int next_v5(struct dw_ranges *it, uint64_t *lo, uint64_t *hi)
{
	const struct dw_unit *u = it->unit;
	bool is_ok = true;
	switch (rd_u8(&it->r)) {
	case DW_RLE_base_addressx:
		is_ok = dw_addr_at(u, rd_uleb(&it->r), &it->base);
		return is_ok && !it->r.is_bad ? 0 : -1;
	case DW_RLE_startx_endx:
		is_ok = dw_addr_at(u, rd_uleb(&it->r), lo);
		is_ok = dw_addr_at(u, rd_uleb(&it->r), hi) && is_ok;
		break;
	case DW_RLE_startx_length:
		is_ok = dw_addr_at(u, rd_uleb(&it->r), lo);
		*hi = *lo + rd_uleb(&it->r);
		break;
	case DW_RLE_offset_pair:
		*lo = it->base + rd_uleb(&it->r);
		*hi = it->base + rd_uleb(&it->r);
		break;
	case DW_RLE_base_address:
		it->base = rd_addr(&it->r, u);
		return it->r.is_bad ? -1 : 0;
	case DW_RLE_start_end:
		*lo = rd_addr(&it->r, u);
		*hi = rd_addr(&it->r, u);
		break;
	case DW_RLE_start_length:
		*lo = rd_addr(&it->r, u);
		*hi = *lo + rd_uleb(&it->r);
		break;
	default: /* DW_RLE_end_of_list, or damaged */
		return -1;
	}
	if (it->r.is_bad)
		return -1;
	return is_ok; /* an address index that is missing makes only this entry invalid */
}

bool dw_ranges_next(struct dw_ranges *it, uint64_t *ret_lo, uint64_t *ret_hi)
{
	if (it->is_single) {
		it->is_single = false;
		*ret_lo = it->lo;
		*ret_hi = it->hi;
		return it->lo < it->hi;
	}
	while (it->is_list) {
		uint64_t lo = 0, hi = 0;
		int r = it->unit->version >= 5 ? next_v5(it, &lo, &hi) : next_v4(it, &lo, &hi);
		it->nr_read++;
		if (r < 0)
			it->is_list = false;
		else if (r && lo < hi) {
			*ret_lo = lo;
			*ret_hi = hi;
			return true;
		}
	}
	return false;
}

void dw_aranges_init(struct dw_aranges *it, const struct dw_file *f)
{
	*it = (struct dw_aranges){.r = dw_section_rd(f, DW_SEC_ARANGES, 0)};
}

/* Goes to the next set whose tuples can be read (DWARF 5 section 6.1.2). */
static bool next_set(struct dw_aranges *it)
{
	while (rd_left(&it->r)) {
		uint8_t offset_bytes;
		const uint8_t *start = it->r.p;
		uint64_t nr_bytes = dw_rd_length(&it->r, &offset_bytes);
		it->set = rd_sub(&it->r, nr_bytes);
		unsigned version = rd_u16(&it->set);
		it->unit_offset = dw_rd_offset(&it->set, offset_bytes);
		unsigned addr_bytes = rd_u8(&it->set);
		unsigned segment_bytes = rd_u8(&it->set);
		if (it->set.is_bad)
			return false;
		if (version != 2 || addr_bytes != 8 || segment_bytes)
			continue;
		/* Tuples are aligned to their size from the start of the set. */
		size_t nr_header = (size_t)(it->set.p - start);
		rd_skip(&it->set, (16 - nr_header % 16) % 16);
		return true;
	}
	return false;
}

bool dw_aranges_next(struct dw_aranges *it, struct dw_arange *ret_range)
{
	for (;;) {
		while (rd_left(&it->set) >= 16) {
			uint64_t lo = rd_u64(&it->set);
			uint64_t nr = rd_u64(&it->set);
			if (!lo && !nr)
				break;
			*ret_range = (struct dw_arange){it->unit_offset, lo, lo + nr};
			return true;
		}
		if (!next_set(it))
			return false;
	}
}
