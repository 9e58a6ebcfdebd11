/*
 * pprof's profile.proto (github.com/google/pprof), packed by gzip or not: its field numbers, and the
 * names of the sample types that stand for the columns of our tables. docs/formats/pprof.md
 */
#ifndef ASSAY_FORMAT_EXCHANGE_PPROF_H
#define ASSAY_FORMAT_EXCHANGE_PPROF_H

#include "base/base.h"
#include "base/buf.h"
#include "model/profile.h"

enum pprof_profile {
	PPROF_SAMPLE_TYPE = 1,
	PPROF_SAMPLE = 2,
	PPROF_MAPPING = 3,
	PPROF_LOCATION = 4,
	PPROF_FUNCTION = 5,
	PPROF_STRING = 6,
	PPROF_DROP_FRAMES = 7,
	PPROF_KEEP_FRAMES = 8,
	PPROF_TIME_NS = 9,
	PPROF_DURATION_NS = 10,
	PPROF_PERIOD_TYPE = 11,
	PPROF_PERIOD = 12,
	PPROF_COMMENT = 13,
	PPROF_DEFAULT_TYPE = 14,
	PPROF_DOC_URL = 15,
};
enum pprof_value_type { PPROF_TYPE_NAME = 1, PPROF_TYPE_UNIT = 2 };
enum pprof_sample { PPROF_SAMPLE_LOCATIONS = 1, PPROF_SAMPLE_VALUES = 2, PPROF_SAMPLE_LABEL = 3 };
enum pprof_label {
	PPROF_LABEL_KEY = 1,
	PPROF_LABEL_TEXT = 2,
	PPROF_LABEL_NR = 3,
	PPROF_LABEL_UNIT
};
enum pprof_mapping {
	PPROF_MAPPING_ID = 1,
	PPROF_MAPPING_START = 2,
	PPROF_MAPPING_LIMIT = 3,
	PPROF_MAPPING_OFFSET = 4,
	PPROF_MAPPING_FILE = 5,
	PPROF_MAPPING_BUILD_ID = 6,
	PPROF_MAPPING_HAS_FUNCTIONS = 7, /* then 8, 9 and 10: files, lines, inlined frames */
};
enum pprof_location {
	PPROF_LOCATION_ID = 1,
	PPROF_LOCATION_MAPPING = 2,
	PPROF_LOCATION_ADDRESS = 3,
	PPROF_LOCATION_LINE = 4,
};
enum pprof_line { PPROF_LINE_FUNCTION = 1, PPROF_LINE_NR = 2 };
enum pprof_function {
	PPROF_FUNCTION_ID = 1,
	PPROF_FUNCTION_NAME = 2,
	PPROF_FUNCTION_SYSTEM_NAME = 3,
	PPROF_FUNCTION_FILE = 4,
};

/* Labels that are fields of our rows. */
#define PPROF_PID    "pid"
#define PPROF_TID    "tid"
#define PPROF_THREAD "thread"
#define PPROF_REASON "reason"
#define PPROF_OBJECT "object"
#define PPROF_DETAIL "detail"
#define PPROF_BYTES  "bytes" /* smallest size of the blocks */

/* The loss counters travel as comments: "assay loss lost 12". */
#define PPROF_LOSS "assay loss "
/* Whether a counter is written. The others are counted from the samples. */
bool pprof_has_loss(enum loss_kind k);

/* "count", "nanoseconds", "bytes". */
const char *pprof_unit(enum unit unit);
/*
 * Appends the name of the sample type of a column: by Go's conventions for CPU time and heaps
 * ("samples", "cpu", "alloc_space", "inuse_objects"), else KEY_COLUMN ("io_calls"), or for samples of
 * other events the event's name. Returns false if the column is not written: levels, which do not
 * add up, and what describes the sampling of a heap.
 */
bool pprof_add_type(struct buf *to, const struct profile *p, const struct table *t,
		    uint32_t column);
/* Finds the column of a kind of table, which is not samples, by such a name. */
bool pprof_find_type(struct sv name, enum table_id *ret_id, uint32_t *ret_column);

#endif
