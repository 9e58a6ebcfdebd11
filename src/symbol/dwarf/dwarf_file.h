/*
 * Internal to the DWARF reader: one set of sections (the image's, its dwz supplement's, a .dwo's
 * or one contribution of a .dwp), its units, and attribute values.
 *
 * A file's sections are borrowed from the ELF image that holds them. Units are in the order of
 * the section, so a reference by section offset finds its unit by binary search. Type units are
 * skipped: no code is described by them.
 *
 * Formats: DWARF Debugging Information Format versions 2-5; GNU extensions of gcc, dwz, dwp.
 */
#ifndef ASSAY_SYMBOL_DWARF_DWARF_FILE_H
#define ASSAY_SYMBOL_DWARF_DWARF_FILE_H

#include <dwarf.h>
#include <stdatomic.h>

#include "base/base.h"
#include "base/err.h"
#include "base/file/rd.h"
#include "base/sv.h"
#include "base/vec.h"
#include "object/elf.h"

#define DW_NO_OFFSET    UINT64_MAX
#define DW_NR_UNITS_MAX ((size_t)1 << 20)

enum dw_section {
	DW_SEC_INFO,
	DW_SEC_ABBREV,
	DW_SEC_STR,
	DW_SEC_LINE,
	DW_SEC_LINE_STR,
	DW_SEC_STR_OFFSETS,
	DW_SEC_ADDR,
	DW_SEC_RANGES,
	DW_SEC_RNGLISTS,
	DW_SEC_ARANGES,
	DW_SEC_NR,
};

struct dw_file;

struct dw_unit {
	const struct dw_file *file;
	const struct dw_file *addr_file; /* whose .debug_addr (and .debug_ranges) it indexes */
	uint64_t offset;                 /* of the header, in .debug_info */
	uint64_t end;
	uint64_t die_offset; /* of the top DIE */
	uint64_t abbrev_offset;
	uint8_t version;
	uint8_t type; /* DW_UT_*; version 2-4: DW_UT_compile */
	uint8_t addr_bytes;
	uint8_t offset_bytes; /* 4 or 8 */

	/* From the top DIE. */
	uint16_t tag;
	uint16_t language;
	bool has_children;
	bool has_low_pc;
	bool has_high_pc;
	bool has_ranges;
	bool is_ranges_idx; /* ranges is an index (DW_FORM_rnglistx) */
	uint64_t low_pc;
	uint64_t high_pc;
	uint64_t ranges;
	uint64_t ranges_base; /* DW_AT_GNU_ranges_base: added to offsets in .debug_ranges */
	uint64_t rnglists_base;
	uint64_t str_offsets_base;
	uint64_t addr_base;
	uint64_t stmt_list; /* DW_NO_OFFSET if none */
	uint64_t dwo_id;    /* 0 = none */
	struct sv comp_dir;
	struct sv dwo_name;
};

struct dw_file {
	struct sv sec[DW_SEC_NR];
	VEC(struct dw_unit) units;
	const struct dw_file *alt; /* dwz supplement, or NULL */
	uint32_t number;           /* tells files apart in memo keys */
	bool is_dwo;               /* sections are the .dwo kind */
	uint64_t nr_units_bad;
	/* Where only some units are loaded: set when one of the others was asked for. Else NULL. */
	atomic_bool *is_missed;
};

/* Slots: the attributes that somebody reads. */
enum dw_slot {
	DW_SLOT_NONE,
	DW_SLOT_LOW_PC,
	DW_SLOT_HIGH_PC,
	DW_SLOT_RANGES,
	DW_SLOT_ORIGIN,
	DW_SLOT_SPECIFICATION,
	DW_SLOT_NAME,
	DW_SLOT_LINKAGE_NAME,
	DW_SLOT_CALL_FILE,
	DW_SLOT_CALL_LINE,
	DW_SLOT_STMT_LIST,
	DW_SLOT_COMP_DIR,
	DW_SLOT_DWO_NAME,
	DW_SLOT_DWO_ID,
	DW_SLOT_ADDR_BASE,
	DW_SLOT_STR_OFFSETS_BASE,
	DW_SLOT_RNGLISTS_BASE,
	DW_SLOT_RANGES_BASE,
	DW_SLOT_LANGUAGE,
	DW_SLOT_NR,
};

