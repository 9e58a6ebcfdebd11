/* Split units; see split.h. DWARF 5 section 7.3; gcc.gnu.org/wiki/DebugFission(DWP). */
#include "base/base.h"
#include "symbol/dwarf/split.h"

#include "base/buf.h"
#include "base/mem.h"

/* Columns of an index: section numbers of version 5, and of GNU version 2 (which has 1-8 too,
 * of which 5 is .debug_loc and 7, 8 are macros). */
enum {
	SECT_INFO = 1,
	SECT_ABBREV = 3,
	SECT_LINE = 4,
	SECT_STR_OFFSETS = 6,
	SECT_RNGLISTS = 8,
	COLUMNS_MAX = 16,
};

void dw_package_release(struct dw_package *p)
{
	dw_file_release(&p->file);
	elf_free_p(&p->elf);
}

void dw_package_open(struct dw_package *p, const char *path, const struct debug_search *search)
{
	CLEANUP(buf_release) struct buf name = {0};
	buf_addf(&name, "%s.dwp", path);
	CLEANUP(elf_free_p) struct elf *e = debugfile_open(NULL, buf_str(&name), search);
	if (!e)
		return;
	if (dw_file_load(&p->file, e, true, NULL) < 0 ||
	    elf_named_bytes(e, ".debug_cu_index", &p->index, NULL) < 0 || !p->index.n)
		return;
	p->elf = TAKE(e);
}

struct package_index {
	unsigned version;
	uint32_t nr_columns;
	uint32_t nr_units;
	uint32_t nr_slots;
	struct rd hashes;
	struct rd rows;
	struct rd columns;
	struct rd offsets;
	struct rd sizes;
};

static bool parse_index(struct package_index *x, struct sv bytes)
{
	struct rd r = rd_from(bytes.p, bytes.n);
	uint32_t version = rd_u32(&r); /* version 5: 16 bits and 16 of padding */
	x->version = version & 0xffff;
	if (x->version != 5 && version != 2)
		return false;
	x->nr_columns = rd_u32(&r);
	x->nr_units = rd_u32(&r);
	x->nr_slots = rd_u32(&r);
	if (r.is_bad || !x->nr_slots || (x->nr_slots & (x->nr_slots - 1)) || !x->nr_columns ||
	    x->nr_columns > COLUMNS_MAX || x->nr_slots > bytes.n / 12 || x->nr_units > bytes.n / 8)
		return false;
	x->hashes = rd_sub(&r, (size_t)x->nr_slots * 8);
	x->rows = rd_sub(&r, (size_t)x->nr_slots * 4);
	x->columns = rd_sub(&r, (size_t)x->nr_columns * 4);
	x->offsets = rd_sub(&r, (size_t)x->nr_units * x->nr_columns * 4);
	x->sizes = rd_sub(&r, (size_t)x->nr_units * x->nr_columns * 4);
	return !r.is_bad;
}

static uint32_t u32_at(struct rd r, size_t idx)
{
	rd_skip(&r, idx * 4);
	return rd_u32(&r);
}

static uint64_t u64_at(struct rd r, size_t idx)
{
	rd_skip(&r, idx * 8);
	return rd_u64(&r);
}

/* Returns the row of a unit, from 0, or -1. */
static int64_t find_row(const struct package_index *x, uint64_t id)
{
	uint64_t mask = x->nr_slots - 1;
	uint64_t slot = id & mask;
	uint64_t step = ((id >> 32) & mask) | 1;
	for (uint32_t i = 0; i < x->nr_slots; i++) {
		uint64_t hash = u64_at(x->hashes, slot);
		uint32_t row = u32_at(x->rows, slot);
		if (hash == id && row && row <= x->nr_units)
			return row - 1;
		if (!hash && !row)
			return -1;
		slot = (slot + step) & mask;
	}
	return -1;
}

static int section_of(uint32_t column, unsigned version)
{
	switch (column) {
	case SECT_INFO:
		return DW_SEC_INFO;
	case SECT_ABBREV:
		return DW_SEC_ABBREV;
	case SECT_LINE:
		return DW_SEC_LINE;
	case SECT_STR_OFFSETS:
		return DW_SEC_STR_OFFSETS;
	case SECT_RNGLISTS: /* version 2: macros */
		return version == 5 ? DW_SEC_RNGLISTS : -1;
	default:
		return -1;
	}
}

