/*
 * Encoding and decoding of a recording's sections: elements of a profile <-> bytes. Used by the
 * files of format/assay/ only; the chunks around the sections are in assayfile_layout.h.
 */
#ifndef ASSAY_FORMAT_ASSAY_ASSAYFILE_SECTIONS_H
#define ASSAY_FORMAT_ASSAY_ASSAYFILE_SECTIONS_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"
#include "format/assay/assayfile.h"
#include "format/assay/assayfile_layout.h"
#include "model/profile.h"

/* ---- columns (assayfile_columns.c): how the fields of elements are stored */

/* A field of each element. Stored as value + bias, or as the difference to the previous element. */
struct assayfile_field {
	uint16_t offset; /* in the element's struct */
	uint8_t nr_bytes;
	bool is_signed;
	bool is_delta;
	bool is_optional; /* added by a later minor version: older files do not have it */
	uint8_t bias;
	enum assayfile_section ref; /* the field is an id of an element of this section, 0 = none */
	uint32_t dropped;           /* bits that are not stored */
	uint64_t max;               /* 0 = no limit; larger stored values are read as `instead` */
	uint64_t instead;
};

struct assayfile_columns {
	const struct assayfile_field *fields; /* NULL: the section has its own encoding */
	size_t nr;
	size_t least;      /* minimum bytes of an element in the file; 0: no elements */
	size_t vec;        /* offset of the elements' VEC in struct profile */
	size_t each_bytes; /* size of an element in that VEC */
};
extern const struct assayfile_columns assayfile_columns[ASSAYFILE_SECTIONS];

/*
 * The VEC of struct profile that has a section's elements (all VECs have this layout).
 * assayfile_vec returns a copy. The decoder appends elements to its copy and then stores the copy
 * in the profile again (assayfile_decode.c); other callers only read.
 */
struct assayfile_vec {
	uint8_t *p;
	size_t n;
	size_t cap;
};
struct assayfile_vec assayfile_vec(const struct profile *p, enum assayfile_section type);

/* Elements of a profile that no section stores: the dummy elements with id 0. */
extern const size_t assayfile_held_first[ASSAYFILE_SECTIONS];

/* ---- encoding (assayfile_encode.c) */

/*
 * Append the payload of a section: elements [from, from + n) of a kind; the description of a table
 * (name, columns); rows [from, from + n) of a table; the state of the profile (SECTION_STATE):
 * start and end time, is_incomplete, counts of losses, facts (model/facts.h). Each SECTION_STATE
 * replaces the values of the one before it.
 */
void encode_elements(struct buf *to, const struct profile *p, enum assayfile_section type,
		     size_t from, size_t n);
void encode_table(struct buf *to, const struct profile *p, size_t table);
void encode_samples(struct buf *to, const struct profile *p, size_t table, size_t from, size_t n);
void encode_state(struct buf *to, const struct profile *p);

/* ---- decoding (assayfile_decode.c) */

struct assayfile_reader {
	struct profile *p;
	VEC(str_id) str_ids; /* string id in the file -> id in the profile */
	/*
	 * Elements by section, and rows by table, that the file has up to here, lost ones included.
	 */
	size_t held[ASSAYFILE_SECTIONS];
	VEC(uint64_t) table_rows;
	uint64_t nr_samples;    /* read into the profile so far */
	uint64_t chunk_samples; /* samples up to the current chunk's end, from its header */
	uint64_t state_samples; /* chunk_samples when the last SECTION_STATE was read */
	uint64_t nr_stored;     /* size of the file, for format_check_room */
	uint64_t nr_held;       /* bytes in memory besides the profile: the file and the chunk */
	uint64_t nr_unchecked;  /* bytes allocated since the last format_check_room */
	size_t gap_budget;      /* how many more placeholders for lost elements may be added */
	uint32_t nr_skipped;    /* sections of a newer minor version */
	bool has_damage;        /* a chunk was lost: ids may refer to missing elements */
	bool has_remap;         /* a string has another id than in the file */
	bool is_wrong;          /* invalid file: an id refers to no element */
};
/* Reads all sections of one data chunk. -EBADMSG: inconsistent in itself or with earlier ones. */
int decode_sections(struct assayfile_reader *r, const void *p, size_t n, struct err *err);

#endif
