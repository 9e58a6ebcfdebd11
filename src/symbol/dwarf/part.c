/* A part of the debug information; see part.h. */
#include "base/base.h"
#include "symbol/dwarf/part.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"
#include "object/elfstream.h"
#include "symbol/dwarf/range.h"

#define HEADER_BYTES      32 /* of a unit, at most */
#define ABBREV_STEP_BYTES 4096

/* A section that is loaded in part. */
struct partial {
	struct elf_stream *stream;
	uint8_t *bytes;
	uint64_t nr;
};

struct loader {
	struct dw_part *part;
	struct dw_file *file;
	struct elf *elf;
	const struct dw_part_query *query;
	VEC(uint64_t) offsets; /* of units, then of abbreviations, then of line tables */
	struct partial info, abbrev, line;
};

bool dw_part_is_possible(const struct elf *e)
{
	static const char *const wanted[] = {".debug_info", ".debug_abbrev", ".debug_aranges"};
	/* What other files or units have a say in. */
	static const char *const unwanted[] = {".gnu_debugaltlink", ".debug_sup", ".debug_addr",
					       ".debug_str_offsets"};
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
		if (!elf_debug_section(e, wanted[i]))
			return false;
	for (size_t i = 0; i < ARRAY_LEN(unwanted); i++)
		if (elf_debug_section(e, unwanted[i]))
			return false;
	return !elf_is_relocatable(e);
}

void dw_part_release(struct dw_part *p)
{
	vec_foreach(m, &p->memory)
		free(*m);
	vec_release(&p->memory);
	*p = (struct dw_part){0};
}

/* ---- sections ---- */

static bool partial_open(struct loader *l, struct partial *s, enum dw_section sec, const char *name)
{
	const struct elf_section *at = elf_debug_section(l->elf, name);
	if (!at)
		return true; /* it stays empty */
	if (elf_stream_open(&s->stream, l->elf, at, NULL))
		return false;
	s->nr = elf_stream_nr_bytes(s->stream);
	s->bytes = xcalloc(1, s->nr + 1); /* large: pages that come when they are written */
	vec_push(&l->part->memory, s->bytes);
	l->file->sec[sec] = sv_from((const char *)s->bytes, s->nr);
	return true;
}

/* Loads [from, end). Pieces come in ascending order of their starts; they may overlap. */
static bool fill(struct partial *s, uint64_t from, uint64_t end)
{
	if (!s->stream || end > s->nr)
		return false;
	from = MAX(from, elf_stream_at(s->stream));
	return from >= end ||
	       !elf_stream_read(s->stream, s->bytes + from, (size_t)(end - from), from, NULL);
}

static void sort_offsets(struct loader *l)
{
	size_t nr = 0;
	sort_records(l->offsets.p, l->offsets.n, sizeof(*l->offsets.p), UINT64_MAX);
	for (size_t i = 0; i < l->offsets.n; i++)
		if (!nr || l->offsets.p[nr - 1] != l->offsets.p[i])
			l->offsets.p[nr++] = l->offsets.p[i];
	l->offsets.n = nr;
}

/* ---- units ---- */

/* Linkers make these; no unit describes them. */
static bool is_in_plt(const struct elf *e, uint64_t vaddr)
{
	size_t nr;
	const struct elf_section *s = elf_sections(e, &nr);
	for (size_t i = 0; i < nr; i++)
		if (vaddr >= s[i].vaddr && vaddr - s[i].vaddr < s[i].nr_mem_bytes &&
		    sv_has_prefix(s[i].name, SV(".plt")))
			return true;
	return false;
}

/* Lists the units of the addresses. False: some address is in none. */
static bool find_units(struct loader *l)
{
	const struct dw_part_query *w = l->query;
	bool *is_covered CLEANUP(free_p) = xcalloc(w->nr_vaddrs + 1, sizeof(*is_covered));
	struct dw_aranges it;
	struct dw_arange range;
	dw_aranges_init(&it, l->file);
	while (dw_aranges_next(&it, &range)) {
		if (range.lo < w->min_vaddr || range.hi <= range.lo)
			continue;
		size_t lo = u64_lower_bound(w->vaddrs, w->nr_vaddrs, range.lo);
		if (lo < w->nr_vaddrs && w->vaddrs[lo] < range.hi)
			vec_push(&l->offsets, range.unit_offset);
		for (; lo < w->nr_vaddrs && w->vaddrs[lo] < range.hi; lo++)
			is_covered[lo] = true;
	}
	for (size_t i = 0; i < w->nr_vaddrs; i++) {
		l->part->nr_covered += is_covered[i];
		if (!is_covered[i] && !is_in_plt(l->elf, w->vaddrs[i]))
			return false;
	}
	return true;
}

