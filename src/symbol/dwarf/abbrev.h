/*
 * Internal to the DWARF reader: abbreviation tables, compiled for skipping.
 *
 * A scan reads few attributes of few DIEs and skips all the rest, so each abbreviation carries
 * the number of bytes that its DIEs have, or, where a field's size stands in the bytes, a short
 * program of skips with neighbouring fixed fields merged.
 *
 * A cache belongs to one worker. Tables taken from it stay until put back, at most
 * DW_ABBREV_SLOTS others are kept.
 */
#ifndef ASSAY_SYMBOL_DWARF_ABBREV_H
#define ASSAY_SYMBOL_DWARF_ABBREV_H

#include "base/base.h"
#include "symbol/dwarf/dwarf_file.h"

#define DW_ABBREV_SLOTS    32
#define DW_ABBREV_VARIABLE UINT16_MAX

enum dw_kind {
	DW_KIND_PLAIN,      /* skip the DIE, look at its children */
	DW_KIND_SUBPROGRAM, /* with code */
	DW_KIND_INLINED,    /* with code */
};

struct dw_skip {
	uint16_t form; /* 0: fixed */
	uint16_t nr_bytes;
};

struct dw_abbrev {
	uint32_t first_spec;
	uint32_t first_skip;
	uint16_t nr_specs;
	uint16_t nr_skips;
	uint16_t tag;
	uint16_t fixed_bytes; /* or DW_ABBREV_VARIABLE */
	uint8_t kind;
	bool has_children;
	bool is_scope; /* namespace, class or function: its name qualifies what is inside */
};

struct dw_abbrevs {
	uint64_t key_offset;
	uint64_t key_rest;
	unsigned nr_refs;
	uint64_t first_code; /* codes count up by one from here (always so in practice) ... */
	bool is_dense;
	VEC(uint64_t) codes; /* ... or are sorted here */
	VEC(struct dw_abbrev) abbrevs;
	VEC(struct dw_spec) specs;
	VEC(struct dw_skip) skips;
};

struct dw_abbrev_cache {
	uint64_t budget_bytes; /* of the section still to be parsed; set per unit of work */
	struct dw_abbrevs *slots[DW_ABBREV_SLOTS];
};

void dw_abbrev_cache_release(struct dw_abbrev_cache *c);
/* The table of this unit, or NULL if it does not parse or the budget is used up. */
struct dw_abbrevs *dw_abbrevs_get(struct dw_abbrev_cache *c, const struct dw_unit *u);
void dw_abbrevs_put_p(struct dw_abbrevs **t);
const struct dw_abbrev *dw_abbrev_find_slow(const struct dw_abbrevs *t, uint64_t code);
/* Skips a DIE of variable size. */
bool dw_abbrev_skip_slow(const struct dw_abbrevs *t, const struct dw_abbrev *a, struct rd *r,
			 const struct dw_unit *u);

static inline const struct dw_abbrev *dw_abbrev_find(const struct dw_abbrevs *t, uint64_t code)
{
	uint64_t i = code - t->first_code;
	if (LIKELY(i < t->abbrevs.n && t->is_dense))
		return &t->abbrevs.p[i];
	return dw_abbrev_find_slow(t, code);
}

/* Past the attributes of a DIE whose code was just read. */
static inline bool dw_abbrev_skip(const struct dw_abbrevs *t, const struct dw_abbrev *a,
				  struct rd *r, const struct dw_unit *u)
{
	if (LIKELY(a->fixed_bytes != DW_ABBREV_VARIABLE)) {
		rd_skip(r, a->fixed_bytes);
		return !r->is_bad;
	}
	return dw_abbrev_skip_slow(t, a, r, u);
}

/* Reads the attributes that have a slot. */
bool dw_attrs_read(const struct dw_abbrevs *t, const struct dw_abbrev *a, struct rd *r,
		   const struct dw_unit *u, struct dw_attrs *ret_a);

#endif