enum dw_class {
	DW_CLASS_NONE, /* absent, or a form that carries nothing for us */
	DW_CLASS_ADDR,
	DW_CLASS_ADDRX,
	DW_CLASS_CONST,
	DW_CLASS_TEXT, /* text in place */
	DW_CLASS_STRP,
	DW_CLASS_LINE_STRP,
	DW_CLASS_STRX,
	DW_CLASS_STRP_ALT,
	DW_CLASS_REF, /* offset in this file's .debug_info */
	DW_CLASS_REF_ALT,
	DW_CLASS_OFFSET, /* into another section */
	DW_CLASS_LISTX,  /* rnglistx */
};

struct dw_value {
	uint64_t u;
	struct sv text; /* DW_CLASS_TEXT */
	uint8_t cls;
};

struct dw_spec {
	uint16_t form;
	uint8_t slot;
	int64_t implicit;
};

struct dw_attrs {
	struct dw_value v[DW_SLOT_NR];
};

/* Loads the sections of @e; those of .dwo kind if @is_dwo. An absent section is empty. */
int dw_file_load(struct dw_file *f, struct elf *e, bool is_dwo, struct err *err);
/* Walks the headers and top DIEs. What is damaged is left out and counted. */
void dw_file_index(struct dw_file *f);
void dw_file_release(struct dw_file *f);
/* The unit whose DIEs hold this offset of .debug_info, or NULL. */
const struct dw_unit *dw_unit_at(const struct dw_file *f, uint64_t offset);
/* The unit whose header starts there, or NULL. */
const struct dw_unit *dw_unit_from_header(const struct dw_file *f, uint64_t offset);
/* Extent and header of the unit at @offset, not its top DIE. False if damaged. */
bool dw_unit_read_header(struct dw_unit *ret_u, const struct dw_file *f, uint64_t offset);
/* Reads the top DIE, also again after bases were inherited from a skeleton. False if damaged. */
bool dw_unit_read_top(struct dw_unit *u);

/* Reader over the unit's bytes from @offset to the unit's end; bad if outside. */
struct rd dw_unit_rd(const struct dw_unit *u, uint64_t offset);
uint64_t dw_rd_offset(struct rd *r, unsigned offset_bytes);
/* The section's bytes from offset on; empty if past the end. */
struct rd dw_section_rd(const struct dw_file *f, enum dw_section s, uint64_t offset);

/* The next attribute of an abbreviation: 1; 0 at its end, -1 if damaged. */
int dw_spec_read(struct rd *r, struct dw_spec *ret_s);
/* The length that units, tables and sets start with; 0xffffffff: it has 8 bytes, as all offsets. */
uint64_t dw_rd_length(struct rd *r, uint8_t *ret_offset_bytes);
/* Bytes of a form of fixed size in this unit, or -1. */
int dw_form_bytes(uint64_t form, const struct dw_unit *u);
/* Reads one value; false (and a bad reader) if the form is unknown or runs over the end. */
bool dw_form_read(struct rd *r, const struct dw_unit *u, const struct dw_spec *s,
		  struct dw_value *ret_v);
bool dw_form_skip(struct rd *r, const struct dw_unit *u, uint64_t form);

/* Text of a string value; empty if it has none or lies outside. */
struct sv dw_text(const struct dw_unit *u, const struct dw_value *v);
/* Address of an ADDR or ADDRX value. */
bool dw_addr(const struct dw_unit *u, const struct dw_value *v, uint64_t *ret_addr);
bool dw_addr_at(const struct dw_unit *u, uint64_t idx, uint64_t *ret_addr);

#endif