static bool load_units(struct loader *l)
{
	sort_offsets(l);
	vec_foreach(offset, &l->offsets) {
		struct dw_unit u;
		uint64_t nr_left = l->info.nr - MIN(*offset, l->info.nr);
		if (!fill(&l->info, *offset, *offset + MIN(nr_left, HEADER_BYTES)) ||
		    !dw_unit_read_header(&u, l->file, *offset) || !fill(&l->info, *offset, u.end))
			return false;
		bool is_behind = !l->file->units.n || vec_last(&l->file->units)->end <= u.offset;
		if (!is_behind || u.type != DW_UT_compile || u.addr_bytes != 8)
			return false;
		vec_push(&l->file->units, u);
	}
	return true;
}

/* ---- abbreviations, tops, lines ---- */

/* Whether a table's end is within these bytes (DWARF 5 section 7.5.3). */
static bool has_table_end(const uint8_t *p, uint64_t n)
{
	struct rd r = rd_from(p, n);
	struct dw_spec spec;
	int more = 0;
	while (!more && rd_uleb(&r)) {
		(void)rd_uleb(&r); /* tag */
		(void)rd_u8(&r);
		while ((more = dw_spec_read(&r, &spec)) > 0)
			;
	}
	return !r.is_bad;
}

static bool load_abbrevs(struct loader *l)
{
	vec_clear(&l->offsets);
	vec_foreach(u, &l->file->units)
		vec_push(&l->offsets, u->abbrev_offset);
	sort_offsets(l);
	vec_foreach(offset, &l->offsets) {
		uint64_t nr_left = l->abbrev.nr - MIN(*offset, l->abbrev.nr);
		for (uint64_t n = ABBREV_STEP_BYTES;; n *= 2) {
			n = MIN(n, nr_left);
			if (!fill(&l->abbrev, *offset, *offset + n))
				return false;
			if (n == nr_left || has_table_end(l->abbrev.bytes + *offset, n))
				break;
		}
	}
	return true;
}

static bool read_tops(struct loader *l)
{
	vec_foreach(u, &l->file->units)
		if (!dw_unit_read_top(u) || u->dwo_name.n || u->tag != DW_TAG_compile_unit)
			return false;
	return true;
}

static bool load_lines(struct loader *l)
{
	vec_clear(&l->offsets);
	vec_foreach(u, &l->file->units)
		if (u->stmt_list < l->line.nr)
			vec_push(&l->offsets, u->stmt_list);
	sort_offsets(l);
	vec_foreach(offset, &l->offsets) {
		uint64_t nr_left = l->line.nr - *offset;
		if (!fill(&l->line, *offset, *offset + MIN(nr_left, 12)))
			return false;
		struct rd r = dw_section_rd(l->file, DW_SEC_LINE, *offset);
		uint8_t offset_bytes;
		uint64_t nr_bytes = MIN(dw_rd_length(&r, &offset_bytes), nr_left);
		uint64_t nr_head = offset_bytes == 8 ? 12 : 4;
		if (r.is_bad ||
		    !fill(&l->line, *offset, *offset + MIN(nr_left, nr_head + nr_bytes)))
			return false;
	}
	return true;
}

/* ---- all together ---- */

/* The sections that are small, or that anything may point into. */
static bool load_whole_sections(struct loader *l)
{
	static const struct {
		enum dw_section sec;
		const char *name;
	} whole[] = {
		{DW_SEC_ARANGES, ".debug_aranges"},   {DW_SEC_STR, ".debug_str"},
		{DW_SEC_LINE_STR, ".debug_line_str"}, {DW_SEC_RANGES, ".debug_ranges"},
		{DW_SEC_RNGLISTS, ".debug_rnglists"},
	};
	for (size_t i = 0; i < ARRAY_LEN(whole); i++) {
		if (elf_named_bytes(l->elf, whole[i].name, &l->file->sec[whole[i].sec], NULL))
			return false;
		if (!i && !find_units(l)) /* by the aranges; without them the rest is no use */
			return false;
	}
	return true;
}

static bool load(struct loader *l)
{
	return load_whole_sections(l) && partial_open(l, &l->info, DW_SEC_INFO, ".debug_info") &&
	       partial_open(l, &l->abbrev, DW_SEC_ABBREV, ".debug_abbrev") &&
	       partial_open(l, &l->line, DW_SEC_LINE, ".debug_line") && load_units(l) &&
	       load_abbrevs(l) && read_tops(l) && (!l->query->has_lines || load_lines(l));
}

bool dw_part_load(struct dw_part *p, struct dw_file *f, struct elf *e,
		  const struct dw_part_query *query)
{
	struct loader l = {.part = p, .file = f, .elf = e, .query = query};
	bool is_loaded = load(&l);
	elf_stream_free(l.info.stream);
	elf_stream_free(l.abbrev.stream);
	elf_stream_free(l.line.stream);
	vec_release(&l.offsets);
	if (is_loaded) {
		f->is_unit_missing = &p->is_unit_missing;
		return true;
	}
	dw_file_release(f);
	*f = (struct dw_file){0};
	return false;
}
