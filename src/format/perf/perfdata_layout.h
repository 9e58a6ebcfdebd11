/*
 * The file layout of perf.data, used by its reader and its writer. Source:
 * tools/perf/Documentation/perf.data-file-format.txt in the kernel tree.
 */
#ifndef ASSAY_FORMAT_PERF_PERFDATA_LAYOUT_H
#define ASSAY_FORMAT_PERF_PERFDATA_LAYOUT_H

#include "base/base.h"

#define PD_MAGIC         0x32454c4946524550ull /* "PERFILE2" */
#define PD_MAGIC_SWAPPED 0x50455246494c4532ull
#define PD_MAGIC_V1      0x454c494646524550ull /* "PERFFILE" */

/* Record types that perf adds to those of the kernel. */
enum pd_user_record {
	PD_HEADER_ATTR = 64,
	PD_HEADER_EVENT_TYPE = 65,
	PD_HEADER_TRACING_DATA = 66,
	PD_HEADER_BUILD_ID = 67,
	PD_FINISHED_ROUND = 68,
	PD_ID_INDEX = 69,
	PD_AUXTRACE_INFO = 70,
	PD_AUXTRACE = 71,
	PD_EVENT_UPDATE = 78,
	PD_TIME_CONV = 79,
	PD_HEADER_FEATURE = 80,
	PD_COMPRESSED = 81,
	PD_FINISHED_INIT = 82,
	PD_COMPRESSED2 = 83,
};

enum pd_feature {
	PD_FEAT_TRACING_DATA = 1,
	PD_FEAT_BUILD_ID = 2,
	PD_FEAT_HOSTNAME = 3,
	PD_FEAT_OSRELEASE = 4,
	PD_FEAT_VERSION = 5,
	PD_FEAT_ARCH = 6,
	PD_FEAT_NRCPUS = 7,
	PD_FEAT_CPUDESC = 8,
	PD_FEAT_TOTAL_MEM = 10,
	PD_FEAT_CMDLINE = 11,
	PD_FEAT_EVENT_DESC = 12,
	PD_FEAT_SAMPLE_TIME = 21,
	PD_FEAT_CLOCKID = 23,
	PD_FEAT_DIR_FORMAT = 24,
	PD_FEAT_COMPRESSED = 27,
	PD_FEAT_CLOCK_DATA = 29,
	PD_FEAT_BITS = 256,
};

struct pd_section {
	uint64_t off;
	uint64_t n;
};

struct pd_file_header {
	uint64_t magic;
	uint64_t header_size;
	uint64_t attr_size;
	struct pd_section attrs;
	struct pd_section data;
	struct pd_section event_types;
	uint64_t features[PD_FEAT_BITS / 64];
};
_Static_assert(sizeof(struct pd_file_header) == 104, "the header of a perf.data file");

#endif
