/*
 * The file layout of a recording: header, chunks, numbers of sections. Used by its writer and its
 * reader; described in docs/formats/assay.md. Little-endian. Numbers of existing enum values never
 * change; new values are appended.
 */
#ifndef ASSAY_FORMAT_ASSAY_ASSAYFILE_LAYOUT_H
#define ASSAY_FORMAT_ASSAY_ASSAYFILE_LAYOUT_H

#include "base/base.h"
#include "format/assay/assayfile.h"

#define ASSAYFILE_MAGIC      "ASSAY\r\n\x1a" /* 8 bytes; conversion of line ends changes them */
#define ASSAYFILE_MAGIC_LEN  8
#define ASSAYFILE_MAJOR      1           /* a reader refuses a greater one */
#define ASSAYFILE_MINOR      4           /* a reader skips sections of a greater one */
#define ASSAYFILE_CHUNK_MARK 0x4b484379u /* "yCHK" */

enum assayfile_state {
	ASSAYFILE_OPEN = 0, /* being written, or the recorder was killed */
	ASSAYFILE_FINISHED = 1,
	ASSAYFILE_INCOMPLETE =
		2, /* finished, but nr_unsaved samples could not be written (disk full) */
};

struct assayfile_header {
	uint8_t magic[ASSAYFILE_MAGIC_LEN];
	uint16_t major;
	uint16_t minor;
	uint32_t state;        /* enum assayfile_state */
	uint64_t index_offset; /* file offset of the END chunk; 0 = not closed: no index */
	int64_t wall_start_ns; /* CLOCK_REALTIME */
	uint64_t duration_ns;
	uint64_t nr_samples;
	uint64_t nr_unsaved;
	char kind[ASSAYFILE_KIND_MAX];
	uint8_t reserved[12];
	uint32_t crc; /* CRC-32 (as zlib's) of the header's bytes before this field */
};
_Static_assert(sizeof(struct assayfile_header) == 88 &&
		       offsetof(struct assayfile_header, crc) == 84,
	       "the header's layout is a file format");

enum assayfile_chunk_type { ASSAYFILE_DATA = 1, ASSAYFILE_END = 2 };

enum assayfile_chunk_flags {
	ASSAYFILE_ZSTD = 1 << 0,     /* the payload is one zstd frame of raw_bytes */
	ASSAYFILE_CRITICAL = 1 << 1, /* a reader that does not know the chunk type must fail */
};

struct assayfile_chunk {
	uint32_t mark;
	uint16_t type;
	uint16_t flags;
	uint32_t stored_bytes; /* of the payload that follows */
	uint32_t raw_bytes;
	uint64_t nr_samples; /* in the file up to the end of this chunk */
	uint64_t elapsed_ns; /* time from the capture's start to the end of this chunk */
	uint32_t payload_crc;
	uint32_t header_crc; /* of this header's bytes before this field */
};
_Static_assert(sizeof(struct assayfile_chunk) == 40, "the chunk header's layout is a file format");

/* The payload of the END chunk, the file's last: one entry per data chunk. */
struct assayfile_index_entry {
	uint64_t offset;     /* of the chunk's header in the file */
	uint64_t nr_samples; /* as in the chunk's header */
	uint64_t elapsed_ns; /* the same */
};

#define ASSAYFILE_RAW_MAX    ((size_t)64 << 20) /* uncompressed bytes of one chunk */
#define ASSAYFILE_STRING_MAX ((size_t)1 << 20)

/* The fields of earlier elements that SECTION_UPDATES can change. */
enum assayfile_update {
	UPDATE_MAPPING_END = 1, /* its to_ns plus 1, so that UINT64_MAX (not unmapped) is 0 */
	UPDATE_TASK_END = 2,
	UPDATE_MODULE_DELETED = 3,
	UPDATE_STACK_LOCATION = 4, /* since 1.3: a stack node's location, with inferred frames */
	UPDATE_NR,
};

/* In SECTION_NAMES, instead of is_inlined (0, 1), since 1.3. */
#define FRAME_BYTE_INFERRED 2

enum assayfile_table_flags {
	ASSAYFILE_HAS_TAGS = 1 << 0, /* rows have a column of tags after the others */
};

/* A data chunk is a sequence of sections: u8 type, uleb length in bytes, payload. */
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
	SECTION_STATE = 12, /* times, losses and facts; replaces the one before (encode_state) */
	SECTION_UPDATES = 13,
	SECTION_TAGS = 14,      /* since 1.1 */
	SECTION_CRITICAL = 128, /* a bit: a reader that does not know the section must fail */
};

#endif
