/*
 * Internal to the DWARF reader: one set of debug sections (of the image, of its dwz supplement, of
 * a .dwo file or of one contribution in a .dwp package), its units, and the decoding of attribute
 * values.
 *
 * The sections are borrowed from the ELF image. Units are sorted by section offset, so the unit of
 * a reference is found by binary search. Type units are skipped: they describe no code.
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
	const struct dw_file *addr_file; /* holds its .debug_addr (and .debug_ranges) */
	uint64_t offset;                 /* of the header, in .debug_info */
	uint64_t end;
	uint64_t die_offset; /* of the unit DIE */
	uint64_t abbrev_offset;
	uint8_t version;
	uint8_t type; /* DW_UT_*; version 2-4: DW_UT_compile */
	uint8_t addr_bytes;
	uint8_t offset_bytes; /* 4 or 8 */

	/* Attributes of the unit DIE. */
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
	uint32_t number;           /* identifies the file in the keys of struct dw_names */
	bool is_dwo;               /* sections have .dwo names */
	uint64_t nr_units_bad;
	/*
	 * NULL: all units are loaded. Else only some are (part.h), and the flag is set when a unit
	 * that is not loaded is referenced.
	 */
	atomic_bool *is_unit_missing;
};

/* The attributes that are read; each has a slot in struct dw_attrs. */
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
	DW_CLASS_NONE, /* absent, or a form that is not used */
	DW_CLASS_ADDR,
	DW_CLASS_ADDRX,
	DW_CLASS_CONST,
	DW_CLASS_TEXT, /* DW_FORM_string */
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

/* Loads the sections of @e, with @is_dwo those named .dwo. An absent section is empty. */
int dw_file_load(struct dw_file *f, struct elf *e, bool is_dwo, struct err *err);
/* Reads all unit headers and unit DIEs. Damaged units are skipped and counted. */
void dw_file_index(struct dw_file *f);
void dw_file_release(struct dw_file *f);
/* Returns the unit whose DIEs contain this offset of .debug_info, or NULL. */
const struct dw_unit *dw_unit_at(const struct dw_file *f, uint64_t offset);
/* Returns the unit whose header starts at this offset, or NULL. */
const struct dw_unit *dw_unit_from_header(const struct dw_file *f, uint64_t offset);
/* Reads the header of the unit at @offset, without its unit DIE. False if damaged. */
bool dw_unit_read_header(struct dw_unit *ret_u, const struct dw_file *f, uint64_t offset);
/*
 * Reads the unit DIE. To be called again when the bases of a skeleton unit are set. False if
 * damaged.
 */
bool dw_unit_read_top(struct dw_unit *u);

/*
 * Returns a reader over the unit's bytes from @offset to its end; it is bad if @offset is outside.
 */
struct rd dw_unit_rd(const struct dw_unit *u, uint64_t offset);
uint64_t dw_rd_offset(struct rd *r, unsigned offset_bytes);
/* Returns a reader over the section from @offset on; empty if past the end. */
struct rd dw_section_rd(const struct dw_file *f, enum dw_section s, uint64_t offset);

/* Reads the next attribute specification of an abbreviation: 1, 0 at its end, -1 if damaged. */
int dw_spec_read(struct rd *r, struct dw_spec *ret_s);
/* Reads an initial length; *ret_offset_bytes: 8 after 0xffffffff (64-bit DWARF), else 4. */
uint64_t dw_rd_length(struct rd *r, uint8_t *ret_offset_bytes);
/* Returns the size of a form in this unit in bytes, -1 if it is variable. */
int dw_form_bytes(uint64_t form, const struct dw_unit *u);
/* Reads one value; false (and the reader is bad) if the form is unknown or exceeds the data. */
bool dw_form_read(struct rd *r, const struct dw_unit *u, const struct dw_spec *s,
		  struct dw_value *ret_v);
bool dw_form_skip(struct rd *r, const struct dw_unit *u, uint64_t form);

/* Returns the text of a string value; empty if the value is no string or its offset is invalid. */
struct sv dw_text(const struct dw_unit *u, const struct dw_value *v);
/* Gets the address of a DW_CLASS_ADDR or DW_CLASS_ADDRX value; false if it has none. */
bool dw_addr(const struct dw_unit *u, const struct dw_value *v, uint64_t *ret_addr);
bool dw_addr_at(const struct dw_unit *u, uint64_t idx, uint64_t *ret_addr);

#endif
