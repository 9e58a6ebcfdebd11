/*
 * The bytes of a recording, shared by its writer and its reader; docs/formats/assay.md says the
 * same in words. Little-endian. Values are append-only.
 */
#ifndef ASSAY_FORMAT_ASSAYFILE_LAYOUT_H
#define ASSAY_FORMAT_ASSAYFILE_LAYOUT_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"
#include "format/assayfile.h"
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

/* ---- encoding (assayfile_encode.c): elements [from, from + n) of one table, as a payload ---- */
void encode_strings(struct buf *to, const struct profile *p, size_t from, size_t n);
void encode_modules(struct buf *to, const struct profile *p, size_t from, size_t n);
void encode_mappings(struct buf *to, const struct profile *p, size_t from, size_t n);
void encode_functions(struct buf *to, const struct profile *p, size_t from, size_t n);
void encode_locations(struct buf *to, const struct profile *p, size_t from, size_t n);
void encode_names(struct buf *to, const struct profile *p, size_t from, size_t n);
void encode_stacks(struct buf *to, const struct profile *p, size_t from, size_t n);
void encode_tasks(struct buf *to, const struct profile *p, size_t from, size_t n);
void encode_tags(struct buf *to, const struct profile *p, size_t from, size_t n);
void encode_marks(struct buf *to, const struct profile *p, size_t from, size_t n);
void encode_table(struct buf *to, const struct profile *p, size_t table);
void encode_samples(struct buf *to, const struct profile *p, size_t table, size_t from, size_t n);
void encode_state(struct buf *to, const struct profile *p);

/* ---- decoding (assayfile_decode.c) ---------------------------------------------------------- */
struct assayfile_reader {
	struct profile *p;
	VEC(str_id) str_ids; /* the file's string ids -> the profile's */
	VEC(uint64_t)
	table_rows;        /* by table: samples that the file has had, the lost ones included */
	uint64_t nr_named; /* entries of these that the file has had */
	uint64_t nr_marks;
	uint64_t nr_mappings;
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
