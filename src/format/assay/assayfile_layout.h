/*
 * The bytes of a recording, shared by its writer and its reader; docs/formats/assay.md says the
 * same in words. Little-endian. Values are append-only.
 */
#ifndef ASSAY_FORMAT_ASSAY_ASSAYFILE_LAYOUT_H
#define ASSAY_FORMAT_ASSAY_ASSAYFILE_LAYOUT_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"
#include "format/assay/assayfile.h"
#include "model/profile.h"

#define ASSAYFILE_MAGIC      "ASSAY\r\n\x1a" /* 8 bytes: shows conversion of line ends */
#define ASSAYFILE_MAGIC_LEN  8
#define ASSAYFILE_MAJOR      1           /* a reader refuses a greater one */
#define ASSAYFILE_MINOR      2           /* greater: sections that this reader skips */
#define ASSAYFILE_CHUNK_MARK 0x4b484379u /* "yCHK" */

enum assayfile_state {
	ASSAYFILE_OPEN = 0, /* being written, or the recorder was killed */
	ASSAYFILE_FINISHED = 1,
	ASSAYFILE_CUT = 2, /* finished, but nr_unsaved samples did not fit on the disk */
};

struct assayfile_header {
	uint8_t magic[ASSAYFILE_MAGIC_LEN];
	uint16_t major;
	uint16_t minor;
	uint32_t state;        /* enum assayfile_state */
	uint64_t index_offset; /* of the last END chunk, 0 = none */
	int64_t wall_start_ns;
	uint64_t duration_ns;
	uint64_t nr_samples;
	uint64_t nr_unsaved;
	char kind[ASSAYFILE_KIND_MAX];
	uint8_t reserved[12];
	uint32_t crc; /* CRC-32 (zlib's) of the bytes before */
};
_Static_assert(sizeof(struct assayfile_header) == 88 &&
		       offsetof(struct assayfile_header, crc) == 84,
	       "the header's layout is a file format");

enum assayfile_chunk_type { ASSAYFILE_DATA = 1, ASSAYFILE_END = 2 };

enum assayfile_chunk_flags {
	ASSAYFILE_ZSTD = 1 << 0,     /* the payload is one zstd frame of raw_bytes */
	ASSAYFILE_CRITICAL = 1 << 1, /* a reader that does not know the type must refuse */
};

struct assayfile_chunk {
	uint32_t mark;
	uint16_t type;
	uint16_t flags;
	uint32_t stored_bytes; /* of the payload that follows */
	uint32_t raw_bytes;
	uint64_t nr_samples; /* in the file so far, this chunk included */
	uint64_t elapsed_ns; /* of the capture, this chunk included */
	uint32_t payload_crc;
	uint32_t header_crc; /* of the bytes before */
};
_Static_assert(sizeof(struct assayfile_chunk) == 40, "the chunk header's layout is a file format");

/* The END chunk's payload: one entry a data chunk. */
struct assayfile_index_entry {
	uint64_t offset;
	uint64_t nr_samples; /* as in the chunk's header */
	uint64_t elapsed_ns;
};

#define ASSAYFILE_RAW_MAX    ((size_t)64 << 20) /* of one chunk */
#define ASSAYFILE_STRING_MAX ((size_t)1 << 20)

/* What SECTION_UPDATES changes of an element that was written before. */
enum assayfile_update {
	UPDATE_MAPPING_END = 1, /* to_ns + 1 */
	UPDATE_TASK_END = 2,
	UPDATE_MODULE_DELETED = 3,
	UPDATE_NR,
};

enum assayfile_table_flags {
	ASSAYFILE_HAS_TAGS = 1 << 0, /* rows have a column of tags behind the others */
};

/* A data chunk is a run of sections: u8 type, uleb bytes, payload. */
enum assayfile_section {
	SECTION_STRINGS = 1,
	SECTION_MODULES = 2,
	SECTION_MAPPINGS = 3,
	SECTION_FUNCTIONS = 4,
	SECTION_LOCATIONS = 5,
	SECTION_NAMES = 6,
	SECTION_STACKS = 7,
	SECTION_TASKS = 8,
	SECTION_TABLE = 9,
	SECTION_SAMPLES = 10,
	SECTION_MARKS = 11,
	SECTION_STATE = 12,
	SECTION_UPDATES = 13,
	SECTION_TAGS = 14,      /* since 1.1 */
	SECTION_CRITICAL = 128, /* this bit: a reader that does not know it must refuse */
};

/* ---- columns (assayfile_columns.c): what writer and reader know of the elements' fields ------- */
/* A field of each element. The file has it + bias, or the difference to the element before. */
struct assayfile_field {
	uint16_t offset; /* in the element */
	uint8_t nr_bytes;
	bool is_signed;
	bool is_delta;
	bool is_optional; /* of a later minor version */
	uint8_t bias;
	enum assayfile_section ref; /* whose elements it is an id of, 0 = none */
	uint32_t dropped;           /* bits that are not stored */
	uint64_t max; /* what is stored above this (0: nothing is) reads as `instead` */
	uint64_t instead;
};

struct assayfile_columns {
	const struct assayfile_field *fields; /* NULL: the section has its own encoding */
	size_t nr;
	size_t least;      /* bytes of an element in the file; 0: the section holds no elements */
	size_t vec;        /* offset of their VEC in struct profile */
	size_t each_bytes; /* in it */
};
extern const struct assayfile_columns assayfile_columns[ASSAYFILE_SECTIONS];

/* The VEC of a section's elements, whose layout is that of every VEC: a copy, to be stored back. */
struct assayfile_vec {
	uint8_t *p;
	size_t n;
	size_t cap;
};
struct assayfile_vec assayfile_vec(const struct profile *p, enum assayfile_section type);

/* How many elements a file has before its first section: the dummies that every profile has. */
extern const size_t assayfile_held_first[ASSAYFILE_SECTIONS];

/* ---- encoding (assayfile_encode.c) ----------------------------------------------------------- */
/* Elements [from, from + n) as a section's payload. */
void encode_elements(struct buf *to, const struct profile *p, enum assayfile_section type,
		     size_t from, size_t n);
void encode_table(struct buf *to, const struct profile *p, size_t table);
void encode_samples(struct buf *to, const struct profile *p, size_t table, size_t from, size_t n);
void encode_state(struct buf *to, const struct profile *p);

/* ---- decoding (assayfile_decode.c) ---------------------------------------------------------- */
struct assayfile_reader {
	struct profile *p;
	VEC(str_id) str_ids; /* the file's string ids -> the profile's */
	/* Elements and, by table, samples that the file has had, the lost ones included. */
	size_t held[ASSAYFILE_SECTIONS];
	VEC(uint64_t) table_rows;
	uint64_t nr_samples;    /* in the profile */
	uint64_t chunk_samples; /* that should be, by the header of the chunk in hand */
	uint64_t state_samples; /* the same when the losses in the profile were stored */
	size_t gap_budget;      /* elements that may still be made up for lost ones */
	uint32_t nr_skipped;    /* sections of a newer minor version */
	bool has_damage;        /* from here on ids may be missing */
	bool has_remap;         /* a string's id is not the file's */
	bool is_wrong;          /* an id points nowhere */
};
/* All sections of one data chunk. -EBADMSG: it contradicts itself or what came before. */
int decode_sections(struct assayfile_reader *r, const void *p, size_t n, struct err *err);

#endif
