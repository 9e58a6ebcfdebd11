/*
 * Reader and writer of perf.data, the recordings of perf(1).
 *
 * The reader passes struct events to a sink in the order of time. It accepts files of `perf record`
 * (with and without -z, also of a perf that was killed) and its pipe mode, from a file or a pipe.
 * Memory use is bounded by the records between two FINISHED_ROUND records; a file without these is
 * read and sorted as a whole, as perf does.
 *
 * For a damaged file the events before the damage are delivered, and the info describes the damage
 * (is_incomplete, problem, nr_unparsed). An error is returned only if nothing could be read, or if
 * the sink returned one. The file is read, not mapped, so that a file that is truncated meanwhile
 * does not raise SIGBUS; chunks of 256 kB stay in the CPU cache, which costs no more than the page
 * faults of a mapping would.
 *
 * Formats: tools/perf/Documentation/perf.data-file-format.txt for the file, its header and
 * features, <linux/perf_event.h> for the records. Little-endian files only.
 *
 * Not supported: hardware traces (AUX, Intel PT; skipped), maps of guests (skipped), directories of
 * `perf record --threads` (an error with a hint).
 */
#ifndef ASSAY_FORMAT_PERF_PERFDATA_H
#define ASSAY_FORMAT_PERF_PERFDATA_H

#include "base/arena.h"
#include "base/base.h"
#include "base/err.h"
#include "base/file/file.h"
#include "base/map.h"
#include "base/vec.h"
#include "model/event.h"

/* One recorded event; event_sample.spec is an index into perfdata_info.specs. */
struct perfdata_spec {
	const char *name; /* as given to perf: "cycles:u", "sched:sched_switch"; never NULL */
	uint32_t type;    /* PERF_TYPE_* */
	uint64_t config;
	uint64_t sample_type; /* PERF_SAMPLE_* bits */
	uint64_t freq_hz;     /* requested frequency; 0 = a fixed period */
	uint64_t period;      /* when freq_hz is 0 */
	bool is_period_ns;    /* a clock: periods are nanoseconds */
	uint64_t nr_samples;  /* delivered so far */
};

struct perfdata_build_id {
	const char *path; /* "[kernel.kallsyms]" for the kernel */
	int32_t pid;
	bool is_kernel;
	uint8_t nr_bytes;
	uint8_t bytes[EVENT_BUILD_ID_MAX];
};

/*
 * Metadata of the file. Owned by the caller, who may read it within the sink: the header of a file
 * is complete before the first event; in pipe mode a spec is set before its first sample, other
 * fields at any time. Strings are NULL if the file does not have them.
 */
struct perfdata_info {
	VEC(struct perfdata_spec) specs;
	VEC(struct perfdata_build_id) build_ids;
	const char *hostname;
	const char *os_release;
	const char *arch; /* "x86_64" */
	const char *cpu_desc;
	const char *cmdline; /* arguments joined by blanks */
	int64_t wall_ns;     /* CLOCK_REALTIME at clock_ns; both 0 = unknown */
	uint64_t clock_ns;
	uint64_t first_ns; /* time of the first and last sample; 0 = none or unknown */
	uint64_t last_ns;
	bool is_pipe;
	bool is_incomplete;   /* perf was killed or the file is truncated */
	const char *problem;  /* short text why the rest could not be read, or NULL */
	uint64_t nr_unparsed; /* malformed records, samples or not */
	uint64_t nr_late;     /* delivered after a record with a later time */
	/*
	 * Losses counted by the kernel: records of any kind (PERF_RECORD_LOST, when they happen)
	 * and, since Linux 6.0, samples (PERF_RECORD_LOST_SAMPLES, at the end). Both count the same
	 * drops and must not be added; the EVENT_LOST events add up to the larger number.
	 */
	uint64_t nr_lost_records;
	uint64_t nr_lost_samples;

	struct arena text;         /* memory of the strings above */
	struct map build_id_index; /* hash of the path -> index + 1 */
};

void perfdata_info_release(struct perfdata_info *info);

/*
 * Read a whole file and pass its events to the sink. *info must be {0} before; the caller releases
 * it. _fd: from the start of a regular file, or the rest of a pipe; the descriptor stays open.
 */
int perfdata_read(const void *p, size_t n, const struct event_sink *sink,
		  struct perfdata_info *info, struct err *err);
int perfdata_read_fd(int fd, const struct event_sink *sink, struct perfdata_info *info,
		     struct err *err);

/*
 * The writer (perfdata_write of format.h) writes a profile as a recording that perf report, perf
 * script and Hotspot open.
 *
 * Each table becomes an event attribute, each sample a sample record; a row with a count above 1
 * becomes that many records, which share the row's weight as their periods. Addresses are computed
 * from module offsets and the process's mappings. If the mappings of a process are not known
 * (children of a fork, imported profiles), the mapping of the module in another process is used,
 * else an address range is assigned to the module.
 *
 * Not written: inlined frames and lines (perf determines them from the binaries), names that assay
 * gave to functions of stripped code, columns other than count and weight, marks. Frames without
 * an address (of a text format, "[truncated]") are written as symbols of kernel code
 * (PERF_RECORD_KSYMBOL), the only record that contains a name: perf shows them as kernel frames
 * with that name, Hotspot as unknown frames.
 *
 * A new file is written incrementally; for a pipe everything is kept in memory until the end, as
 * the header describes what follows.
 */
struct perfdata_written {
	uint64_t nr_samples; /* records */
	uint64_t nr_bytes;
	uint64_t nr_truncated_stacks; /* too deep for a record: frames at the root are missing */
	uint64_t nr_named_frames;     /* distinct frames without an address */
	uint64_t nr_guessed_maps;     /* mappings not recorded but assigned as described above */
	/* Too many samples for a record each: one record per row, with its count as the period. */
	bool is_folded;
};

struct perfdata_options {
	/* Receives what was written and what was not; may be NULL. */
	struct perfdata_written *ret_written;
};

#endif
