/*
 * .eh_frame and .debug_frame entries.
 *
 *	length u32 (0xffffffff: u64 follows) | id | body
 *	.eh_frame     id is always 4 bytes: 0 = CIE, else FDE: distance back to its CIE
 *	.debug_frame  id has the offset size: ~0 = CIE, else FDE: section offset of its CIE
 */
#include "base/base.h"
#include "object/ehframe.h"

enum {
	PE_ABSPTR = 0x00,
	PE_ULEB128 = 0x01,
	PE_UDATA2 = 0x02,
	PE_UDATA4 = 0x03,
	PE_UDATA8 = 0x04,
	PE_SLEB128 = 0x09,
	PE_SDATA2 = 0x0a,
	PE_SDATA4 = 0x0b,
	PE_SDATA8 = 0x0c,
	PE_FORMAT_MASK = 0x0f,
	PE_PCREL = 0x10,
	PE_ALIGNED = 0x50,
	PE_BASE_MASK = 0x70,
	PE_INDIRECT = 0x80,
	PE_OMIT = 0xff,
};

/* A CIE's initial instructions take about ten bytes. They are run for each FDE, so hostile ones
 * must be limited. */
#define CIE_PROGRAM_MAX 1024

struct entry {
	uint64_t offset; /* of the length field */
	uint64_t next;
	uint64_t id;
	uint64_t id_offset;
	bool is_cie;
	struct rd body; /* after the id */
};

static struct rd section_rd(const struct ehframe_section *s, uint64_t offset)
{
	return (struct rd){s->p + offset, s->p + s->n, false};
}

/* Reads an entry's header. False at the section's end or where the rest cannot be parsed. After a
 * zero length only 'next' is set. */
static bool entry_read(const struct ehframe_section *s, uint64_t offset, struct entry *e)
{
	if (offset >= s->n || s->n - offset < 4)
		return false;

	struct rd r = section_rd(s, offset);
	uint64_t length = rd_u32(&r);
	bool is_64 = length == 0xffffffff;
	if (is_64)
		length = rd_u64(&r);
	if (r.is_bad || length > rd_left(&r))
		return false;

	e->offset = offset;
	e->next = (uint64_t)(r.p - s->p) + length;
	e->body = rd_sub(&r, length);
	e->id_offset = (uint64_t)(e->body.p - s->p);
	if (!length)
		return true;

	bool is_wide_id = is_64 && s->is_debug_frame;
	e->id = is_wide_id ? rd_u64(&e->body) : rd_u32(&e->body);
	if (s->is_debug_frame)
		e->is_cie = e->id == (is_wide_id ? UINT64_MAX : 0xffffffff);
	else
		e->is_cie = e->id == 0;
	return true;
}

static uint64_t pointer_align(struct rd *r, const struct ehframe_section *s, uint64_t nr_bytes)
{
	uint64_t vaddr = s->vaddr + (uint64_t)(r->p - s->p);
	uint64_t pad = (0 - vaddr) & (nr_bytes - 1);
	rd_skip(r, pad);
	return nr_bytes == 4 ? rd_u32(r) : rd_u64(r);
}

/* Reads an encoded pointer. DW_EH_PE_pcrel is relative to the address of the field itself. */
static bool pointer_read(struct rd *r, const struct ehframe_section *s, uint8_t encoding,
			 uint8_t address_bytes, uint64_t *ret_v)
{
	uint64_t at = s->vaddr + (uint64_t)(r->p - s->p);
	uint64_t v = 0;

	if (encoding == PE_ALIGNED) {
		*ret_v = pointer_align(r, s, address_bytes);
		return !r->is_bad;
	}
	switch (encoding & PE_FORMAT_MASK) {
	case PE_ABSPTR:
		v = address_bytes == 4 ? rd_u32(r) : rd_u64(r);
		break;
	case PE_ULEB128:
		v = rd_uleb(r);
		break;
	case PE_UDATA2:
		v = rd_u16(r);
		break;
	case PE_UDATA4:
		v = rd_u32(r);
		break;
	case PE_UDATA8:
	case PE_SDATA8:
		v = rd_u64(r);
		break;
	case PE_SLEB128:
		v = (uint64_t)rd_sleb(r);
		break;
	case PE_SDATA2:
		v = (uint64_t)rd_i16(r);
		break;
	case PE_SDATA4:
		v = (uint64_t)rd_i32(r);
		break;
	default:
		return false;
	}
	switch (encoding & PE_BASE_MASK) {
	case 0:
		break;
	case PE_PCREL:
		v += at;
		break;
	default:
		return false;
	}
	*ret_v = v;
	return !r->is_bad && !(encoding & PE_INDIRECT);
}