/* Fills a file with the contribution's parts of the package's sections. */
static bool open_contribution(struct dw_file *f, const struct dw_package *p, uint64_t id)
{
	struct package_index x;
	if (!parse_index(&x, p->index))
		return false;
	int64_t row = find_row(&x, id);
	if (row < 0)
		return false;
	f->sec[DW_SEC_STR] = p->file.sec[DW_SEC_STR];
	for (uint32_t c = 0; c < x.nr_columns; c++) {
		int sec = section_of(u32_at(x.columns, c), x.version);
		if (sec < 0)
			continue;
		struct sv whole = p->file.sec[sec];
		uint64_t offset = u32_at(x.offsets, (size_t)row * x.nr_columns + c);
		uint64_t nr_bytes = u32_at(x.sizes, (size_t)row * x.nr_columns + c);
		if (offset > whole.n || nr_bytes > whole.n - offset)
			return false;
		f->sec[sec] = sv_from(whole.p + offset, nr_bytes);
	}
	return true;
}

/*
 * Finds the unit of the id and sets the skeleton's bases; the only unit of a file may lack an id.
 */
static bool find_unit(struct dw_split *s, const struct dw_unit *skeleton)
{
	dw_file_index(&s->file);
	vec_foreach(u, &s->file.units) {
		if (u->dwo_id != skeleton->dwo_id)
			continue;
		u->addr_file = skeleton->file;
		u->addr_base = skeleton->addr_base;
		u->ranges_base = skeleton->ranges_base;
		u->low_pc = skeleton->low_pc;
		u->has_low_pc = skeleton->has_low_pc;
		s->unit = u;
		return true;
	}
	return false;
}

static struct elf *open_dwo(const struct dw_unit *skeleton, const char *path,
			    const struct debug_search *search)
{
	CLEANUP(free_p) char *name = xstrndup(skeleton->dwo_name.p, skeleton->dwo_name.n);
	CLEANUP(free_p) char *comp_dir = xstrndup(skeleton->comp_dir.p, skeleton->comp_dir.n);
	struct elf *e = debugfile_open(comp_dir, name, search);
	if (e)
		return e;
	/* If binary and .dwo were moved together, it is beside the binary. */
	const char *slash = strrchr(path, '/');
	const char *base = strrchr(name, '/');
	CLEANUP(free_p) char *dir = slash ? xstrndup(path, (size_t)(slash - path)) : xstrdup(".");
	return debugfile_open(dir, base ? base + 1 : name, search);
}

bool dw_split_open(struct dw_split *s, const struct dw_unit *skeleton, const struct dw_package *p,
		   const char *path, const struct debug_search *search, uint32_t number)
{
	*s = (struct dw_split){.file = {.number = number, .is_dwo = true}};
	if (p->elf && open_contribution(&s->file, p, skeleton->dwo_id)) {
		if (find_unit(s, skeleton))
			return true;
		dw_split_release(s);
		*s = (struct dw_split){.file = {.number = number, .is_dwo = true}};
	}
	if (!skeleton->dwo_name.n)
		return false;
	s->elf = open_dwo(skeleton, path, search);
	if (s->elf && !dw_file_load(&s->file, s->elf, true, NULL) && find_unit(s, skeleton))
		return true;
	dw_split_release(s);
	return false;
}

void dw_split_release(struct dw_split *s)
{
	dw_file_release(&s->file);
	elf_free_p(&s->elf);
}

struct sup {
	bool is_supplement;
	struct sv name;
	struct sv checksum;
};

static bool read_sup(struct elf *e, struct sup *ret_s)
{
	struct sv bytes;
	if (elf_named_bytes(e, ".debug_sup", &bytes, NULL) < 0 || !bytes.n)
		return false;
	struct rd r = rd_from(bytes.p, bytes.n);
	unsigned version = rd_u16(&r);
	ret_s->is_supplement = rd_u8(&r);
	ret_s->name = rd_cstr(&r);
	size_t nr_bytes = rd_uleb(&r);
	const uint8_t *p = rd_bytes(&r, nr_bytes);
	if (r.is_bad || version < 2 || version > 5)
		return false;
	ret_s->checksum = sv_from((const char *)p, nr_bytes);
	return true;
}

struct elf *dw_sup_open(struct elf *e, const char *path, const struct debug_search *search)
{
	struct sup wanted, found;
	if (!read_sup(e, &wanted) || wanted.is_supplement)
		return NULL;
	const char *slash = strrchr(path, '/');
	CLEANUP(free_p) char *dir = xstrndup(path, slash ? (size_t)(slash - path) : 0);
	CLEANUP(elf_free_p) struct elf *sup = debugfile_open(dir, wanted.name.p, search);
	if (!sup || !read_sup(sup, &found) || !found.is_supplement ||
	    !sv_eq(found.checksum, wanted.checksum))
		return NULL;
	return TAKE(sup);
}
