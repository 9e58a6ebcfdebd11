/*
 * Internal to the DWARF reader: abbreviation tables, compiled for fast skipping of DIEs.
 *
 * A scan reads few attributes of few DIEs and skips the rest. Each abbreviation therefore holds the
 * total size of its DIEs or, where a form has variable size, a short list of skips in which
 * adjacent fixed-size fields are merged.
 *
 * A cache is used by one thread. Tables have a reference count: a table from dw_abbrevs_get stays
 * valid until dw_abbrevs_put_p. The cache itself keeps references to at most DW_ABBREV_SLOTS tables.
 */
#ifndef ASSAY_SYMBOL_DWARF_ABBREV_H
#define ASSAY_SYMBOL_DWARF_ABBREV_H

#include "base/base.h"
#include "symbol/dwarf/dwarf_file.h"

#define DW_ABBREV_SLOTS    32
#define DW_ABBREV_VARIABLE UINT16_MAX

enum dw_kind {
	DW_KIND_PLAIN,      /* skip the DIE, visit its children */
	DW_KIND_SUBPROGRAM, /* function that has code */
	DW_KIND_INLINED,    /* inlined call that has code */
};

struct dw_skip {
	uint16_t form; /* of variable size; 0: skip nr_bytes */
	uint16_t nr_bytes;
};

struct dw_abbrev {
	uint32_t first_spec; /* index into dw_abbrevs.specs */
	uint32_t first_skip; /* index into dw_abbrevs.skips */
	uint16_t nr_specs;
	uint16_t nr_skips;
	uint16_t tag;
	uint16_t fixed_bytes; /* size of the attributes, or DW_ABBREV_VARIABLE */
	uint8_t kind;
	bool has_children;
	bool is_scope; /* namespace, class or function: qualifies the names of DIEs inside it */
};

struct dw_abbrevs {
	uint64_t key_offset; /* in .debug_abbrev */
	uint64_t key_rest;   /* file, DWARF version and sizes of the unit */
	unsigned nr_refs;
	uint64_t first_code;
	bool is_dense;       /* codes are consecutive from first_code, as compilers write them */
	VEC(uint64_t) codes; /* sorted; used if not is_dense */
	VEC(struct dw_abbrev) abbrevs;
	VEC(struct dw_spec) specs;
	VEC(struct dw_skip) skips;
};

struct dw_abbrev_cache {
	uint64_t budget_bytes; /* how much of the section may still be parsed; set for each job */
	struct dw_abbrevs *slots[DW_ABBREV_SLOTS];
};

void dw_abbrev_cache_release(struct dw_abbrev_cache *c);
/* Returns a reference to the unit's table; NULL: it does not parse or the budget is exhausted. */
struct dw_abbrevs *dw_abbrevs_get(struct dw_abbrev_cache *c, const struct dw_unit *u);
/* Drops the reference and sets *t to NULL. */
void dw_abbrevs_put_p(struct dw_abbrevs **t);
/* dw_abbrev_find for codes that are not consecutive; NULL: no such code. */
const struct dw_abbrev *dw_abbrev_find_slow(const struct dw_abbrevs *t, uint64_t code);
/* dw_abbrev_skip for DIEs of variable size. */
bool dw_abbrev_skip_slow(const struct dw_abbrevs *t, const struct dw_abbrev *a, struct rd *r,
			 const struct dw_unit *u);

/* Returns the abbreviation with this code, or NULL. */
static inline const struct dw_abbrev *dw_abbrev_find(const struct dw_abbrevs *t, uint64_t code)
{
	uint64_t i = code - t->first_code;
	if (LIKELY(i < t->abbrevs.n && t->is_dense))
		return &t->abbrevs.p[i];
	return dw_abbrev_find_slow(t, code);
}

/* Skips the attributes of a DIE whose abbreviation code was just read. False: the data end. */
static inline bool dw_abbrev_skip(const struct dw_abbrevs *t, const struct dw_abbrev *a,
				  struct rd *r, const struct dw_unit *u)
{
	if (LIKELY(a->fixed_bytes != DW_ABBREV_VARIABLE)) {
		rd_skip(r, a->fixed_bytes);
		return !r->is_bad;
	}
	return dw_abbrev_skip_slow(t, a, r, u);
}

/* Reads the attributes listed in enum dw_slot and skips the others. False: the data end. */
bool dw_attrs_read(const struct dw_abbrevs *t, const struct dw_abbrev *a, struct rd *r,
		   const struct dw_unit *u, struct dw_attrs *ret_a);

#endif