/*
 * Parses the letters of a 'z' augmentation; from an unknown letter on, its length skips the rest.
 */
static bool augmentation_read(struct ehframe_cie *c, const struct ehframe_section *s,
			      struct sv letters, struct rd *data)
{
	for (size_t i = 1; i < letters.n; i++) {
		uint64_t ignored;
		uint8_t encoding;
		switch (letters.p[i]) {
		case 'R':
			c->pointer_encoding = rd_u8(data);
			break;
		case 'L':
			c->lsda_encoding = rd_u8(data);
			break;
		case 'P':
			encoding = rd_u8(data);
			if (encoding == PE_OMIT)
				break;
			/* The address is not used, but has to be skipped in any encoding. */
			encoding = encoding == PE_ALIGNED ? encoding : encoding & PE_FORMAT_MASK;
			if (!pointer_read(data, s, encoding, c->address_bytes, &ignored))
				return false;
			break;
		case 'S':
			c->is_signal_frame = true;
			break;
		case 'B': /* arm64: return addresses are signed with the B key */
		case 'G': /* arm64: memory tagging of the stack */
			break;
		default:
			return true;
		}
	}
	return !data->is_bad;
}

static bool cie_parse(const struct ehframe_section *s, const struct entry *e,
		      struct ehframe_cie *ret_cie)
{
	struct rd r = e->body;
	struct ehframe_cie c = {.offset = e->offset, .lsda_encoding = PE_OMIT, .address_bytes = 8};

	uint8_t version = rd_u8(&r);
	struct sv letters = rd_cstr(&r);
	if (r.is_bad || (version != 1 && version != 3 && version != 4))
		return false;
	if (sv_eq_str(letters, "eh")) { /* gcc 2: a pointer to exception data */
		rd_skip(&r, 8);
		letters = sv_from("", 0);
	}
	if (letters.n && letters.p[0] != 'z')
		return false;
	if (version == 4) {
		c.address_bytes = rd_u8(&r);
		c.segment_bytes = rd_u8(&r);
		if ((c.address_bytes != 4 && c.address_bytes != 8) || c.segment_bytes > 8)
			return false;
	}
	c.code_align = rd_uleb(&r);
	c.data_align = rd_sleb(&r);
	c.ra_column = version == 1 ? rd_u8(&r) : rd_uleb(&r);
	if (letters.n) {
		c.has_augmentation = true;
		struct rd data = rd_sub(&r, rd_uleb(&r));
		if (!augmentation_read(&c, s, letters, &data))
			return false;
	}
	if (r.is_bad || rd_left(&r) > CIE_PROGRAM_MAX)
		return false;
	c.program = r;
	*ret_cie = c;
	return true;
}

/* Gets the offset of an FDE's CIE; false if it is invalid. */
static bool fde_cie_offset(const struct ehframe_section *s, const struct entry *e,
			   uint64_t *ret_offset)
{
	if (s->is_debug_frame) {
		*ret_offset = e->id;
		return e->id < s->n;
	}
	*ret_offset = e->id_offset - e->id;
	return e->id <= e->id_offset;
}

static bool fde_parse(const struct ehframe_section *s, const struct entry *e,
		      const struct ehframe_cie *cie, struct ehframe_fde *ret_fde)
{
	struct rd r = e->body;
	uint64_t start, nr_bytes;

	rd_skip(&r, cie->segment_bytes);
	if (!pointer_read(&r, s, cie->pointer_encoding, cie->address_bytes, &start))
		return false;
	/* The length has the format of the address, but is not relative to anything. */
	uint8_t range_encoding = cie->pointer_encoding == PE_ALIGNED
					 ? PE_ABSPTR
					 : cie->pointer_encoding & PE_FORMAT_MASK;
	if (!pointer_read(&r, s, range_encoding, cie->address_bytes, &nr_bytes))
		return false;
	if (cie->has_augmentation)
		rd_skip(&r, rd_uleb(&r));
	if (r.is_bad || start + nr_bytes < start)
		return false;
	ret_fde->start = start;
	ret_fde->end = start + nr_bytes;
	ret_fde->offset = e->offset;
	ret_fde->cie = cie;
	ret_fde->program = r;
	return true;
}

static const struct ehframe_cie *iter_cie(struct ehframe_iter *it, const struct entry *e)
{
	uint64_t offset;
	if (!fde_cie_offset(&it->section, e, &offset))
		return NULL;

	size_t slot = (offset ^ offset >> 5) / 4 % EHFRAME_NR_CIES;
	if (LIKELY(it->cie_keys[slot] == offset + 1))
		return &it->cies[slot];

	struct entry cie_entry = {0};
	if (!entry_read(&it->section, offset, &cie_entry) || !cie_entry.is_cie)
		return NULL;
	it->cie_keys[slot] = 0;
	if (!cie_parse(&it->section, &cie_entry, &it->cies[slot]))
		return NULL;
	it->cie_keys[slot] = offset + 1;
	return &it->cies[slot];
}

void ehframe_start(struct ehframe_iter *it, const struct ehframe_section *s)
{
	memset(it, 0, sizeof(*it));
	it->section = *s;
}

bool ehframe_start_elf(struct ehframe_iter *it, struct elf *e, const char *section)
{
	const struct elf_section *s = elf_section(e, section);
	struct sv bytes;
	if (!s || elf_section_bytes(e, s, &bytes, NULL))
		return false;
	ehframe_start(it, &(struct ehframe_section){.p = (const uint8_t *)bytes.p,
						    .n = bytes.n,
						    .vaddr = s->vaddr,
						    .is_debug_frame =
							    !strcmp(section, ".debug_frame")});
	return true;
}

bool ehframe_next(struct ehframe_iter *it, struct ehframe_fde *ret_fde)
{
	for (;;) {
		struct entry e = {0};
		if (!entry_read(&it->section, it->offset, &e)) {
			it->nr_bad += it->offset < it->section.n;
			it->offset = it->section.n;
			return false;
		}
		it->offset = e.next;
		if (e.body.is_bad) {
			it->nr_bad++;
			continue;
		}
		if (e.id_offset == e.next) { /* a terminator; that of crtend may be in the middle */
			if (it->section.is_terminated)
				it->offset = it->section.n;
			continue;
		}
		if (e.is_cie)
			continue;

		const struct ehframe_cie *cie = iter_cie(it, &e);
		if (cie && fde_parse(&it->section, &e, cie, ret_fde))
			return true;
		it->nr_bad++;
	}
}

bool ehframe_fde_at(const struct ehframe_section *s, uint64_t offset, struct ehframe_fde *ret_fde,
		    struct ehframe_cie *ret_cie)
{
	struct entry e = {0}, cie_entry = {0};
	uint64_t cie_offset;

	if (!entry_read(s, offset, &e) || e.is_cie || e.body.is_bad || e.id_offset == e.next)
		return false;
	return fde_cie_offset(s, &e, &cie_offset) && entry_read(s, cie_offset, &cie_entry) &&
	       cie_entry.is_cie && cie_parse(s, &cie_entry, ret_cie) &&
	       fde_parse(s, &e, ret_cie, ret_fde);
}

bool ehframe_hdr_to_vaddr(struct sv hdr, uint64_t vaddr, uint64_t *ret_vaddr)
{
	struct ehframe_section s = {.p = (const uint8_t *)hdr.p, .n = hdr.n, .vaddr = vaddr};
	struct rd r = section_rd(&s, 0);

	uint8_t version = rd_u8(&r);
	uint8_t encoding = rd_u8(&r);
	rd_skip(&r, 2); /* encodings of the count and of the table; both are not read */
	return version == 1 && encoding != PE_OMIT && pointer_read(&r, &s, encoding, 8, ret_vaddr);
}
